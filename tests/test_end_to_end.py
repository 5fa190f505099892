"""Tiny tasks through the real command line, from text files to BLEU."""

import hashlib
import json
import pickle
import re
import shutil
from pathlib import Path

import pytest
from conftest import Cli
from prepared import write_vocab
from tiny import reverse, write_task


def _bleu(cli: Cli, run: Path) -> float:
    scores = json.loads(cli("eval", run, "--beam", 1, "--json").stdout)
    return float(scores[0]["bleu"])


def test_a_copy_task_is_learned(cli: Cli, copy_run: Path) -> None:
    assert _bleu(cli, copy_run) > 95


def test_a_reverse_task_is_learned(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, reverse)
    steps = ["--set", "training.max_steps=1200", "--set", "training.validate_every=1200"]
    cli("train", config, "--run", tmp_path / "run", *steps)
    assert _bleu(cli, tmp_path / "run") > 95


def test_a_run_says_what_will_happen_and_how_it_ended(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, reverse, {"train": 50, "dev": 5, "test": 5})
    limits = ["--set", "training.max_steps=3", "--set", "training.validate_every=2"]
    done = cli("train", config, "--run", tmp_path / "run", *limits)
    said = done.stdout
    assert re.search(r"train\.src .*train\.tgt: 50 pairs, \d+ kept", said)
    assert re.search(r"vocabulary: \d+ pieces", said)
    assert re.search(r"model +[\d,]+ parameters, on cpu in \w+", said)
    assert re.search(r"at most 3 updates, about \d+:\d\d", said)
    assert "finished (3 updates)" in said
    # The last update of a run is validated, whatever validate_every says.
    assert re.findall(r"update (\d+): dev loss", done.stderr) == ["2", "3"]


def test_a_finished_run_is_not_trained_again(cli: Cli, copy_run: Path) -> None:
    weights = (copy_run / "checkpoints/last/model.safetensors").stat().st_mtime_ns
    again = cli("train", copy_run.parent / "copy.yaml", "--run", copy_run)
    assert "finished (800 updates)" in again.stdout
    assert (copy_run / "checkpoints/last/model.safetensors").stat().st_mtime_ns == weights


def test_a_run_folder_can_be_moved(cli: Cli, copy_run: Path, tmp_path: Path) -> None:
    """To another machine, where neither the corpora nor the config are."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(copy_run, moved, symlinks=True)
    hidden = copy_run.parent.rename(copy_run.parent.with_name("hidden"))
    try:
        assert cli("translate", moved, input="ba be bi\n").stdout == "ba be bi\n"
        assert _bleu(cli, moved) > 95
    finally:
        hidden.rename(copy_run.parent)


class Bomb:
    """Unpickling this runs code."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path("unpickled").touch, ())


def test_a_pickle_in_place_of_a_checkpoint_is_never_run(
    cli: Cli, copy_run: Path, tmp_path: Path
) -> None:
    """Refused where it is to decode; training goes on from the checkpoint before, and says so."""
    run = tmp_path / "run"
    shutil.copytree(copy_run, run, symlinks=True)
    (run / "checkpoints/step-000800/model.safetensors").write_bytes(pickle.dumps(Bomb()))
    refused = cli("translate", run, "--checkpoint", "last", input="ba\n", status=2, cwd=tmp_path)
    assert "checkpoints/last: this checkpoint is not whole" in refused.stderr
    command = ["train", copy_run.parent / "copy.yaml", "--run", run]
    went_on = cli(*command, "--set", "training.max_steps=402", cwd=tmp_path)
    assert "step-000800 is not whole (model.safetensors is not what was written" in went_on.stderr
    assert "going on from update 400" in went_on.stdout
    assert not (tmp_path / "unpickled").exists()


def test_the_vocabulary_of_another_run_is_refused_by_both_hashes(
    cli: Cli, copy_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(copy_run, run, symlinks=True)
    write_vocab(run / "vocab.model")
    hashes = [hashlib.sha256((each / "vocab.model").read_bytes()) for each in (run, copy_run)]
    training = ["train", copy_run.parent / "copy.yaml", "--run", run, "--set"]
    for command in (["translate", run], [*training, "training.max_steps=900"]):
        refused = cli(*command, input="ba\n", status=2)
        for found in hashes:
            assert found.hexdigest() in refused.stderr


def test_scores_are_kept_with_their_recipe(cli: Cli, copy_run: Path) -> None:
    said = cli("eval", copy_run).stdout.splitlines()
    assert said[0] == "test.tgt: 100 sentences, 0 with a side in training"
    assert [line.split()[0] for line in said[1:7:2]] == ["BLEU", "chrF2", "TER"]
    assert all(re.fullmatch(r"nrefs:1\|\S+\|version:\S+", line) for line in said[2:7:2])
    score = json.loads((copy_run / "run.json").read_text())["scores"][-1]
    assert score["set"] == "test.tgt"
    assert f"BLEU {score['bleu']:.2f}," in said[1]
    assert score["signature"] == said[2]
    assert score["checkpoint"].startswith("step-")
    hypotheses = (copy_run / "translations/test.test.tgt.hyp").read_text().splitlines()
    assert len(hypotheses) == score["num_lines"] == 100


def test_a_score_with_overlap_is_stamped(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, reverse, {"train": 50, "dev": 5, "test": 5})
    for side in ("src", "tgt"):
        shown = (tmp_path / f"test.{side}").read_text().splitlines()[:3]
        with (tmp_path / f"train.{side}").open("a") as file:
            # One differs in case and blanks only.
            file.write(f"{shown[0].upper()} \n{shown[1]}\n{shown[2]}\n")
    run = tmp_path / "run"
    options = ["--set", "training.max_steps=1", "--set", "clean.keep_test_overlap=true"]
    cli("train", config, "--run", run, *options)
    said = cli("eval", run).stdout.splitlines()[0]
    assert said == "test.tgt: 5 sentences, 3 with a side in training: NOT A CLEAN SCORE"
    assert json.loads((run / "run.json").read_text())["scores"][0]["overlap"] == 3


@pytest.mark.parametrize("command", ["translate", "eval"])
def test_a_folder_that_is_no_run_is_said_to_be_none(cli: Cli, tmp_path: Path, command: str) -> None:
    done = cli(command, tmp_path, status=2)
    assert done.stderr.startswith(f"error: {tmp_path}: this is no run folder")
    assert "Traceback" not in done.stderr
