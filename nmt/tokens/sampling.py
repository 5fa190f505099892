"""Subword regularisation: pairs in other pieces, a pure function of (seed, epoch, update, row).

SentencePiece samples too, but since 0.2.2 one seed gives other pieces in every process.
"""

import math
from bisect import bisect
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from random import Random
from typing import NamedTuple

import numpy as np

from nmt.data.shards import Ints
from nmt.lines import META_BLANK
from nmt.tokens.batches import Batch, cut, shift
from nmt.tokens.padding import pad
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import Vocab, Vocabs

# How many lattices of words are kept, of some 2 kB each. Not those of long ones, as in Chinese a
# whole sentence is one.
_NUM_LATTICES = 1 << 15
_MAX_KEPT_CHARS = 20


class _Lattice(NamedTuple):
    """The pieces that can stand in a word, ordered by where they end.

    Flat lists, as the garbage collector looks into every list that there is.
    """

    bounds: list[int]
    """The pieces that end after n letters stand from bounds[n - 1] to bounds[n]."""
    sums: list[float]
    """Their weights, each times that of all that can stand before, summed up for each end."""
    ids: list[int]
    starts: list[int]


class PieceSampler:
    """Draws pieces that spell the same text, word by word: no piece goes on after a blank."""

    def __init__(self, vocab: Vocab, alpha: float) -> None:
        self._alpha = alpha
        self._scores = vocab.scores()
        self._pieces = vocab.pieces(range(len(vocab)))
        self._ids = {piece: piece_id for piece_id, piece in enumerate(self._pieces)}
        self._stays = [piece not in self._scores for piece in self._pieces]
        self._opens_word = [piece.startswith(META_BLANK) for piece in self._pieces]
        self._max_chars = max(map(len, self._scores))
        # A model of other makers may lack a letter that stands in its longer pieces.
        self._lacking = set("".join(self._scores)) - self._scores.keys()
        self._lattice = lru_cache(_NUM_LATTICES)(self._make_lattice)
        # BPE numbers its merges from 0 down; the scores of a unigram model are log p.
        is_bpe = all(score.is_integer() for score in self._scores.values())
        self._draw = self._drop_merges if is_bpe else self._walk_lattice

    def sample(self, ids: list[int], rng: Random) -> list[int]:
        """Return other ids for the same text; control ids, unknowns, bytes and symbols stay."""
        sampled: list[int] = []
        for word in self._words(ids):
            text = "".join([self._pieces[piece_id] for piece_id in word])
            is_kept = self._stays[word[0]] or not self._lacking.isdisjoint(text)
            sampled += word if is_kept else self._draw(text, word, rng)
        return sampled

    def _words(self, ids: list[int]) -> Iterator[list[int]]:
        """Cut ids where a word begins, and around each piece that stays."""
        stays, opens_word = self._stays, self._opens_word
        first, has_ended = 0, False
        for place, piece_id in enumerate(ids):
            if place and (has_ended or opens_word[piece_id] or stays[piece_id]):
                yield ids[first:place]
                first = place
            has_ended = stays[piece_id]
        yield ids[first:]

    def _drop_merges(self, text: str, best: list[int], rng: Random) -> list[int]:
        """Merge letters by BPE, with each merge left out of a step with probability alpha.

        Provilkov et al. 2020, algorithm 1: what was left out is open again in the next step; where
        all that could be merged is left out, the word is done.
        """
        # The best pieces took one merge a step: a word that drops none of these keeps them.
        drops = [rng.random() < self._alpha for _ in range(len(text) - len(best))]
        if True not in drops:
            return best
        is_dropped = chain(drops[: drops.index(True) + 1], self._draws(rng))
        symbols = list(text)
        ranks = [self._rank(left, right) for left, right in pairwise(symbols)]
        while (place := self._choose(ranks, is_dropped)) >= 0:
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
            del ranks[place]
            for left in range(max(0, place - 1), min(place + 1, len(ranks))):
                ranks[left] = self._rank(symbols[left], symbols[left + 1])
        return [self._ids[symbol] for symbol in symbols]

    def _choose(self, ranks: list[float], is_dropped: Iterator[bool]) -> int:
        """Return the place of the first merge, by rank and from the left, that is not dropped.

        -1 where there is none.
        """
        first = min(ranks, default=math.inf)
        if first == math.inf:
            return -1
        if not next(is_dropped):
            return ranks.index(first)
        possible = sorted((rank, place) for place, rank in enumerate(ranks) if rank < math.inf)
        return next((place for _, place in possible[1:] if not next(is_dropped)), -1)

    def _draws(self, rng: Random) -> Iterator[bool]:
        while True:
            yield rng.random() < self._alpha

    def _rank(self, left: str, right: str) -> float:
        score = self._scores.get(left + right)
        return math.inf if score is None else -score

    def _walk_lattice(self, text: str, best: list[int], rng: Random) -> list[int]:
        """Draw from all segmentations, each with a weight of p ** alpha (Kudo 2018, l = infinity).

        Pieces are drawn from the end, each by the weight of all that can stand before it.
        """
        is_short = len(text) <= _MAX_KEPT_CHARS
        lattice = self._lattice(text) if is_short else self._make_lattice(text)
        sampled: list[int] = []
        end = len(text)
        while end:
            first, after = lattice.bounds[end - 1 : end + 1]
            weight = rng.random() * lattice.sums[after - 1]
            edge = bisect(lattice.sums, weight, first, after - 1)
            sampled.append(lattice.ids[edge])
            end = lattice.starts[edge]
        return sampled[::-1]

    def _make_lattice(self, text: str) -> _Lattice:
        lattice = _Lattice([0], [], [], [])
        log_weights = [0.0]
        for end in range(1, len(text) + 1):
            logs: list[float] = []
            for start in range(max(0, end - self._max_chars), end):
                piece = text[start:end]
                if piece in self._scores:
                    logs.append(log_weights[start] + self._alpha * self._scores[piece])
                    lattice.ids.append(self._ids[piece])
                    lattice.starts.append(start)
            largest = max(logs)
            lattice.sums.extend(accumulate([math.exp(log - largest) for log in logs]))
            lattice.bounds.append(len(lattice.sums))
            log_weights.append(largest + math.log(lattice.sums[-1]))
        return lattice


class PairSampler:
    """Makes batches of the pairs of a store in sampled pieces."""

    def __init__(
        self,
        store: TokenStore,
        vocabs: Vocabs,
        *,
        alpha: float,
        seed: int,
        max_length: int,
        max_padded: int,
    ) -> None:
        """Take the longest side that a pair may have, and the padded size that a group may."""
        self._store = store
        samplers = {vocab: PieceSampler(vocab, alpha) for vocab in dict.fromkeys(vocabs)}
        self._src, self._tgt = (samplers[vocab] for vocab in vocabs)
        self._seed = seed
        self._max_length, self._max_padded = max_length, max_padded

    def batches(self, rows: Ints, epoch: int, step: int) -> list[Batch]:
        """Return a group of an update of an epoch; cut by rows where it outgrew the padded size."""
        sides = (self._store.lists(side, rows) for side in ("src", "tgt"))
        pairs = [
            self._sample(pair, Random(f"{self._seed} {epoch} {step} {row}"))
            for row, *pair in zip(rows.tolist(), *sides, strict=True)
        ]
        longest = np.array([max(map(len, pair)) for pair in pairs])
        order = np.argsort(longest, kind="stable")
        parts = np.split(order, cut(longest[order], self._max_padded))
        return [_make_batch([pairs[index] for index in part]) for part in parts]

    def _sample(self, pair: list[list[int]], rng: Random) -> list[list[int]]:
        """Return a pair in sampled pieces, or as it is stored where it would grow too long."""
        src, tgt = pair
        sampled = [self._src.sample(src, rng), self._tgt.sample(tgt, rng)]
        return sampled if max(map(len, sampled)) <= self._max_length else pair


def _make_batch(pairs: list[list[list[int]]]) -> Batch:
    src, tgt = zip(*pairs, strict=True)
    return Batch(pad(list(src)), *shift(pad(list(tgt))))
