"""Checkpoints: whole or not there, without pickle, pruned, and refused where they do not fit."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.config import Config, CorpusSpec, DataConfig, ModelConfig, TrainingConfig
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, shift
from nmt.tokens.padding import pad
from nmt.training.checkpoint import (
    Progress,
    clear_partial_checkpoints,
    find_checkpoint,
    find_whole,
    go_on_from,
    init_weights,
    load_model,
    restore,
    save_checkpoint,
)
from nmt.training.sealed import read_seal, seal
from nmt.training.step import Learner

ROWS = [[5, 6, 2], [7, 2], [4, 5, 6, 7, 2]]
KEEP_3 = TrainingConfig(keep=3)


def make_learner(ema: float = 0.9, d_model: int = 16) -> Learner:
    config = ModelConfig(d_model=d_model, d_ff=32, num_heads=2, num_layers=(1, 1))
    model = Transformer(config, src_vocab=12, tgt_vocab=12)
    return Learner(model, TrainingConfig(ema=ema, weight_decay=0.1), torch.float32)


def train(learner: Learner, *steps: int) -> None:
    for step in steps:
        learner.update([Batch(pad(ROWS), *shift(pad(ROWS)))], step)


def trained(steps: int, ema: float = 0.9) -> Learner:
    torch.manual_seed(0)
    learner = make_learner(ema)
    train(learner, *range(1, steps + 1))
    return learner


def names(run: RunFolder) -> list[str]:
    return sorted(path.name for path in run.checkpoints.iterdir())


def is_equal(first: Learner, second: Learner) -> bool:
    return all(
        torch.equal(mine[name], theirs[name])
        for mine, theirs in ((first.weights, second.weights), (first.average, second.average))
        for name in mine
    )


@pytest.fixture
def two(tmp_path: Path) -> RunFolder:
    """A run with the whole checkpoints 10 (the best) and 20 (the last)."""
    run = RunFolder(tmp_path / "run")
    learner = trained(1)
    save_checkpoint(run, learner, Progress(step=10, score=5.0, best_step=10), KEEP_3)
    train(learner, 2)
    save_checkpoint(run, learner, Progress(step=20, score=4.0, best_step=10), KEEP_3)
    return run


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_what_is_restored_goes_on_byte_for_byte(tmp_path: Path, ema: float) -> None:
    run = RunFolder(tmp_path)
    learner = trained(3, ema)
    save_checkpoint(run, learner, Progress(step=3), KEEP_3)
    torch.manual_seed(99)
    other = make_learner(ema)
    restore(run.checkpoints / "last", other)
    for each in (learner, other):
        train(each, 4, 5)
    assert is_equal(learner, other)


def test_a_run_whose_first_updates_changed_nothing_is_saved_and_goes_on(tmp_path: Path) -> None:
    """AdamW has no moments before the first update that it makes."""
    run = RunFolder(tmp_path)
    learner = trained(0)
    save_checkpoint(run, learner, Progress(step=1, skipped=1), KEEP_3)
    torch.manual_seed(99)
    other = make_learner()
    restore(run.checkpoints / "last", other)
    for each in (learner, other):
        train(each, 2, 3)
    assert is_equal(learner, other)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_a_cpu_saved_goes_on_on_a_gpu(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    save_checkpoint(run, trained(3), Progress(step=3), KEEP_3)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(1, 1))
    model = Transformer(config, src_vocab=12, tgt_vocab=12).to("cuda")
    other = Learner(model, TrainingConfig(ema=0.9, weight_decay=0.1), torch.float32)
    restore(run.checkpoints / "last", other)
    train(other, 4)
    assert all(state["step"].is_cuda for state in other.optimizer.state.values())
    save_checkpoint(run, other, Progress(step=4), KEEP_3)
    restore(run.checkpoints / "last", make_learner())


def test_the_weights_that_decode_are_the_average(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    learner = trained(3)
    save_checkpoint(run, learner, Progress(step=3), KEEP_3)
    saved = load_file(run.checkpoints / "last/model.safetensors")
    assert saved.keys() == learner.average.keys()
    assert all(torch.equal(saved[name], learner.average[name]) for name in saved)
    model = make_learner().model
    load_model(model, run.checkpoints / "last")
    assert torch.equal(model.src_embedding.weight, saved["src_embedding.weight"])


def test_best_and_last_point_to_what_they_say(two: RunFolder) -> None:
    assert find_checkpoint(two).resolve().name == "step-000010"
    assert find_checkpoint(two, "last").resolve().name == "step-000020"
    whole = find_whole(two)
    assert whole and whole.progress == Progress(step=20, score=4.0, best_step=10)
    # A link must survive a move of the run folder.
    assert (two.checkpoints / "best").readlink() == Path("step-000010")


def test_others_may_read_a_checkpoint_as_they_may_read_the_folder(two: RunFolder) -> None:
    files = list((two.checkpoints / "last").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {two.path.stat().st_mode & 0o666}


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"keep": 1, "keep_best": 1}, "20 90"),
        ({"keep": 3, "keep_best": 1}, "20 70 80 90"),
        ({"keep": 1, "keep_best": 3}, "20 40 60 90"),
        ({"keep": 1, "keep_best": 1, "keep_every": 30}, "20 30 60 90"),
        # The best is what `best` points to, whatever the scores say.
        ({"keep": 1, "keep_best": 1, "best_by": "loss"}, "20 50 90"),
        ({"keep": 1, "keep_best": 2, "best_by": "loss"}, "20 30 50 90"),
    ],
)
def test_the_last_the_best_and_each_so_manieth_stay(
    tmp_path: Path, settings: dict[str, int], left: str
) -> None:
    run = RunFolder(tmp_path)
    learner = trained(1)
    scores = {10: 2.0, 20: 9.0, 30: 1.0, 40: 8.0, 50: 0.5, 60: 8.0, 70: None, 80: 3.0, 90: None}
    for step, score in scores.items():
        progress = Progress(step=step, score=score, best_step=min(step, 20))
        save_checkpoint(run, learner, progress, TrainingConfig(**settings))
    assert names(run) == ["best", "last", *(f"step-{int(step):06d}" for step in left.split())]


def test_what_is_half_written_is_no_checkpoint_and_is_cleared(two: RunFolder) -> None:
    """A kill in the middle of a save leaves a hidden folder, which nothing takes for whole."""
    partial = two.checkpoints / ".step-000030.999.partial"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half")
    (two.checkpoints / ".last.999.partial").symlink_to("step-000030")
    with pytest.raises(UserError, match="there are: best, last, step-000010, step-000020"):
        find_checkpoint(two, "step-000030")
    clear_partial_checkpoints(two)
    assert names(two) == ["best", "last", "step-000010", "step-000020"]


class Bomb:
    """Unpickling this runs code."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path("unpickled").touch, ())


def test_a_pickle_is_refused_and_never_run(
    two: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (two.checkpoints / "step-000010", two.checkpoints / "step-000020"):
        for file in ("model.safetensors", "optimizer.safetensors"):
            (folder / file).write_bytes(pickle.dumps(Bomb()))
        values, _ = read_seal(folder)
        seal(folder, values)  # even where the hashes are those of the pickle
        with pytest.raises(UserError, match="this is not a checkpoint that nmt wrote"):
            load_model(make_learner().model, folder)
        with pytest.raises(UserError, match="this is not a checkpoint that nmt wrote"):
            restore(folder, make_learner())
    assert not (tmp_path / "unpickled").exists()


def test_weights_of_another_model_are_refused(two: RunFolder) -> None:
    other = make_learner(d_model=8)
    with pytest.raises(UserError, match=r"is \(16,\), expected \(8,\): they are of"):
        load_model(other.model, two.checkpoints / "last")
    with pytest.raises(UserError, match=r"is \(16,\), expected \(8,\): they are of"):
        restore(two.checkpoints / "last", other)


def test_no_checkpoint_yet_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no checkpoint yet; there are: none"):
        find_checkpoint(RunFolder(tmp_path))
    assert find_whole(RunFolder(tmp_path)) is None


def test_a_copied_folder_with_links_resolved_decodes_and_goes_on(two: RunFolder) -> None:
    copy = RunFolder(two.path.with_name("copy"))
    shutil.copytree(two.path, copy.path)  # as scp does, which follows links
    load_model(make_learner().model, find_checkpoint(copy))
    whole = find_whole(copy)
    assert whole and whole.folder.name == "step-000020" and not whole.complaint
    go_on_from(copy, whole)
    save_checkpoint(copy, trained(1), Progress(step=30, best_step=30), KEEP_3)
    assert [(copy.checkpoints / name).readlink().name for name in ("best", "last")] == [
        "step-000030"
    ] * 2


def test_a_copy_of_the_last_checkpoint_alone_goes_on(two: RunFolder) -> None:
    copy = RunFolder(two.path.with_name("copy"))
    shutil.copytree(two.checkpoints / "last", copy.checkpoints / "last")
    whole = find_whole(copy)
    assert whole and whole.progress.step == 20
    go_on_from(copy, whole)
    restore(whole.folder, make_learner())
    save_checkpoint(copy, trained(1), Progress(step=30), KEEP_3)
    assert names(copy) == ["last", "step-000030"]


# What goes wrong with a checkpoint that was whole.


def truncate(folder: Path) -> None:
    file = folder / "model.safetensors"
    os.truncate(file, file.stat().st_size // 2)


def flip(name: str, place: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[int(len(content) * place)] ^= 1
        (folder / name).write_bytes(content)

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def edit_step(folder: Path) -> None:
    """Change a number so that the file is still good JSON."""
    file = folder / "state.json"
    file.write_text(file.read_text().replace('"step": 20', '"step": 21'))


DAMAGES = {
    "truncated": (truncate, "model.safetensors is not what was written: sha256 "),
    "flipped": (flip("optimizer.safetensors", 0.9), "optimizer.safetensors is not what was"),
    "flipped header": (flip("model.safetensors", 0.02), "model.safetensors is not what was"),
    "missing": (remove("optimizer.safetensors"), "optimizer.safetensors is not there"),
    "no state": (remove("state.json"), "state.json is not there"),
    "edited state": (edit_step, "state.json is not what was written"),
    "broken state": (flip("state.json", 0), "state.json is not what was written"),
    "gone": (shutil.rmtree, "last points to step-000020, which is not there"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_broken_is_said_and_the_one_before_is_taken(two: RunFolder, damage: str) -> None:
    change, why = DAMAGES[damage]
    before = trained(1)
    change(two.checkpoints / "step-000020")
    whole = find_whole(two)
    assert whole and whole.folder.name == "step-000010" and whole.progress.step == 10
    assert why in whole.complaint and "step-000020" in whole.complaint
    assert f"going on from {whole.folder}, which is whole." in whole.complaint
    other = make_learner()
    restore(whole.folder, other)
    assert is_equal(before, other)
    go_on_from(two, whole)
    assert find_checkpoint(two, "last").resolve().name == "step-000010"
    aside = [] if damage == "gone" else ["broken-step-000020"]
    assert names(two) == ["best", *aside, "last", "step-000010"]
    assert all(f"For you to delete: {name}." in whole.complaint for name in aside)
    again = find_whole(two)
    assert again and not again.complaint  # said once
    save_checkpoint(two, other, Progress(step=20, best_step=20), KEEP_3)
    assert find_checkpoint(two).resolve().name == "step-000020"


@pytest.mark.parametrize("damage", DAMAGES)
def test_where_none_is_whole_that_is_an_error_and_nothing_changes(
    two: RunFolder, damage: str
) -> None:
    for name in ("step-000010", "step-000020"):
        DAMAGES[damage][0](two.checkpoints / name)
    (two.checkpoints / "step-000010/state.json").unlink(missing_ok=True)
    left = names(two)
    with pytest.raises(UserError, match="no whole checkpoint to go on from: .*step-000020"):
        find_whole(two)
    assert names(two) == left


def test_every_byte_of_a_checkpoint_counts(two: RunFolder) -> None:
    """Each flipped byte of state.json, and one in each 997 of the others, is found."""
    folder = two.checkpoints / "step-000020"
    for file, stride in (("state.json", 1), ("model.safetensors", 997)):
        content = (folder / file).read_bytes()
        for place in range(0, len(content), stride):
            if not content[place : place + 1].isspace():
                (folder / file).write_bytes(
                    content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
                )
                whole = find_whole(two)
                assert whole and whole.progress.step == 10, (file, place)
        (folder / file).write_bytes(content)
    whole = find_whole(two)
    assert whole and whole.progress.step == 20


def test_the_state_of_another_version_is_said(two: RunFolder) -> None:
    values, _ = read_seal(two.checkpoints / "last")
    seal((two.checkpoints / "last").resolve(), values | {"best_bleu": 1.0})
    whole = find_whole(two)
    assert whole and "step-000020 is of another version of nmt" in whole.complaint


@pytest.mark.parametrize("name", ["", "best", "step-000010"])
def test_a_broken_best_is_no_reason_to_decode_with_another(two: RunFolder, name: str) -> None:
    truncate(two.checkpoints / "step-000010")
    with pytest.raises(UserError, match="not whole .*there are: best, last, step-000010, step-"):
        find_checkpoint(two, name)
    shutil.rmtree(two.checkpoints / "step-000010")
    gone = "(is not there|has no checkpoint step-000010).*there are: last, step-000020"
    with pytest.raises(UserError, match=gone):
        find_checkpoint(two, name)


def test_only_what_decodes_is_needed_to_decode(two: RunFolder) -> None:
    """A run folder may be published without the moments."""
    (two.checkpoints / "best/optimizer.safetensors").unlink()
    load_model(make_learner().model, find_checkpoint(two))


# Kills and full disks, in processes of their own.

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
from test_checkpoint import KEEP_3, Progress, RunFolder, save_checkpoint, trained
from nmt.config import TrainingConfig

root = Path(sys.argv[2])
learner = trained(2)
training = TrainingConfig(keep=1, keep_best=1)
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.chmod"}
for place in range(1, 1000):
    copy = root / str(place)
    shutil.copytree(root / "run", copy, symlinks=True)
    child = os.fork()
    if child == 0:
        count = 0
        def kill_at(event, arguments):
            global count
            if event in EVENTS and "checkpoints" in str(arguments):
                count += 1
                if count == place:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(kill_at)
        save_checkpoint(RunFolder(copy), learner, Progress(step=20, best_step=20), training)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
print(place)
"""


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Compute as the other process does: sums by more threads round in another way."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.mark.usefixtures("one_thread")
def test_a_kill_at_any_moment_of_a_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """Each save is killed before another of its changes to the disk."""
    save_checkpoint(
        RunFolder(tmp_path / "run"), trained(1), Progress(step=10, best_step=10), KEEP_3
    )
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    num_saves = int(done.stdout)
    assert num_saves > 15
    taken = []
    for place in range(1, num_saves + 1):
        run = RunFolder(tmp_path / str(place))
        whole = find_whole(run)
        assert whole and not whole.complaint
        taken.append(whole.progress.step)
        learner = make_learner()
        restore(whole.folder, learner)
        assert is_equal(learner, trained(whole.progress.step // 10))
        find_checkpoint(run)
        clear_partial_checkpoints(run)
        go_on_from(run, whole)
        assert find_checkpoint(run, "last").resolve() == whole.folder
        save_checkpoint(run, trained(2), Progress(step=20, best_step=20), TrainingConfig(keep=1))
        assert names(run) == ["best", "last", "step-000020"]
    assert taken == sorted(taken) and set(taken) == {10, 20}


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_checkpoint import Progress, RunFolder, TrainingConfig, save_checkpoint, trained
from nmt.errors import UserError

run, learner, training = RunFolder(Path(sys.argv[2])), trained(2), TrainingConfig(keep=1)
if sys.argv[4] == "survives":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    save_checkpoint(run, learner, Progress(step=30), training)
except UserError as error:
    print(error)
"""


def save_with_limit(run: RunFolder, limit: int, how: str) -> subprocess.CompletedProcess[str]:
    """Save in a process that may write no file longer than `limit` bytes."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", FULL, here, str(run.path), str(limit), how]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
def test_a_full_disk_is_a_sentence_and_the_previous_checkpoint_is_whole(
    two: RunFolder, file: str
) -> None:
    size = (two.checkpoints / "last" / file).stat().st_size
    done = save_with_limit(two, size - 100, "survives")
    assert done.returncode == 0, done.stderr
    assert f"{two.checkpoints}/step-000030: this checkpoint could not be saved" in done.stdout
    assert "File too large" in done.stdout
    assert "The last checkpoint, step-000020, is whole: the same command goes on" in done.stdout
    assert names(two) == ["best", "last", "step-000010", "step-000020"]


def test_a_process_killed_in_the_second_file_leaves_the_previous_one(two: RunFolder) -> None:
    done = save_with_limit(two, (two.checkpoints / "last/model.safetensors").stat().st_size, "dies")
    assert done.returncode < 0
    [partial] = two.checkpoints.glob(".*")
    assert (partial / "model.safetensors").exists()
    assert not (partial / "state.json").exists()
    whole = find_whole(two)
    assert whole and whole.progress.step == 20 and not whole.complaint
    clear_partial_checkpoints(two)
    assert names(two) == ["best", "last", "step-000010", "step-000020"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        run = RunFolder(disk / "run")
        steps = []
        with pytest.raises(UserError, match="No space left on device") as caught:
            for step in range(10, 200, 10):
                save_checkpoint(run, trained(1), Progress(step=step), TrainingConfig(keep=99))
                steps.append(step)
        assert f"step-{steps[-1]:06d}, is whole" in str(caught.value)
        assert names(run) == ["last", *(f"step-{step:06d}" for step in steps)]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_at_the_first_save_says_that_there_is_no_earlier_one(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    done = save_with_limit(run, 1000, "survives")
    assert "There is no earlier one: the same command begins anew." in done.stdout
    assert names(run) == []
    assert find_whole(run) is None


# Beginning with the weights of another run.


def prepared(path: Path, vocab: str = "abc") -> RunFolder:
    run = RunFolder(path)
    corpora = (CorpusSpec(name="captions"),)
    run.save_config(Config(src="en", tgt="de", data=DataConfig(train=corpora, dev=corpora)))
    run.update_record(lambda record: record.update(vocab={"vocab.model": vocab}))
    return run


def test_a_run_begins_with_the_best_weights_of_another(two: RunFolder, tmp_path: Path) -> None:
    other, mine = prepared(two.path), prepared(tmp_path / "mine")
    model = make_learner().model
    init_weights(model, mine, other)
    best = load_file(other.checkpoints / "best/model.safetensors")
    found = dict(model.named_parameters())
    assert found.keys() == best.keys()
    assert all(torch.equal(found[name], best[name]) for name in best)


def test_what_cannot_begin_a_run_is_said(two: RunFolder, tmp_path: Path) -> None:
    mine = prepared(tmp_path / "mine")
    model = make_learner().model
    with pytest.raises(UserError, match="init_from: .*/run: this is no run folder"):
        init_weights(model, mine, two)
    with pytest.raises(UserError, match="init_from: .*/empty: has no checkpoint yet"):
        init_weights(model, mine, prepared(tmp_path / "empty"))
    other = prepared(two.path, "xyz")
    with pytest.raises(UserError, match="/mine: its vocabulary is not that of .*/run, .*abc.*xyz"):
        init_weights(model, mine, other)
    prepared(two.path)
    expected = r"/mine: its model .* of .*/run, .*: there \S+ is \(16,\), expected \(8,\); set the"
    with pytest.raises(UserError, match=expected):
        init_weights(make_learner(d_model=8).model, mine, other)
    truncate(two.checkpoints / "step-000010")
    with pytest.raises(UserError, match="init_from: .*/best: this checkpoint is not whole"):
        init_weights(model, mine, other)


def test_state_json_is_strict_and_holds_what_a_reader_looks_for(two: RunFolder) -> None:
    text = (two.checkpoints / "best/state.json").read_text(encoding="utf-8")
    state = json.loads(text, parse_constant=pytest.fail)
    assert (state["step"], state["score"], state["best_step"]) == (10, 5.0, 10)
    assert state["sha256"].keys() == {"model.safetensors", "optimizer.safetensors", "state.json"}
