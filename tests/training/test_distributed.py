"""However many ranks compute an update, and wherever a run stops, it is the same run."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranks import (
    Ranks,
    at_updates,
    new_run,
    records,
    run_ranks,
    state,
    train,
    weights,
    write_prepared,
)
from torch import Tensor

import nmt.training.distributed as distributed
from nmt.config import ModelConfig, TrainingConfig, load_config
from nmt.model.transformer import Transformer
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, share, shift
from nmt.tokens.padding import pad
from nmt.tokens.vocab import PAD, STOP, load_vocabs
from nmt.training.checkpoint import Progress
from nmt.training.feed import Feed
from nmt.training.step import Learner

SHARED = Path("/dev/shm")
SENTENCES = [[5, 6, STOP], [7, STOP], [*range(4, 12), STOP] * 3, [9, 9, STOP]] * 2
NO_DROPOUT = {"model.dropout": 0.0}
ALL_AT_RANDOM = {
    "model.dropout": 0.1,
    "training.subword_alpha": 0.2,
    "training.ema": 0.9,
    "training.validate_every": 4,
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prepared(tmp_path_factory.mktemp("task"))


def update_on_rank(groups: list[list[int]], folder: Path, *, on_one_machine: bool) -> None:
    """Train on this rank's share of the groups, keep what came of it, and end."""
    if not on_one_machine:
        os.environ["LOCAL_WORLD_SIZE"] = "1"
    with distributed.connect(torch.device("cpu"), 1) as ranks:
        torch.manual_seed(0)
        config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(2, 2), dropout=0.0)
        model = Transformer(config, src_vocab=12, tgt_vocab=12)
        learner = Learner(model, TrainingConfig(clip_norm=0.0), torch.float32, ranks)
        sum_, summed = ranks.sum_, []

        def sum_and_keep(buffer: Tensor) -> None:
            sum_(buffer)
            summed.append(buffer.clone())

        ranks.sum_ = sum_and_keep  # type: ignore[method-assign]
        mine = share([np.array(rows) for rows in groups], ranks.rank, ranks.size)
        batches = [pad([SENTENCES[row] for row in rows]) for rows in mine]
        result = learner.update([Batch(batch, *shift(batch)) for batch in batches], step=1)
        assert len(summed) == 1  # once an update, whatever the groups
        assert summed[0].dtype == torch.float32
        np.savez(
            folder / f"{ranks.rank}.npz",
            gradient=summed[0][:-3] / result.num_tokens,
            weights=torch.cat([weight.detach().flatten() for weight in learner.weights.values()]),
            told=[result.mean_loss, result.ppl, result.grad_norm, result.num_tokens],
        )
    raise SystemExit


@pytest.mark.parametrize("on_one_machine", [True, False], ids=["shared", "gloo"])
@pytest.mark.parametrize(
    ("size", "groups"),
    [
        (1, [[0, 1, 2, 3, 4], [5, 6, 7]]),
        (2, [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (2, [[0, 1, 2, 3, 4], [5, 6, 7]]),
        (2, [[0, 1, 2], [3], [4, 5], [6, 7]]),
        (2, [[0, 1, 2], [3, 4], [5, 6, 7]]),
        (4, [[0, 1, 2, 3, 4], [5, 6, 7]]),
        (4, [[0], [1], [2, 3], [4, 5], [6], [7]]),
    ],
    ids=["5+3", "2 ranks", "2x(5|3)", "2 x 2 groups", "2 x 1.5 groups", "4 by rows", "4 with none"],
)
def test_however_cut_an_update_is_the_same(
    size: int, groups: list[list[int]], on_one_machine: bool, tmp_path: Path
) -> None:
    found = []
    for number, case in ((1, [[*range(8)]]), (size, groups)):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        update = partial(update_on_rank, case, folder, on_one_machine=on_one_machine)
        ranks = run_ranks(folder, number, [], update)
        assert not any(any(SHARED.glob(f"nmt-{each.pid}-*")) for each in ranks.processes)
        found.append([dict(np.load(folder / f"{rank}.npz")) for rank in range(number)])
    [whole], parts = found
    for part in parts:
        np.testing.assert_allclose(part["told"], whole["told"], rtol=1e-6)
        np.testing.assert_allclose(part["gradient"], whole["gradient"], rtol=0, atol=1e-6)
        for kind in ("gradient", "weights"):
            assert part[kind].tobytes() == parts[0][kind].tobytes()
    assert whole["told"][3] == sum(map(len, SENTENCES))
    assert float(np.abs(whole["gradient"]).max()) > 1e-2


def test_ranks_meet_in_a_store_that_was_used_before(tmp_path: Path) -> None:
    """As torchrun does when it starts them again: nobody of the last start must be taken for one of
    this, and what was done is to be done again."""
    ranks = Ranks(tmp_path, 3, [], meet)
    for _ in range(3):
        assert ranks.statuses() == [0, 0, 0], [ranks.said(rank) for rank in range(3)]
        assert [ranks.said(rank) for rank in range(3)] == ["['done', None, None]\n"] * 3
        ranks.start(meet)
    ranks.statuses()


def meet() -> None:
    with distributed.connect(torch.device("cpu"), 1) as ranks:
        print(ranks.gather_objects(ranks.first(lambda: "done", "work")))
    raise SystemExit


def test_any_number_of_ranks_trains_on_the_same_pairs_in_the_same_order(config: Path) -> None:
    run = RunFolder(config.parent / "run")
    for keys in ("training.subword_alpha=0", "training.subword_alpha=0.3"):
        resolved = load_config(run.config_file, [keys])
        found = []
        for size in (1, 2, 3, 4, 8):
            feeds = [
                Feed(resolved, run, load_vocabs(resolved, run), distributed.Ranks(rank, size))
                for rank in range(size)
            ]
            places = [Progress() for _ in feeds]
            found.append([pairs_of_update(feeds, places) for _ in range(25)])
        assert all(updates == found[0] for updates in found)
        assert len({tuple(update) for update in found[0]}) == 25


def pairs_of_update(feeds: list[Feed], places: list[Progress]) -> list[Any]:
    """Return the pairs of the next update, over all ranks, sorted."""
    pairs = []
    for feed, place in zip(feeds, places, strict=True):
        for batch in feed.next_update(place):
            for src, tgt in zip(batch.src_BS.tolist(), batch.tgt_out_BT.tolist(), strict=True):
                pairs.append([[piece for piece in side if piece != PAD] for side in (src, tgt)])
    return sorted(map(str, pairs))


def test_a_run_is_the_same_on_one_two_and_four_ranks_and_when_it_moves(config: Path) -> None:
    """Also with less of a group at once, and from two ranks to four to one."""
    found = {}
    for name, sizes, keys in (
        ("one", [1], {}),
        ("two", [2], {}),
        ("four", [4], {}),
        ("cut", [2], {"training.device_tokens": 20}),
        ("moved", [2, 4, 1], {}),
    ):
        run = new_run(config, f"same-{name}")
        for number, size in enumerate(sizes, start=1):
            limit = {"training.max_steps": 24 * number // len(sizes)}
            run_ranks(config.parent, size, train(config, run, NO_DROPOUT | limit | keys))
        found[name] = records(run)
    for name in ("two", "four", "cut", "moved"):
        for key, rtol in (("loss", 1e-6), ("ppl", 3e-6), ("grad_norm", 1e-6)):
            ours, theirs = ([line[key] for line in found[run]] for run in (name, "one"))
            np.testing.assert_allclose(ours, theirs, rtol=rtol)
        for key in ("step", "tokens", "lr", "epoch"):
            assert [line[key] for line in found[name]] == [line[key] for line in found["one"]]
    assert [line["step"] for line in found["one"]] == [*range(1, 25)]


def test_a_signal_at_any_update_leaves_no_trace_in_the_run(config: Path) -> None:
    """Nothing but the updates: patience and the best score too are those of the whole run."""
    whole, parts = new_run(config, "undisturbed"), new_run(config, "disturbed")
    command = train(config, whole, ALL_AT_RANDOM | {"training.max_steps": 30})
    run_ranks(config.parent, 2, command)
    command = train(config, parts, ALL_AT_RANDOM | {"training.max_steps": 30})
    for step in (3, 9, 10, 22):
        fault = partial(at_updates, {step}, 1, stop_this_rank)
        ranks = run_ranks(config.parent, 2, command, fault, status=128 + signal.SIGTERM)
        assert "stopped and saved; the same command goes on" in ranks.said()
        assert state(parts)["step"] == step
    run_ranks(config.parent, 2, command)
    assert weights(whole) == weights(parts)
    ours, theirs = state(whole), state(parts)
    for key in ours.keys() - {"elapsed_s", "sha256"}:
        assert ours[key] == theirs[key], key
    assert ours["best_score"] is not None
    keys = {"elapsed_s", "tokens_per_s"}
    for kind in ("train", "dev"):
        lines = [
            [{key: line[key] for key in line.keys() - keys} for line in records(run, kind)]
            for run in (whole, parts)
        ]
        assert lines[0] == lines[1]


def stop_this_rank() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
