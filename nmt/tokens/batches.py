"""Which rows an update holds, a pure function of (seed, epoch, keys), and their tensors."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.data.shards import Ints
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import PAD, START

Update = list[Ints]
"""The groups of an update; a group is the rows that go through the model at once."""


class Batch(NamedTuple):
    """A group as tensors of ids, padded at the end."""

    src_BS: Tensor
    tgt_in_BT: Tensor
    """The start token, then the target without its stop token."""
    tgt_out_BT: Tensor
    """What is to be predicted: the target with its stop token."""
    real_N: Tensor
    """Where tgt_out is no padding, as places in its flattened cells; in order.

    Made with the batch: found on a GPU, the host would have to wait for how many they are.
    """

    def pin(self) -> "Batch":
        """Return it in memory from which a GPU can fetch it while the host goes on."""
        return Batch(*(ids.pin_memory() for ids in self))

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(ids.to(device, non_blocking=True) for ids in self))


@dataclass(frozen=True)
class Planner:
    """Cuts epochs into updates. Lengths count the stop token; weights say how often a row is in."""

    src_lengths: Ints
    tgt_lengths: Ints
    weights: np.ndarray[tuple[int], np.dtype[np.float64]]
    batch_tokens: int
    group_tokens: int
    seed: int

    def epoch(self, epoch: int) -> list[Update]:
        """Return the updates of an epoch (0-based) in the order in which they are trained on."""
        rng = np.random.default_rng([self.seed, epoch])
        rows = self._draw(rng)
        groups = self.groups(rows, epoch)
        order = rng.permutation(len(groups))
        return _join(groups, self.padded_sizes(groups), order, self.batch_tokens)

    def groups(self, rows: Ints, epoch: int = 0) -> list[Ints]:
        """Cut rows into groups of like length, shortest first.

        Rows with the same longer side are sorted by how much longer their source is, up and down in
        turns, so that neighbours are alike on both sides. Where it goes up and what counts as alike
        changes with the epoch, and rows that are alike stay in the order in which they were drawn,
        so that rows meet others in every epoch.
        """
        if not len(rows):
            return []
        longest = self.longest[rows]
        surplus = (self.src_lengths[rows] - self.tgt_lengths[rows] + epoch // 2 % 2) // 2
        slope = np.where((longest + epoch) % 2 == 1, -surplus, surplus)
        # Numbers of 16 bits are sorted in linear time, which counts with millions of rows.
        keys = (slope - slope.min(), longest)
        order = np.lexsort([key.astype(np.min_scalar_type(int(key.max()))) for key in keys])
        cuts = cut(longest[order], self.limit)
        return np.split(rows[order], cuts)

    def padded_sizes(self, groups: list[Ints]) -> list[int]:
        """Return pairs x longest side of each group."""
        return [len(rows) * int(self.longest[rows].max()) for rows in groups]

    @cached_property
    def longest(self) -> Ints:
        """The longer side of each row."""
        return np.maximum(self.src_lengths, self.tgt_lengths)

    @property
    def limit(self) -> int:
        """The padded size that a group may have."""
        return min(self.batch_tokens, self.group_tokens)

    def _draw(self, rng: np.random.Generator) -> Ints:
        """Return every row as often as its weight says, the fraction by chance, in any order."""
        whole = np.floor(self.weights)
        extra = rng.random(len(self.weights)) < self.weights - whole
        return rng.permutation(np.repeat(np.arange(len(whole)), (whole + extra).astype(np.int64)))


def share(update: Update, rank: int, size: int) -> Update:
    """Return what one of `size` ranks does of an update.

    Groups go round in whole; those that are left over, too few for all, are dealt out by rows.
    """
    num_whole = len(update) - len(update) % size
    dealt = [rows[rank::size] for rows in update[num_whole:]]
    return [*update[rank:num_whole:size], *(rows for rows in dealt if len(rows))]


def make_batch(store: TokenStore, rows: Ints) -> Batch:
    """Return the tensors of a group."""
    return Batch(
        torch.from_numpy(store.gather("src", rows, PAD)),
        *shift(torch.from_numpy(store.gather("tgt", rows, PAD))),
    )


def shift(tgt_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the decoder reads, what it must say, and where that is no padding.

    `[[7, 2, 3], [8, 9, 2]]` is read as `[[1, 7, 2], [1, 8, 9]]` and real in 0, 1, 3, 4, 5.
    """
    start_B1 = torch.full_like(tgt_BT[:, :1], START)
    real_N = torch.from_numpy(np.flatnonzero(tgt_BT.numpy() != PAD))
    return torch.cat((start_B1, tgt_BT[:, :-1]), dim=1), tgt_BT, real_N


def pad(rows: list[list[int]]) -> Tensor:
    """Return lists of ids as one tensor, filled up to the longest."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def cut(longest: Ints, limit: int) -> list[int]:
    """Return where sorted rows are cut so that rows x longest stays within the limit."""
    assert longest[-1] <= limit, "a row fits in no group"
    cuts, start = [], 0
    while start < len(longest):
        most = longest[start : start + limit // int(longest[start])]
        sizes = np.arange(1, len(most) + 1) * most
        start += int(np.searchsorted(sizes, limit, side="right"))
        cuts.append(start)
    return cuts[:-1]


def _join(groups: list[Ints], sizes: list[int], order: Ints, batch_tokens: int) -> list[Update]:
    """Fill updates with groups in the given order, each up to batch_tokens."""
    updates: list[Update] = []
    room = 0
    for index in order:
        if sizes[index] > room:
            updates.append([])
            room = batch_tokens
        updates[-1].append(groups[index])
        room -= sizes[index]
    return updates
