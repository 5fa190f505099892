"""Checkpoints: whole or not there, without pickle, pruned, and refused where they do not fit."""

import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.config import ModelConfig, TrainingConfig
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, pad, shift
from nmt.training.checkpoint import (
    Progress,
    find_checkpoint,
    load_model,
    load_progress,
    restore,
    save_checkpoint,
)
from nmt.training.step import Learner

ROWS = [[5, 6, 2], [7, 2], [4, 5, 6, 7, 2]]


def make_learner(ema: float = 0.9, d_model: int = 16) -> Learner:
    config = ModelConfig(d_model=d_model, d_ff=32, num_heads=2, num_layers=(1, 1))
    model = Transformer(config, src_vocab=12, tgt_vocab=12)
    return Learner(model, TrainingConfig(ema=ema), torch.float32)


def trained(steps: int, ema: float = 0.9) -> Learner:
    torch.manual_seed(0)
    learner = make_learner(ema)
    for step in range(1, steps + 1):
        learner.update([Batch(pad(ROWS), *shift(pad(ROWS)))], step)
    return learner


def names(run: RunFolder) -> list[str]:
    return sorted(path.name for path in run.checkpoints.iterdir())


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_what_is_restored_goes_on_byte_for_byte(tmp_path: Path, ema: float) -> None:
    run = RunFolder(tmp_path)
    learner = trained(3, ema)
    save_checkpoint(run, learner, Progress(step=3), keep=3)
    torch.manual_seed(99)
    other = make_learner(ema)
    restore(run, other)
    for step in (4, 5):
        for each in (learner, other):
            each.update([Batch(pad(ROWS), *shift(pad(ROWS)))], step)
    for mine, theirs in ((learner.weights, other.weights), (learner.average, other.average)):
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_the_weights_that_decode_are_the_average(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    learner = trained(3)
    save_checkpoint(run, learner, Progress(step=3), keep=3)
    saved = load_file(run.checkpoints / "last/model.safetensors")
    assert saved.keys() == learner.average.keys()
    assert all(torch.equal(saved[name], learner.average[name]) for name in saved)
    model = make_learner().model
    load_model(model, run.checkpoints / "last")
    assert torch.equal(model.src_embedding.weight, saved["src_embedding.weight"])


def test_best_and_last_point_to_what_they_say(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    learner = trained(1)
    save_checkpoint(run, learner, Progress(step=10, best_step=10, best_bleu=5.0), keep=3)
    save_checkpoint(run, learner, Progress(step=20, best_step=10, best_bleu=5.0), keep=3)
    assert find_checkpoint(run).resolve().name == "step-000010"
    assert find_checkpoint(run, "last").resolve().name == "step-000020"
    progress = load_progress(run)
    assert progress == Progress(step=20, best_step=10, best_bleu=5.0)
    # A link must survive a move of the run folder.
    assert (run.checkpoints / "best").readlink() == Path("step-000010")


def test_old_checkpoints_go_but_never_the_best(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    learner = trained(1)
    for step in range(10, 70, 10):
        save_checkpoint(run, learner, Progress(step=step, best_step=20), keep=3)
    assert names(run) == ["best", "last", "step-000020", "step-000050", "step-000060"]


def test_what_is_half_written_is_no_checkpoint(tmp_path: Path) -> None:
    """A kill in the middle of a save leaves a hidden folder, which nothing takes for whole."""
    run = RunFolder(tmp_path)
    learner = trained(1)
    save_checkpoint(run, learner, Progress(step=1, best_step=1), keep=3)
    partial = run.checkpoints / ".step-000002.999.partial"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half")
    assert find_checkpoint(run, "last").resolve().name == "step-000001"
    with pytest.raises(UserError, match="there are: best, last, step-000001"):
        find_checkpoint(run, "step-000002")


class Bomb:
    """Unpickling this runs code."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path("unpickled").touch, ())


def test_a_pickle_is_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "step-000001"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="this is not a checkpoint that nmt wrote"):
        load_model(make_learner().model, folder)
    assert not (tmp_path / "unpickled").exists()


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    save_checkpoint(run, trained(1), Progress(step=1), keep=3)
    other = make_learner(d_model=8)
    with pytest.raises(UserError, match=r"is \(16,\), expected \(8,\): they are of"):
        load_model(other.model, run.checkpoints / "last")


def test_no_checkpoint_yet_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no checkpoint yet; there are: none"):
        find_checkpoint(RunFolder(tmp_path))
    assert load_progress(RunFolder(tmp_path)) is None


def test_a_copied_folder_with_links_resolved_still_works(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "a")
    save_checkpoint(run, trained(1), Progress(step=1, best_step=1), keep=3)
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # as scp does, which follows links
    load_model(make_learner().model, find_checkpoint(RunFolder(tmp_path / "b")))
