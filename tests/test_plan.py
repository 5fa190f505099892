"""nmt plan: what it measures is true, and it leaves the run as it was."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Cli
from prepared import prepare_small, write_small
from tiny import copy, write_task

from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.model.transformer import Transformer
from nmt.plan import measure, plan
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import load_vocabs
from nmt.training.feed import Feed
from nmt.training.step import Learner, UpdateResult


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of 60 pairs, prepared."""
    return prepare_small(write_small(tmp_path_factory.mktemp("plan")))[0]


def plan_of(run: RunFolder, *keys: str, seconds: float = 0) -> str:
    overrides = [f"training.{key}" for key in ("precision=fp32", *keys)]
    config = load_config(run.config_file, overrides)
    return "\n".join(plan(config, run, Sources(run.path / "cache"), seconds))


class Watched(Learner):
    """A learner that keeps when each of its updates began and ended."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.times: list[tuple[float, float]] = []

    def update(self, batches: Sequence[Batch], step: int) -> UpdateResult:
        began = time.monotonic()
        result = super().update(batches, step)
        self.times.append((began, time.monotonic()))
        return result


def watched(run: RunFolder) -> tuple[Watched, Feed]:
    config = load_config(run.config_file)
    vocabs = load_vocabs(config, run)
    model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
    return Watched(model, config.training, torch.float32), Feed(config, run, vocabs)


def number(pattern: str, said: str) -> float:
    found = re.search(pattern, said, re.M)
    assert found, said
    return float(found.group(1).replace(",", ""))


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_it_prepares_and_writes_nothing_of_training(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, {"train": 120, "dev": 3, "test": 3})
    run = tmp_path / "run"
    said = cli("plan", config, "--run", run, "--seconds", 0).stdout
    assert {path.name for path in run.iterdir()} == {
        "config.yaml",
        "data",
        "run.json",
        "vocab.model",
    }
    assert re.search(r"^speed +[\d,]+ target tokens/s, 3 updates in [\d.]+ s$", said, re.M)
    assert re.search(r"^model +[\d,]+ parameters, on cpu in \w+$", said, re.M)
    assert re.search(r"^end +after 800 updates \(max_steps\), about \d", said, re.M)
    assert "advice: model.dropout is 0, in the paper 0.1" in said
    # A process that holds torch has some 100 MB, and this one no GB.
    assert 100 < number(r"^memory +([\d.]+) MB at the peak", said) < 1000


def test_a_trained_run_stays_as_it_is_and_its_checkpoints_have_the_size_that_is_told(
    copy_run: Path,
) -> None:
    before = stamps(copy_run)
    said = plan_of(RunFolder(copy_run))
    assert stamps(copy_run) == before
    files = (copy_run / "checkpoints/step-000800").glob("*.safetensors")
    size = sum(path.stat().st_size for path in files) / 1e6
    assert number(r"checkpoints of ([\d.]+) MB", said) == pytest.approx(size, rel=0.15)
    data = sum(path.stat().st_size for path in (copy_run / "data").rglob("*")) / 1e6
    assert number(r"and ([\d.]+) MB of data", said) == pytest.approx(data, abs=0.06)


def test_what_is_measured_is_what_the_store_holds(small: RunFolder) -> None:
    learner, feed = watched(small)
    store = TokenStore(small.store)
    measured = measure(learner, feed, seconds=0)
    assert measured.num_updates == 3
    assert measured.elapsed_s > 0
    groups = [rows for update in feed.epoch(0)[:3] for rows in update]
    src, tgt = store.lengths("src"), store.lengths("tgt")
    rows = np.concatenate(groups)
    assert measured.tgt_tokens == tgt[rows].sum()
    assert measured.real_places == src[rows].sum() + tgt[rows].sum()
    assert measured.places == sum(
        len(rows) * (src[rows].max() + tgt[rows].max()) for rows in groups
    )


def test_it_trains_for_the_time_that_is_given(small: RunFolder) -> None:
    """It ends with the update in which the time is over: the one before ended in time."""
    learner, feed = watched(small)
    measured = measure(learner, feed, seconds=1)
    assert measured.elapsed_s >= 1
    assert measured.num_updates == len(learner.times) >= 3
    assert len(learner.times) == 3 or learner.times[-2][1] - learner.times[0][0] < 1


@pytest.mark.parametrize(
    ("limits", "end", "epochs"),
    [
        (["max_steps=7"], r"after 7 updates \(max_steps\), about 0:0\d and validations", r"[\d.]+"),
        (["max_steps=0", "max_epochs=3"], r"after \d+ updates \(max_epochs\)", r"3\.0"),
        (["max_steps=9", "max_epochs=200"], r"after 9 updates \(max_steps\)", r"[\d.]+"),
        (
            ["max_steps=900000000", "max_minutes=2"],
            r"after [12]:\d\d \(max_minutes\), at most [\d,]+ updates and validations",
            r"[\d,.]+",
        ),
        (["max_steps=0"], "no limit is set", "no end,"),
    ],
)
def test_the_first_limit_ends_it(
    small: RunFolder, limits: list[str], end: str, epochs: str
) -> None:
    said = plan_of(small, *limits)
    assert re.search(rf"^end +{end}", said, re.M), said
    assert re.search(rf"^epochs +{epochs} of \d+ updates$", said, re.M), said


def test_disk_counts_the_checkpoints_that_stay(small: RunFolder) -> None:
    kept = {
        (): 3 + 1 + 1,
        ("keep=5", "keep_best=2"): 5 + 2 + 1,
        ("keep_every=10", "max_steps=100"): 3 + 1 + 1 + 10,
    }
    for keys, count in kept.items():
        assert f" {count} checkpoints of" in plan_of(small, *keys)


def test_advice_comes_last(small: RunFolder) -> None:
    said = plan_of(small, "max_steps=20").splitlines()
    advice = [line for line in said if line.startswith("advice: ")]
    assert said[-len(advice) :] == advice
    assert any(
        "warmup_steps is 4,000, but training ends after 20 updates" in line for line in advice
    )
