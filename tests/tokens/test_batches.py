"""Groups and updates: what they hold, how full they are, and what decides it."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from nmt.tokens.batches import Planner, Update, make_batch, pad, shift
from nmt.tokens.store import Ints, TokenStore, make_rows, write_store
from nmt.tokens.vocab import PAD


def realistic_lengths(num_rows: int) -> tuple[Ints, Ints]:
    """Return lengths as of news text: log-normal sources, targets of a like length."""
    rng = np.random.default_rng(5)
    src = np.exp(rng.normal(3.1, 0.6, num_rows)).clip(2, 200)
    tgt = (src * np.exp(rng.normal(0.05, 0.2, num_rows))).clip(2, 200)
    return src.astype(np.int64), tgt.astype(np.int64)


def planner(
    lengths: tuple[Ints, Ints],
    *,
    weights: list[float] | None = None,
    batch_tokens: int = 1500,
    group_tokens: int = 4096,
    seed: int = 1,
) -> Planner:
    given = np.ones(len(lengths[0])) if weights is None else np.array(weights)
    return Planner(*lengths, given, batch_tokens, group_tokens, seed)


def same(length: int, num_rows: int) -> tuple[Ints, Ints]:
    return np.full(num_rows, length), np.full(num_rows, length)


def rows_of(updates: list[Update]) -> list[int]:
    return [int(row) for update in updates for group in update for row in group]


def as_lists(updates: list[Update]) -> list[list[list[int]]]:
    return [[group.tolist() for group in update] for update in updates]


def padded_size(lengths: tuple[Ints, Ints], group: Ints) -> int:
    return len(group) * max(int(side[group].max()) for side in lengths)


@pytest.mark.parametrize(
    ("batch_tokens", "group_tokens"), [(200, 200), (1500, 4096), (10_000, 1000), (25_000, 4096)]
)
def test_every_row_once_in_groups_and_updates_within_their_limits(
    batch_tokens: int, group_tokens: int
) -> None:
    lengths = realistic_lengths(3000)
    plan = planner(lengths, batch_tokens=batch_tokens, group_tokens=group_tokens)
    updates = plan.epoch(0)
    assert sorted(rows_of(updates)) == list(range(3000))
    for update in updates:
        sizes = [padded_size(lengths, group) for group in update]
        assert sizes == plan.padded_sizes(update)
        assert max(sizes) <= min(batch_tokens, group_tokens)
        assert sum(sizes) <= batch_tokens


def test_one_long_pair_does_not_swell_the_group_of_the_short_ones() -> None:
    lengths = np.array([60, *[3] * 100]), np.array([40, *[3] * 100])
    updates = planner(lengths, batch_tokens=64).epoch(0)
    groups = [group for update in updates for group in update]
    assert max(padded_size(lengths, group) for group in groups) <= 64
    assert sorted(len(group) for group in groups) == [1, 16, *[21] * 4]
    assert sorted(rows_of(updates)) == list(range(101))


def test_groups_are_as_large_as_the_limit_admits() -> None:
    lengths = realistic_lengths(3000)
    plan = planner(lengths, batch_tokens=1000, group_tokens=1000)
    groups = plan.groups(np.arange(3000))
    for group, following in zip(groups, groups[1:], strict=False):
        assert padded_size(lengths, np.append(group, following[0])) > 1000


def test_an_update_is_filled_until_the_next_group_does_not_fit() -> None:
    lengths = realistic_lengths(3000)
    updates = planner(lengths, batch_tokens=10_000, group_tokens=1000).epoch(0)
    for update, following in zip(updates, updates[1:], strict=False):
        sizes = [padded_size(lengths, group) for group in (*update, following[0])]
        assert sum(sizes) > 10_000


@pytest.mark.parametrize(
    ("length", "limit", "expected"), [(64, 64, 1), (33, 64, 1), (32, 64, 2), (1, 64, 64)]
)
def test_groups_at_the_edge_of_the_limit(length: int, limit: int, expected: int) -> None:
    groups = planner(same(length, 192), batch_tokens=limit).groups(np.arange(192))
    assert {len(group) for group in groups} == {expected}


def test_padding_is_a_small_share() -> None:
    lengths = realistic_lengths(20_000)
    for batch_tokens in (1500, 25_000):
        updates = planner(lengths, batch_tokens=batch_tokens).epoch(0)
        groups = [group for update in updates for group in update]
        padded = sum(len(group) * int(side[group].max()) for group in groups for side in lengths)
        real = int(lengths[0].sum() + lengths[1].sum())
        assert 1 - real / padded < 0.10


def test_rows_of_one_longest_side_are_grouped_by_the_other() -> None:
    tgt = np.tile([2, 10, 20], 100)
    plan = planner((np.full(300, 20), tgt), batch_tokens=2000)
    groups = plan.groups(np.arange(300))
    assert [set(tgt[group].tolist()) for group in groups] == [{20}, {10}, {2}]


def test_an_epoch_is_a_pure_function_of_seed_and_number() -> None:
    lengths = realistic_lengths(500)
    weights = [0.5] * 250 + [1.5] * 250
    plan = planner(lengths, weights=weights)
    in_order = [as_lists(plan.epoch(number)) for number in range(3)]
    assert as_lists(planner(lengths, weights=weights).epoch(2)) == in_order[2]
    assert as_lists(plan.epoch(0)) == in_order[0]
    assert in_order[0] != in_order[1] != in_order[2]
    assert as_lists(planner(lengths, weights=weights, seed=2).epoch(0)) != in_order[0]


def test_rows_meet_others_in_every_epoch() -> None:
    """Many rows share a length; a sort that starts from the same order would regroup the same."""
    plan = planner(realistic_lengths(2000), batch_tokens=400)
    epochs = [
        {frozenset(group.tolist()) for update in plan.epoch(number) for group in update}
        for number in range(2)
    ]
    assert len(epochs[0] & epochs[1]) < 0.2 * len(epochs[0])


def test_updates_come_in_no_order_of_length() -> None:
    lengths = realistic_lengths(3000)
    updates = planner(lengths).epoch(0)
    longest = [float(lengths[0][update[0]].max()) for update in updates]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 5 / math.sqrt(len(longest))


def test_an_update_mixes_lengths() -> None:
    lengths = realistic_lengths(3000)
    updates = planner(lengths, batch_tokens=10_000, group_tokens=1000).epoch(0)
    spreads = [
        max(lengths[0][group].max() for group in update)
        / min(lengths[0][group].max() for group in update)
        for update in updates[:-1]
    ]
    assert min(spreads) > 1.5


def test_weights_say_how_often_a_row_is_in_an_epoch() -> None:
    num = 2000
    weights = [2.0] * num + [0.5] * num + [1.25] * num
    plan = planner(same(10, 3 * num), weights=weights)
    counts = np.bincount(rows_of(plan.epoch(0)), minlength=3 * num)
    twice, half, more = counts.reshape(3, num)
    assert set(twice.tolist()) == {2}
    assert set(half.tolist()) == {0, 1}
    assert set(more.tolist()) == {1, 2}
    assert abs(half.mean() - 0.5) < 5 * math.sqrt(0.25 / num)
    assert abs(more.mean() - 1.25) < 5 * math.sqrt(0.1875 / num)
    following = np.bincount(rows_of(plan.epoch(1)), minlength=3 * num).reshape(3, num)[1]
    assert 0.4 < np.not_equal(half, following).mean() < 0.6


def test_an_epoch_may_be_empty_where_weights_are_small() -> None:
    plan = planner(same(10, 1), weights=[0.5])
    sizes = {len(rows_of(plan.epoch(number))) for number in range(20)}
    assert sizes == {0, 1}


def test_shift_as_the_decoder_reads_it() -> None:
    tgt_in_BT, tgt_out_BT, real_N = shift(torch.tensor([[9, 2, PAD], [7, 8, 2]]))
    assert tgt_in_BT.tolist() == [[1, 9, 2], [1, 7, 8]]
    assert tgt_out_BT.tolist() == [[9, 2, PAD], [7, 8, 2]]
    assert real_N.tolist() == [0, 1, 3, 4, 5]


def test_pad_fills_up_to_the_longest() -> None:
    assert pad([[5, 2], [7, 8, 2], [2]]).tolist() == [[5, 2, PAD], [7, 8, 2], [2, PAD, PAD]]
    assert pad([[5, 2]]).dtype == torch.int64


def test_a_batch_holds_the_rows_of_the_store(tmp_path: Path) -> None:
    src, tgt = [[5, 2], [6, 7, 8, 2], [9, 2]], [[15, 16, 2], [17, 2], [2]]
    numbers = pa.array([0, 0, 0], pa.int32()), pa.array([1, 2, 3], pa.int64())
    with write_store(tmp_path / "train.arrow") as writer:
        writer.write(make_rows(src, tgt, *numbers))
    batch = make_batch(TokenStore(tmp_path / "train.arrow"), np.array([2, 0]))
    assert batch.src_BS.tolist() == [[9, 2], [5, 2]]
    assert batch.tgt_in_BT.tolist() == [[1, 2, PAD], [1, 15, 16]]
    assert batch.tgt_out_BT.tolist() == [[2, PAD, PAD], [15, 16, 2]]
    assert all(ids.dtype == torch.int64 for ids in batch)
    moved = batch.to(torch.device("meta"))
    assert {ids.device.type for ids in moved} == {"meta"}
