"""metrics.jsonl and its twin for TensorBoard: strict, complete, and right after a resume."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny import copy, write_task

from nmt.config import TrainingConfig
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.training.metrics import Metrics

FULL = Path("/dev/full")
README = Path(__file__).parents[2] / "README.md"
TRAIN = set("epoch loss ppl lr grad_norm tokens tokens_per_s skipped elapsed_s".split())
DEV = set("epoch loss ppl accuracy bleu chrf elapsed_s".split())
BOTH = TrainingConfig(tensorboard=True)


def record(step: int, loss: float | None) -> dict[str, Any]:
    return {"kind": "train", "step": step, "loss": loss, "lr": 0.5}


def scalars(run: Path, name: str) -> dict[int, float]:
    """Return what TensorBoard would show: value by update."""
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    if name not in events.Tags()["scalars"]:
        return {}
    return {event.step: event.value for event in events.Scalars(name)}


def test_tensorboard_shows_what_the_file_holds(tmp_path: Path) -> None:
    metrics = Metrics(RunFolder(tmp_path), 0, BOTH)
    for step, loss in ((1, 4.0), (2, None), (3, 2.0)):
        metrics.write(record(step, loss))
    metrics.write({"kind": "dev", "step": 3, "bleu": 20.5})
    # An update that was skipped has no loss.
    assert scalars(tmp_path, "train/loss") == {1: 4.0, 3: 2.0}
    assert scalars(tmp_path, "train/lr") == {1: 0.5, 2: 0.5, 3: 0.5}
    assert scalars(tmp_path, "dev/bleu") == {3: 20.5}
    assert scalars(tmp_path, "train/step") == {}


def test_updates_that_are_done_again_stand_there_once(tmp_path: Path) -> None:
    first = Metrics(RunFolder(tmp_path), 0, BOTH)
    for step in range(1, 6):
        first.write(record(step, float(step)))
    again = Metrics(RunFolder(tmp_path), 2, BOTH)
    again.write(record(3, 30.0))
    assert scalars(tmp_path, "train/loss") == {1: 1.0, 2: 2.0, 3: 30.0}
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == [' "step": 1', ' "step": 2', ' "step": 3']


def test_a_line_that_a_kill_cut_short_is_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"kind": "train", "step": 1}\n{"kind": "train", "st')
    Metrics(RunFolder(tmp_path), 5, TrainingConfig())
    assert file.read_text() == '{"kind": "train", "step": 1}\n'


@pytest.mark.parametrize("line", ["\0\0", "7", '{"kind": "train"}', '{"step": "x"}'])
def test_a_line_that_is_not_ours_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text(f'{{"kind": "train", "step": 1}}\n{line}\n')
    with pytest.raises(UserError, match="metrics.jsonl, line 2: this is no line that nmt wrote"):
        Metrics(RunFolder(tmp_path), 5, TrainingConfig())


def test_a_nan_is_never_written(tmp_path: Path) -> None:
    metrics = Metrics(RunFolder(tmp_path), 0, TrainingConfig())
    with pytest.raises(ValueError, match="not JSON compliant"):
        metrics.write(record(1, float("nan")))
    assert (tmp_path / "metrics.jsonl").read_text() == ""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full disk to write to")
def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    metrics = Metrics(RunFolder(tmp_path), 0, TrainingConfig())
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").symlink_to(FULL)
    with pytest.raises(UserError, match="metrics.jsonl: cannot be written .No space left on dev"):
        metrics.write(record(1, 4.0))


def test_without_the_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as if not installed
    with pytest.raises(UserError, match=r"install it with `pip install 'nmt\[tensorboard\]'`"):
        Metrics(RunFolder(tmp_path), 0, BOTH)
    Metrics(RunFolder(tmp_path), 0, TrainingConfig())


def test_readme_tells_each_field_of_both_kinds() -> None:
    """A cell that is empty says that a line of that kind does not have it."""
    table = README.read_text().partition("| key | train | dev |\n|---|---|---|\n")[2]
    told: tuple[set[str], set[str]] = (set(), set())
    for row in table.partition("\n\n")[0].splitlines():
        keys, *cells = row.split("|")[1:-1]
        for fields, cell in zip(told, cells, strict=True):
            fields.update(re.findall("`(.+?)`", keys) if cell.strip() else [])
    assert told == (TRAIN | {"step"}, DEV | {"step"})


def test_the_fields_of_a_real_training(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, {"train": 60, "dev": 3, "test": 3})
    run = tmp_path / "run"
    keys = ["tensorboard=true", "max_steps=2", "log_every=1"]
    cli(
        "train",
        config,
        "--run",
        run,
        *(word for key in keys for word in ("--set", f"training.{key}")),
    )
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    fields = [(line["kind"], line["step"], line.keys() - {"kind", "step"}) for line in lines]
    assert fields == [("train", 1, TRAIN), ("train", 2, TRAIN), ("dev", 2, DEV)]
    for name in TRAIN:
        assert scalars(run, f"train/{name}").keys() == {1, 2}
    for name in DEV:
        assert scalars(run, f"dev/{name}").keys() == {2}
