"""The mean of checkpoints: which are chosen, what is written, and that nothing else takes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_checkpoint import make_learner, names, train, trained, truncate

from nmt.config import Config, CorpusSpec, DataConfig, TrainingConfig
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.training.average import average_checkpoints, choose_checkpoints
from nmt.training.checkpoint import (
    Progress,
    clear_partial_checkpoints,
    find_checkpoint,
    find_whole,
    go_on_from,
    load_model,
    save_checkpoint,
)

SCORES = {10: 1.0, 20: 4.0, 30: None, 40: 3.0}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with the checkpoints 10 to 40, of which 20 is the best."""
    run = RunFolder(tmp_path / "run")
    corpora = (CorpusSpec(name="captions"),)
    training = TrainingConfig(keep=4)
    data = DataConfig(train=corpora, dev=corpora)
    run.save_config(Config(src="en", tgt="de", data=data, training=training))
    learner = trained(0, ema=0.0)
    for step, score in SCORES.items():
        train(learner, step)
        progress = Progress(step=step, score=score, best_step=min(step, 20))
        save_checkpoint(run, learner, progress, training)
    return run


def test_the_average_is_the_mean_in_fp32(run: RunFolder) -> None:
    folder = average_checkpoints(run, ["step-000010", "step-000030", "step-000040"])
    found = load_file(folder / "model.safetensors")
    parts = [
        load_file(run.checkpoints / f"step-0000{step}/model.safetensors") for step in (10, 30, 40)
    ]
    for name, mean in found.items():
        by_hand = torch.stack([part[name].double() for part in parts]).mean(0)
        assert mean.dtype == torch.float32
        assert torch.equal(mean, by_hand.float())
    assert any(not torch.equal(found[name], parts[0][name]) for name in found)


def test_the_average_of_one_is_that_one(run: RunFolder) -> None:
    folder = average_checkpoints(run, ["step-000020"], "same")
    ours, theirs = (
        load_file(path / "model.safetensors") for path in (folder, run.checkpoints / "best")
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_it_decodes_and_is_neither_resumed_from_nor_deleted(run: RunFolder) -> None:
    average_checkpoints(run, ["best", "last"])
    folder = find_checkpoint(run, "average")
    load_model(make_learner().model, folder)
    assert find_checkpoint(run).resolve().name == "step-000020"
    whole = find_whole(run)
    assert whole and whole.progress.step == 40
    clear_partial_checkpoints(run)
    go_on_from(run, whole)
    training = TrainingConfig(keep=1)
    save_checkpoint(run, trained(1), Progress(step=50, best_step=50, score=9.0), training)
    assert names(run) == ["average", "best", "last", "step-000050"]
    assert find_checkpoint(run, "average") == folder


def test_a_broken_average_is_not_decoded(run: RunFolder) -> None:
    truncate(average_checkpoints(run, ["best", "last"]))
    with pytest.raises(UserError, match="average: this checkpoint is not whole"):
        find_checkpoint(run, "average")


def test_a_second_average_takes_the_place_of_the_first(run: RunFolder) -> None:
    average_checkpoints(run, ["best"])
    average_checkpoints(run, ["last"])
    ours, theirs = (
        load_file(run.checkpoints / name / "model.safetensors") for name in ("average", "last")
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert [name for name in names(run) if name.startswith(".")] == []


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ({"last": 2}, "30 40"),
        ({"last": 4}, "10 20 30 40"),
        ({"best": 1}, "20"),
        ({"best": 2}, "20 40"),
        ({"names": ["last", "step-000010"]}, "10 40"),
        ({"names": ["best"]}, "20"),
    ],
)
def test_which_are_chosen(run: RunFolder, choice: dict[str, int], chosen: str) -> None:
    expected = [f"step-{int(step):06d}" for step in chosen.split()]
    assert choose_checkpoints(run, **choice) == expected


def test_where_loss_chooses_the_least_is_the_best(run: RunFolder) -> None:
    config = run.config_file.read_text().replace("best_by: bleu", "best_by: loss")
    run.config_file.write_text(config)
    assert choose_checkpoints(run, best=2) == ["step-000010", "step-000040"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({}, "takes one of --last N, --best N and --checkpoint NAME"),
        ({"last": 2, "best": 2}, "takes one of"),
        ({"last": -1}, "takes one of"),
        ({"last": 5}, "has only 4 checkpoints, 5 were asked for"),
        ({"best": 4}, "has only 3 checkpoints with a score, 4 were asked for"),
        ({"names": ["step-000099"]}, "no checkpoint step-000099; there are: .*step-000010"),
        ({"names": ["best", "step-000020"]}, "step-000020 is named twice"),
    ],
)
def test_what_cannot_be_chosen_is_said(run: RunFolder, choice: dict[str, int], said: str) -> None:
    with pytest.raises(UserError, match=said):
        choose_checkpoints(run, **choice)


def test_no_checkpoint_and_an_average_of_averages_are_said(run: RunFolder, tmp_path: Path) -> None:
    average_checkpoints(run, ["best", "last"])
    with pytest.raises(UserError, match="only checkpoints that training saved are averaged"):
        choose_checkpoints(run, names=["average", "last"])
    empty = RunFolder(tmp_path / "empty")
    empty.save_config(run.load_config())
    with pytest.raises(UserError, match="has no checkpoint yet"):
        choose_checkpoints(empty, last=1)
    with pytest.raises(UserError, match="this is no run folder"):
        choose_checkpoints(RunFolder(tmp_path / "none"), last=1)


@pytest.mark.parametrize(
    "output", ["best", "last", "step-000010", "step-x", "broken-step-000010", "", "../out", ".a"]
)
def test_a_name_of_training_is_not_taken(run: RunFolder, output: str) -> None:
    before = names(run)
    with pytest.raises(UserError, match="this name cannot be taken"):
        average_checkpoints(run, ["best"], output)
    assert names(run) == before


@pytest.mark.parametrize("output", ["bestest", "last5", "average"])
def test_another_name_is_taken(run: RunFolder, output: str) -> None:
    assert average_checkpoints(run, ["best"], output) == run.checkpoints / output


def test_a_broken_checkpoint_is_not_averaged(run: RunFolder) -> None:
    truncate(run.checkpoints / "step-000030")
    with pytest.raises(UserError, match="step-000030: this checkpoint is not whole"):
        average_checkpoints(run, ["step-000020", "step-000030"])
    assert "average" not in names(run)


def test_weights_of_two_models_are_not_averaged(run: RunFolder) -> None:
    learner = make_learner(d_model=8)
    train(learner, 1)
    save_checkpoint(run, learner, Progress(step=50), TrainingConfig(keep=9))
    with pytest.raises(UserError, match=r"step-000050: its weights are not of the model of step-"):
        average_checkpoints(run, ["step-000040", "step-000050"])


FULL = """
import resource, signal, sys
from pathlib import Path
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.training.average import average_checkpoints

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    average_checkpoints(RunFolder(Path(sys.argv[1])), ["best", "last"])
except UserError as error:
    print(error)
"""


def test_a_full_disk_leaves_the_average_that_was_there(run: RunFolder) -> None:
    folder = average_checkpoints(run, ["best", "last"])
    before = (folder / "model.safetensors").read_bytes()
    command = [sys.executable, "-c", FULL, str(run.path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert "average: this average could not be written" in done.stdout
    assert (folder / "model.safetensors").read_bytes() == before
    assert [name for name in names(run) if name.startswith(".")] == []
