"""Two hundred kills and resumes, at random times, end with the weights of the undisturbed run."""

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import (
    Ranks,
    new_run,
    records,
    run_ranks,
    state,
    train,
    weights,
    write_prepared,
)

KEYS = {
    "model.dropout": 0.1,
    "training.subword_alpha": 0.1,
    "training.ema": 0.9,
    "training.save_every": 3,  # many kills hit a save, or what comes between two of them
    "training.validate_every": 20,
}


@pytest.mark.slow
@pytest.mark.parametrize(("size", "num_kills"), [(1, 150), (2, 50)])
def test_random_kills_leave_no_trace(size: int, num_kills: int, tmp_path: Path) -> None:
    config = write_prepared(tmp_path)
    rng = random.Random(size)
    disturbed, whole = new_run(config, "disturbed"), new_run(config, "whole")
    endless = train(config, disturbed, KEYS | {"training.max_steps": 0})
    deaths = [live(config, endless, size, rng) for _ in range(num_kills)]
    assert deaths.count(signal.SIGKILL) > num_kills / 2 and deaths.count(signal.SIGTERM) > 0
    assert state(disturbed)["step"] > num_kills
    limit = {"training.max_steps": state(disturbed)["step"] + 10}
    for run in (disturbed, whole):
        run_ranks(tmp_path, size, train(config, run, KEYS | limit))
    assert weights(disturbed) == weights(whole)
    assert told(disturbed) == told(whole)
    assert {**state(disturbed), "elapsed_s": 0, "sha256": 0} == {
        **state(whole),
        "elapsed_s": 0,
        "sha256": 0,
    }
    left = [path for path in disturbed.rglob(".*") if "partial" in path.name]
    assert not left


def live(config: Path, command: list[str], size: int, rng: random.Random) -> int:
    """Train for a moment, until a signal comes to one rank or all; return which."""
    ranks = Ranks(config.parent, size, command)
    number = signal.SIGTERM if rng.random() < 0.2 else signal.SIGKILL
    # The first tenths of a second go into the start.
    time.sleep(rng.uniform(0.0, 1.0))
    # Where one of two is killed alone, the other looks for it: a test of its own, and slow.
    ranks.signal(number, *range(size))
    statuses = ranks.statuses()
    assert set(statuses) <= {-number, 128 + number}, ranks.said()
    return number


def told(run: Path) -> list[dict[str, Any]]:
    """Return metrics.jsonl without what the clock says."""
    lines = [*records(run, "train"), *records(run, "dev")]
    return [
        {key: line[key] for key in line.keys() - {"elapsed_s", "tokens_per_s"}} for line in lines
    ]
