"""What one rank meets, all act on together: memory, NaN, signals, kills, delay; nobody hangs."""

import math
import os
import resource
import signal
import sys
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ranks import (
    ENDLESS,
    Ranks,
    at_updates,
    new_run,
    no_fault,
    records,
    run_ranks,
    state,
    train,
    wait_for_update,
    weights,
    write_prepared,
)
from safetensors.torch import load_file

import nmt.training.step as step_module
from nmt.tokens.batches import Batch
from nmt.training import loop
from nmt.training.loss import LossSums
from nmt.training.step import Learner


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prepared(tmp_path_factory.mktemp("task"))


def run_out_of_memory() -> None:
    """Ask the allocator for more than any machine has."""
    torch.empty(1 << 60)


def spoil(factor: float) -> None:
    """Let the next loss, and with it the gradient, be NaN or infinite."""
    batch_loss = step_module.batch_loss

    def spoiled(*arguments: object) -> LossSums:
        step_module.batch_loss = batch_loss
        sums = batch_loss(*arguments)  # type: ignore[arg-type]
        return sums._replace(loss=sums.loss * factor)

    step_module.batch_loss = spoiled  # type: ignore[assignment]


make_nan, make_infinite = partial(spoil, math.nan), partial(spoil, math.inf)


def be_late() -> None:
    time.sleep(6)


def kill_this_rank() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("act", "trouble"),
    [
        (run_out_of_memory, "rank 1 ran out of memory"),
        (make_nan, "the gradient was not finite"),
        (make_infinite, "the gradient was not finite"),
    ],
    ids=["memory", "NaN", "infinite"],
)
def test_trouble_on_one_rank_is_skipped_by_all_together(
    act: object, trouble: str, config: Path, request: pytest.FixtureRequest
) -> None:
    run = new_run(config, request.node.callspec.id)
    keys = {"training.max_steps": 12, "training.ema": 0.9}
    fault = partial(at_updates, {3, 7}, 1, act)
    ranks = run_ranks(config.parent, 2, train(config, run, keys), fault)
    lines = records(run)
    assert [line["step"] for line in lines] == [*range(1, 13)]
    assert [line["skipped"] for line in lines] == [0, 0, *[1] * 4, *[2] * 6]
    assert [line["step"] for line in lines if line["loss"] is None] == [3, 7]
    assert state(run)["skipped"] == 2
    assert f"update 3: {trouble}; skipped, its pairs are in" in ranks.said()
    for tensor in load_file(run / "checkpoints/last/optimizer.safetensors").values():
        assert bool(tensor.isfinite().all())
    # Each pair of the update is there, of both ranks: corpus, line, source, target.
    pairs = (run / "skipped/step-000003.tsv").read_text(encoding="utf-8").splitlines()
    texts = (config.parent / "train.src").read_text(encoding="utf-8").splitlines()
    assert len(pairs) > 10
    for pair in pairs:
        corpus, number, src, tgt = pair.split("\t")
        assert src == tgt == texts[int(number) - 1]
        assert corpus in (f"{config.parent}/train.src", f"{config.parent}/train.tgt")


def test_a_skipped_update_leaves_weights_and_moments_alone(config: Path) -> None:
    """A run that is skipped at its last two updates has the weights of two updates before."""
    runs = [new_run(config, f"alone-{number}") for number in range(2)]
    run_ranks(config.parent, 2, train(config, runs[0], {"training.max_steps": 5}))
    fault = partial(at_updates, {6, 7}, 1, run_out_of_memory)
    run_ranks(config.parent, 2, train(config, runs[1], {"training.max_steps": 7}), fault)
    assert weights(runs[0]) == weights(runs[1])


@pytest.mark.parametrize(
    ("act", "advice"),
    [
        (
            run_out_of_memory,
            "rank 1 ran out of memory, as in the two updates before; lower training.device_tokens",
        ),
        (make_nan, "the gradient was not finite, as in the two updates before; lower training.lr"),
    ],
)
def test_trouble_three_times_in_a_row_stops_all_ranks(
    act: object, advice: str, config: Path
) -> None:
    run = new_run(config, f"thrice-{advice[:6]}")
    fault = partial(at_updates, {7, 8, 9}, 1, act)
    keys = ENDLESS | {"training.save_every": 5}
    ranks = run_ranks(config.parent, 2, train(config, run, keys), fault, status=2)
    for rank in range(2):
        assert f"error: update 9: {advice}" in ranks.said(rank)
        assert "Traceback" not in ranks.said(rank)
    assert len([*(run / "skipped").iterdir()]) == 3
    assert state(run)["step"] == 5


def test_a_full_disk_stops_all_ranks_and_the_same_command_goes_on(config: Path) -> None:
    run = new_run(config, "full")
    command = train(config, run, {"training.save_every": 5, "training.max_steps": 12})
    ranks = run_ranks(config.parent, 2, command, partial(at_updates, {8}, 0, fill_disk), status=2)
    for rank in range(2):
        said = ranks.said(rank)
        assert "step-000010: this checkpoint could not be saved (" in said
        assert "File too large" in said
        assert "The last checkpoint, step-000005, is whole: the same command goes on" in said
        assert "Traceback" not in said
    assert state(run)["step"] == 5
    assert "going on from update 5" in run_ranks(config.parent, 2, command).said()
    whole = new_run(config, "not-full")
    run_ranks(config.parent, 2, train(config, whole, {"training.max_steps": 12}))
    assert weights(run) == weights(whole)


def fill_disk() -> None:
    """Let no file grow beyond 100 kB: the metrics fit in that, a checkpoint does not."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))


def test_patience_stops_all_ranks_together(config: Path) -> None:
    run = new_run(config, "patience")
    keys = ENDLESS | {"training.validate_every": 2, "training.patience": 2}
    ranks = run_ranks(config.parent, 2, train(config, run, keys | {"training.lr": 1e-9}))
    assert "finished (2 validations without a better BLEU)" in ranks.said()
    assert state(run)["step"] == 6


def test_trying_the_largest_group_changes_nothing(config: Path) -> None:
    runs = [new_run(config, f"tried-{number}") for number in range(2)]
    keys = {"training.max_steps": 6, "model.dropout": 0.1}
    for run, fault in zip(runs, (no_fault, try_nothing), strict=True):
        run_ranks(config.parent, 1, train(config, run, keys), fault)
    assert weights(runs[0]) == weights(runs[1])


def try_nothing() -> None:
    loop.fit_largest_group = lambda *_: 0.0


def test_where_memory_is_short_at_the_start_all_ranks_take_less_at_once(config: Path) -> None:
    """The losses stay what they are: memory splits groups by rows, it changes no update."""
    runs = [new_run(config, f"short-{number}") for number in range(2)]
    keys = {"training.max_steps": 6}
    run_ranks(config.parent, 2, train(config, runs[0], keys))
    ranks = run_ranks(config.parent, 2, train(config, runs[1], keys), take_at_most_20)
    assert "; 16 at once" in ranks.said()
    ours, theirs = ([line["loss"] for line in records(run)] for run in runs)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert state(runs[1])["skipped"] == 0
    # Where there is more memory later, the parts stay what they were.
    more = train(config, runs[1], {"training.max_steps": 7})
    assert "; 16 at once" in run_ranks(config.parent, 2, more).said()


def take_at_most_20() -> None:
    """Give the last rank too little memory for a larger group than that."""
    add_gradient = Learner.add_gradient

    def add(learner: Learner, batch: Batch) -> None:
        if os.environ["RANK"] == "1" and batch.tgt_out_BT.numel() > 20:
            run_out_of_memory()
        add_gradient(learner, batch)

    Learner.add_gradient = add  # type: ignore[method-assign]


def test_a_pair_that_memory_has_no_room_for_is_refused(config: Path) -> None:
    run = new_run(config, "no-room")
    ranks = run_ranks(config.parent, 2, train(config, run), take_nothing, status=2)
    for rank in range(2):
        assert "error: a single pair of" in ranks.said(rank)
    assert not records(run)


def take_nothing() -> None:
    Learner.add_gradient = lambda *_: run_out_of_memory()  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("number", "who"),
    [(signal.SIGTERM, (1,)), (signal.SIGUSR1, (0,)), (signal.SIGINT, (0, 1))],
    ids=["SIGTERM to the last", "SIGUSR1 to the first", "Ctrl-C to both"],
)
def test_a_signal_to_any_rank_stops_and_saves_on_all(
    number: int, who: tuple[int, ...], config: Path
) -> None:
    run = new_run(config, f"signal-{number}-{who}")
    ranks = Ranks(config.parent, 2, train(config, run, ENDLESS))
    wait_for_update(run, 3)
    ranks.signal(number, *who)
    assert ranks.statuses() == [128 + number] * 2, ranks.said()
    assert "stopped and saved; the same command goes on" in ranks.said()
    done = state(run)["step"]
    assert records(run)[-1]["step"] == done
    again = train(config, run, {"training.max_steps": done + 1})
    assert f"going on from update {done:,}" in run_ranks(config.parent, 2, again).said()


def test_a_second_ctrl_c_stops_at_once_and_a_second_sigterm_does_not(config: Path) -> None:
    for number, is_saved in ((signal.SIGINT, False), (signal.SIGTERM, True)):
        run = new_run(config, f"twice-{number}")
        fault = partial(at_updates, {3}, 1, partial(signal_twice, number))
        status = 128 + number if is_saved else 2
        ranks = Ranks(config.parent, 2, train(config, run, ENDLESS), fault)
        statuses = ranks.statuses()
        assert statuses == [status, 128 + number], [ranks.said(0), ranks.said(1)]
        assert (run / "checkpoints/last").exists() == is_saved


def signal_twice(number: int) -> None:
    for _ in range(2):
        os.kill(os.getpid(), number)


@pytest.mark.parametrize(("size", "victim"), [(2, 0), (2, 1), (4, 2)])
def test_a_rank_that_is_killed_is_named_and_the_others_end(
    size: int, victim: int, config: Path
) -> None:
    run = new_run(config, f"kill-{size}-{victim}")
    keys = ENDLESS | {"training.save_every": 5}
    ranks = Ranks(config.parent, size, train(config, run, keys))
    wait_for_update(run, 7)
    start = time.monotonic()
    ranks.signal(signal.SIGKILL, victim)
    statuses = ranks.statuses()
    assert time.monotonic() - start < 10
    assert statuses == [-9 if rank == victim else 2 for rank in range(size)]
    for rank in set(range(size)) - {victim}:
        [line] = [line for line in ranks.said(rank).splitlines() if "error:" in line]
        assert f"error: rank {victim} (" in line and line.count(" (") == 1, line
        assert "goes on from the last checkpoint" in line
    done = state(run)["step"]
    again = train(config, run, {"training.max_steps": done + 1})
    assert f"going on from update {done:,}" in run_ranks(config.parent, size, again).said()


def test_a_rank_that_is_killed_as_it_talks_is_named_alone(config: Path) -> None:
    """Though not all others talk with it, and those that do not would wait for those that do."""
    run = new_run(config, "talk")
    ranks = run_ranks(config.parent, 4, train(config, run, ENDLESS), die_talking, [2, 2, -9, 2])
    for rank in (0, 1, 3):
        [line] = [line for line in ranks.said(rank).splitlines() if "error:" in line]
        assert "error: rank 2 (" in line and line.count(" (") == 1, line


def die_talking() -> None:
    """Let rank 2 be gone when it has begun to talk for the 20th time."""
    all_gather, num_talks = dist.all_gather, count(1)

    def talk(*arguments: Any) -> object:
        if next(num_talks) == 20:
            kill_this_rank()
        return all_gather(*arguments)

    if os.environ["RANK"] == "2":
        dist.all_gather = talk


def test_a_rank_that_is_late_beyond_the_timeout_is_named(config: Path) -> None:
    """By all, though one of them comes later than the others, and waits less long."""
    run = new_run(config, "late")
    keys = ENDLESS | {"training.rank_timeout_minutes": 3 / 60}  # less than it is late
    ranks = Ranks(config.parent, 4, train(config, run, keys), dawdle)
    start = time.monotonic()
    statuses = ranks.statuses()
    assert statuses == [2, 2, 2, 2]
    assert time.monotonic() - start < 30
    for rank in range(4):
        [line] = [line for line in ranks.said(rank).splitlines() if "error:" in line]
        assert "rank 2 (" in line and "rank 0 (" not in line and "rank 1 (" not in line, line
        assert "late beyond training.rank_timeout_minutes" in line


def dawdle() -> None:
    at_updates({3}, 2, be_late)
    at_updates({3}, 1, partial(time.sleep, 1.8))


def test_what_one_rank_finds_wrong_all_say(config: Path) -> None:
    run = new_run(config, "elsewhere")
    ranks = run_ranks(config.parent, 2, train(config, run), look_elsewhere, status=2)
    for rank in range(2):
        assert "another-machine/data/train.arrow is not there" in ranks.said(rank)
        assert "the same run folder, on a file system that they share" in ranks.said(rank)
    assert "error: rank 1 (" in ranks.said()


def look_elsewhere() -> None:
    """Be a machine that has the path of the run, but not the run."""
    if os.environ["RANK"] == "1":
        place = sys.argv.index("--run") + 1
        sys.argv[place] = f"{Path(sys.argv[place]).parent}/another-machine"


def test_ranks_with_other_checkpoints_or_keys_are_refused(config: Path) -> None:
    run = new_run(config, "another-machine-2")
    run_ranks(config.parent, 1, train(config, run, {"training.max_steps": 2}))
    here = new_run(config, "here")
    ranks = run_ranks(config.parent, 2, train(config, here), partial(look_at, run), status=2)
    assert "rank 1 has another checkpoint before it than rank 0" in ranks.said()
    ranks = run_ranks(config.parent, 2, train(config, here), be_given_another_key, status=2)
    assert "rank 1 has another training before it than rank 0" in ranks.said()
    assert not records(here)


def look_at(run: Path) -> None:
    if os.environ["RANK"] == "1":
        sys.argv[sys.argv.index("--run") + 1] = str(run)


def be_given_another_key() -> None:
    if os.environ["RANK"] == "1":
        sys.argv += ["--set", "training.lr=0.5"]


def test_an_error_of_the_first_rank_while_others_wait_ends_all(config: Path) -> None:
    run = new_run(config, "changed")
    run_ranks(config.parent, 2, train(config, run, {"training.max_steps": 2}))
    start = time.monotonic()
    ranks = run_ranks(config.parent, 2, train(config, run, {"training.lr": 0.5}), status=2)
    assert time.monotonic() - start < 10
    for rank in range(2):
        assert "training.lr was 0.006, is 0.5" in ranks.said(rank)
    assert ranks.said().startswith("error: ")


def test_a_limit_below_where_a_signal_stopped_is_validated_and_saved(config: Path) -> None:
    run = new_run(config, "limit")
    fault = partial(at_updates, {4}, 0, stop_this_rank)
    run_ranks(config.parent, 2, train(config, run, ENDLESS), fault, status=143)
    assert not records(run, "dev")
    ranks = run_ranks(config.parent, 2, train(config, run, {"training.max_steps": 4}))
    assert "finished (4 updates); best dev BLEU" in ranks.said()
    assert [line["step"] for line in records(run, "dev")] == [4]
    assert state(run)["best_step"] == 4
    before = weights(run)
    again = run_ranks(config.parent, 2, train(config, run, {"training.max_steps": 4}))
    assert "finished (4 updates)" in again.said()
    assert weights(run) == before


def stop_this_rank() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
