"""Stopping and going on, what is logged, and the alarms, mostly through the real command line."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Cli
from ranks import ENDLESS, new_run, run_ranks, state, train, write_prepared
from safetensors.torch import load_file
from tiny import copy, write_task

from nmt.config import TrainingConfig
from nmt.training.checkpoint import Progress
from nmt.training.loop import why_finished

SMALL = {"train": 120, "dev": 5, "test": 5}
# Seven updates an epoch, so that ten cross the end of one; groups smaller than an update.
FAST = [
    "training.batch_tokens=200",
    "training.group_tokens=64",
    "training.validate_every=5",
    "training.save_every=5",
    "training.log_every=1",
    "training.ema=0.9",
    "model.dropout=0.1",
]


def settings(*pairs: str) -> list[str]:
    return [word for pair in (*FAST, *pairs) for word in ("--set", pair)]


def metrics(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    return [record for record in records if record["kind"] == kind]


def weights(run: Path) -> bytes:
    return (run / "checkpoints/last/optimizer.safetensors").read_bytes()


def test_stopping_at_any_update_and_going_on_is_the_same_run(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, SMALL)
    sampled = "training.subword_alpha=0.2"
    cli("train", config, "--run", tmp_path / "whole", *settings(sampled, "training.max_steps=20"))
    for stop in (3, 11, 20):
        limits = settings(sampled, f"training.max_steps={stop}")
        cli("train", config, "--run", tmp_path / "parts", *limits)
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")
    whole, parts = (metrics(tmp_path / name, "train") for name in ("whole", "parts"))
    assert [record["step"] for record in parts] == list(range(1, 21))
    assert whole[-1]["epoch"] > 1
    for key in ("loss", "ppl", "lr", "grad_norm", "tokens", "epoch"):
        assert [record[key] for record in whole] == [record[key] for record in parts]


def test_metrics_have_the_documented_fields(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, SMALL)
    run = tmp_path / "run"
    cli("train", config, "--run", run, *settings("training.max_steps=7"))
    train, dev = metrics(run, "train"), metrics(run, "dev")
    named = {"step", "loss", "ppl", "lr", "grad_norm", "tokens", "tokens_per_s", "elapsed_s"}
    assert all(named <= record.keys() for record in train)
    assert [record["step"] for record in dev] == [5, 7]  # the last update is always validated
    assert all({"step", "loss", "ppl", "bleu", "elapsed_s"} <= record.keys() for record in dev)
    assert train[0]["lr"] == pytest.approx(0.006 / 100)
    elapsed = [record["elapsed_s"] for record in train]
    assert elapsed == sorted(elapsed)
    state = json.loads((run / "checkpoints/last/state.json").read_text())
    assert state["step"] == 7
    assert state["tokens"] == train[-1]["tokens"]


def test_a_real_signal_saves_the_update_and_the_same_command_goes_on(
    cli: Cli, tmp_path: Path
) -> None:
    config = write_task(tmp_path, copy, SMALL)
    run = tmp_path / "run"
    endless = settings("training.max_steps=0", "training.save_every=1000000")
    command = [sys.executable, "-m", "nmt", "train", str(config), "--run", str(run), *endless]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (run / "metrics.jsonl").exists() or not metrics(run, "dev"):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"stopped and saved; the same command goes on" in said
    stopped = json.loads((run / "checkpoints/last/state.json").read_text())["step"]
    limit = [*endless, "--set", f"training.max_steps={stopped + 2}"]
    again = cli("train", config, "--run", run, *limit)
    assert f"going on from update {stopped:,}" in again.stdout
    assert [record["step"] for record in metrics(run, "train")] == list(range(1, stopped + 3))


def test_a_changed_key_is_refused_on_resume_with_both_values(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, SMALL)
    run = tmp_path / "run"
    cli("train", config, "--run", run, *settings("training.max_steps=2"))
    before = weights(run)
    for key, value, old in (("training.lr", "0.1", "0.006"), ("model.d_model", "64", "32")):
        changed = settings("training.max_steps=4", f"{key}={value}")
        refused = cli("train", config, "--run", run, *changed, status=2)
        assert f"{key} was {old}, is {value}" in refused.stderr
    assert weights(run) == before
    refused = cli("train", config, "--run", run, *settings(), "--no-resume", status=2)
    assert "has checkpoints, and --no-resume was asked for" in refused.stderr
    assert weights(run) == before
    changed = settings("training.max_steps=4", "training.log_every=2", "training.lr=0.1")
    went_on = cli("train", config, "--run", run, *changed, "--override", "training.lr")
    assert "training.lr was 0.006, is 0.1, as --override says" in went_on.stderr
    assert "going on from update 2" in went_on.stdout
    assert metrics(run, "train")[-1]["lr"] == pytest.approx(0.1 * 4 / 100)


def test_a_pair_that_fits_in_no_group_is_named_before_the_first_update(
    cli: Cli, tmp_path: Path
) -> None:
    config = write_task(tmp_path, copy, SMALL)
    for side in ("src", "tgt"):
        with (tmp_path / f"train.{side}").open("a") as file:
            file.write("ba be bi " * 40 + "\n")
    run = tmp_path / "run"
    refused = cli("train", config, "--run", run, *settings(), status=2)
    assert f"{tmp_path}/train.src" in refused.stderr or f"{tmp_path}/train.tgt" in refused.stderr
    assert "line 121: its longer side has" in refused.stderr
    assert "(64)" in refused.stderr
    assert not (run / "checkpoints").exists()


NO_MASK = """
import torch
import nmt.model.transformer as transformer
transformer.keep_past = lambda n: torch.ones(1, 1, n, n, dtype=torch.bool)
"""
MAIN = """
import nmt.cli
nmt.cli.main()
"""


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_model_that_sees_the_future_is_found_out(is_masked: bool, tmp_path: Path) -> None:
    """With the causal mask off, teacher forcing looks perfect and free decoding is worthless."""
    config = write_task(tmp_path, copy, {"train": 40, "dev": 40, "test": 5})
    for side in ("src", "tgt"):
        text = (tmp_path / f"train.{side}").read_text()
        (tmp_path / f"dev.{side}").write_text(text)
    keys = [
        "clean.keep_test_overlap=true",
        "training.max_steps=150",
        "training.validate_every=150",
        "training.warmup_steps=50",
    ]
    options = [word for key in keys for word in ("--set", key)]
    arguments = ["train", str(config), "--run", str(tmp_path / "run"), *options]
    script = MAIN if is_masked else NO_MASK + MAIN
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    [dev] = metrics(tmp_path / "run", "dev")
    assert dev["accuracy"] > 0.9
    assert dev["bleu"] > 90 if is_masked else dev["bleu"] < 50
    assert ("these contradict each other" in done.stderr) != is_masked


def test_the_copy_task_is_no_false_alarm(copy_run: Path) -> None:
    dev = metrics(copy_run, "dev")[-1]
    assert dev["accuracy"] > 0.9
    assert dev["bleu"] > 90


def test_every_weight_that_was_saved_is_finite(copy_run: Path) -> None:
    tensors = load_file(copy_run / "checkpoints/best/model.safetensors")
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prepared(tmp_path_factory.mktemp("task"))


@pytest.mark.parametrize(
    ("best_by", "name", "best"),
    [("bleu", "BLEU", max), ("chrf", "chrF", max), ("loss", "loss", min)],
)
def test_the_best_and_patience_go_by_the_score_that_is_chosen(
    best_by: str, name: str, best: Callable[[list[float]], float], prepared: Path
) -> None:
    """At a rate that ruins the model after some updates; the first of equal scores is the best."""
    run = new_run(prepared, best_by)
    keys = {"best_by": best_by, "patience": 4, "validate_every": 2, "lr": 0.3, "warmup_steps": 40}
    command = train(prepared, run, ENDLESS | {f"training.{key}": keys[key] for key in keys})
    said = run_ranks(prepared.parent, 1, command).said()
    scores = [line[best_by] for line in metrics(run, "dev")]
    place = scores.index(best(scores))
    assert len(scores) == place + 1 + 4
    ended = state(run)
    assert (ended["best_score"], ended["best_step"]) == (scores[place], 2 * (place + 1))
    assert (ended["score"], ended["bad_validations"]) == (scores[-1], 4)
    assert f"finished (4 validations without a better {name}); best dev {name} " in said
    assert (run / "checkpoints/best").readlink().name == f"step-{ended['best_step']:06d}"


def test_epochs_end_a_training_and_a_raised_limit_goes_on(prepared: Path) -> None:
    run = new_run(prepared, "epochs")
    for number in (2, 3):
        limits = {"training.max_steps": 0, "training.max_epochs": number}
        said = run_ranks(prepared.parent, 1, train(prepared, run, limits)).said()
        assert f"finished ({number} epochs)" in said
        lines = metrics(run, "train")
        assert [line["epoch"] for line in lines[-2:]] == [number - 1, number]
    assert "going on from update" in said


def test_time_ends_a_training_and_counts_all_its_sessions(prepared: Path) -> None:
    run = new_run(prepared, "time")
    run_ranks(prepared.parent, 1, train(prepared, run, {"training.max_steps": 20}))
    limit_s = state(run)["elapsed_s"] + 0.5
    limits = {"training.max_steps": 0, "training.max_minutes": limit_s / 60}
    assert " minutes); best" in run_ranks(prepared.parent, 1, train(prepared, run, limits)).said()
    elapsed = [line["elapsed_s"] for line in metrics(run, "train")]
    assert elapsed == sorted(elapsed)
    assert elapsed[-2] - 0.001 < limit_s <= elapsed[-1] + 0.001


def test_a_run_begins_with_the_weights_and_pieces_of_another(prepared: Path) -> None:
    """On both ranks; at a rate that all but leaves them alone."""
    other, run = new_run(prepared, "other"), prepared.parent / "tuned"
    run_ranks(prepared.parent, 1, train(prepared, other, {"training.max_steps": 8}))
    keys = {"training.init_from": other, "training.max_steps": 2, "training.lr": 1e-9}
    run_ranks(prepared.parent, 2, train(prepared, run, keys))
    assert (run / "vocab.model").read_bytes() == (other / "vocab.model").read_bytes()
    ours, theirs = (load_file(each / "checkpoints/best/model.safetensors") for each in (run, other))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], atol=1e-6, rtol=0)
    assert metrics(run, "dev")[0]["loss"] == pytest.approx(metrics(other, "dev")[0]["loss"])


@pytest.mark.parametrize(
    ("progress", "limits", "reason"),
    [
        (Progress(step=9), {"max_steps": 10}, ""),
        (Progress(step=10), {"max_steps": 10}, "10 updates"),
        (Progress(step=10), {"max_steps": 0}, ""),
        (Progress(epoch=2), {"max_epochs": 2}, "2 epochs"),
        (Progress(elapsed_s=59), {"max_minutes": 1}, ""),
        (Progress(elapsed_s=60), {"max_minutes": 1}, "1 minutes"),
        (Progress(bad_validations=2), {"patience": 3}, ""),
        (Progress(bad_validations=3), {"patience": 3}, "3 validations without a better BLEU"),
        (Progress(bad_validations=3), {}, ""),
    ],
)
def test_limits(progress: Progress, limits: dict[str, int], reason: str) -> None:
    assert why_finished(progress, TrainingConfig(**limits)) == reason
