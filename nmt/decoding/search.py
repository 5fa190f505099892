"""Greedy and beam search that know no model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from nmt.decoding.candidates import best_candidates

# Tensor names end in their shape: B sentences (those still searched), W beams, V vocabulary,
# C candidates, N any few.


# Sentences that are done leave the batch when this share of it is: each time, all state is copied.
_SHARE_THAT_LEAVES = 1 / 8
# From so many sentences on, a batch has a multiple of so many, as oneDNN makes kernels for each
# size: one takes 0.3 MB, and a millisecond to make.
_SIZES_OF_BATCHES = ((0, 1), (9, 8), (65, 16), (129, 32))


class State(Protocol):
    """What the model remembers of every hypothesis, such as its key-value cache."""

    def select(self, sentences_B: Tensor, beams_BW: Tensor) -> Self:
        """Keep these sentences and, in each, these beams, in this order.

        Both are indices into what is there now; a beam may be taken several times or never.
        Called only where something changes.
        """


StateT = TypeVar("StateT", bound=State)

# (ids_BW chosen last, state) -> (scores_BWV of the piece after them, state). The first call has one
# beam, the start token. Scores are logits (log-probabilities are logits too) of any float type.
Step: TypeAlias = Callable[[Tensor, StateT], tuple[Tensor, StateT]]


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its pieces without start and stop, and Σ log p / T^length_penalty.

    T counts the stop token. Where the cap came first, `is_finished` is False and there is no stop.
    """

    ids: list[int]
    score: float
    is_finished: bool


def greedy(
    step: Step[StateT],
    state: StateT,
    *,
    max_lengths_B: Tensor,
    length_penalty: float,
    start: int,
    stop: int,
    banned: Sequence[int] = (),
) -> list[Hypothesis]:
    """Return for each sentence the likeliest piece after the likeliest piece, up to the stop token.

    `max_lengths_B`, on the device of the model, caps T of each sentence, stop token included.
    `banned` ids keep their share of the probability but are never chosen.
    """
    caps = max_lengths_B.tolist()
    banned_N = max_lengths_B.new_tensor(list(banned), dtype=torch.long)
    last_B1 = max_lengths_B.new_full((len(caps), 1), start, dtype=torch.long)
    totals_B1 = torch.zeros_like(last_B1, dtype=torch.float32)
    histories: list[list[int]] = [[] for _ in caps]
    hypotheses: dict[int, Hypothesis] = {}
    present = list(range(len(caps)))
    while len(hypotheses) < len(caps):
        scores_B1V, state = step(last_B1, state)
        best = best_candidates(totals_B1, scores_B1V, 1, banned_N)
        totals_B1, last_B1 = best.totals_BC[:, :1], best.ids_BC[:, :1]
        for row, (sentence, piece) in enumerate(zip(present, last_B1[:, 0].tolist(), strict=True)):
            ids = histories[sentence]
            ids.append(piece)
            is_done = piece == stop or len(ids) == caps[sentence]
            if is_done and sentence not in hypotheses:
                total = totals_B1[row].item()
                hypotheses[sentence] = _hypothesis([*ids], total, stop, length_penalty)
        kept = _rows_that_stay([sentence not in hypotheses for sentence in present])
        if 0 < len(kept) < len(present):
            kept_B = last_B1.new_tensor(kept)
            last_B1, totals_B1 = last_B1[kept_B], totals_B1[kept_B]
            state = state.select(kept_B, torch.zeros_like(last_B1))
            present = [present[row] for row in kept]
    return [hypotheses[sentence] for sentence in range(len(caps))]


def beam_search(  # noqa: PLR0913 - all but two are the user's own words
    step: Step[StateT],
    state: StateT,
    *,
    max_lengths_B: Tensor,
    beam: int,
    length_penalty: float,
    start: int,
    stop: int,
    banned: Sequence[int] = (),
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Return the `num_best` best hypotheses of each sentence, best first, no two alike.

    A sentence is done when `beam` hypotheses have ended, or at its cap, where what is still open
    is cut and ranks after all that ended. The other arguments are those of `greedy`.
    """
    assert 1 <= num_best <= beam, f"num_best is {num_best}, the beam {beam}"
    caps = max_lengths_B.tolist()
    banned_N = max_lengths_B.new_tensor(list(banned), dtype=torch.long)
    last_BW = max_lengths_B.new_full((len(caps), 1), start, dtype=torch.long)
    totals_BW = torch.zeros_like(last_BW, dtype=torch.float32)
    sentences = [_Sentence(cap, beam, stop, length_penalty) for cap in caps]
    present = sentences
    while present:
        scores_BWV, state = step(last_BW, state)
        best = best_candidates(totals_BW, scores_BWV, beam, banned_N)
        candidates = zip(present, *(each_BC.tolist() for each_BC in best), strict=True)
        columns = [sentence.extend(*lists) for sentence, *lists in candidates]
        kept = _rows_that_stay([sentence.is_open for sentence in present])
        if kept:
            kept_B = last_BW.new_tensor(kept)
            columns_BW = last_BW.new_tensor([columns[row] for row in kept])
            totals_BW, beams_BW, last_BW = (x[kept_B].gather(1, columns_BW) for x in best)
            if beam > 1 or len(kept) < len(present):
                state = state.select(kept_B, beams_BW)
        present = [present[row] for row in kept]
    return [sentence.best(num_best) for sentence in sentences]


class _Sentence:
    """The hypotheses of one sentence, those that grow and those that have left the search.

    They are lists, as few numbers are soon handled: to call torch takes longer.
    """

    def __init__(self, cap: int, beam: int, stop: int, length_penalty: float) -> None:
        self.is_open = True
        self._cap, self._beam, self._stop, self._penalty = cap, beam, stop, length_penalty
        self._growing: list[list[int]] = [[]]
        self._pool: list[Hypothesis] = []

    def extend(self, totals: list[float], parents: list[int], ids: list[int]) -> list[int]:
        """Extend the hypotheses by candidates, best first; return the columns of those that go on.

        The best `beam` that do not stop go on; those that stop leave if among the best `beam` of
        all. At the cap, all these leave. What has no probability never leaves: it is no hypothesis.
        """
        # Each parent has one stop token at most. A small vocabulary fills the beam in some steps.
        width = min(self._beam, len(ids) - len(self._growing))
        goes_on = [column for column, piece in enumerate(ids) if piece != self._stop][:width]
        leaves = [column for column, piece in enumerate(ids[: self._beam]) if piece == self._stop]
        is_capped = len(self._growing[0]) + 1 == self._cap
        if is_capped:
            leaves = sorted(leaves + goes_on)
        if self.is_open:
            for column in leaves:
                if totals[column] != -math.inf:
                    longer = [*self._growing[parents[column]], ids[column]]
                    self._pool.append(
                        _hypothesis(longer, totals[column], self._stop, self._penalty)
                    )
            self.is_open = len(self._pool) < self._beam and not is_capped
        self._growing = [[*self._growing[parents[column]], ids[column]] for column in goes_on]
        return goes_on

    def best(self, num_best: int) -> list[Hypothesis]:
        """Return the best hypotheses that have left; those that were cut come last."""
        pool = sorted(self._pool, key=lambda h: (h.is_finished, h.score), reverse=True)
        return pool[:num_best]


def _rows_that_stay(is_open: Sequence[bool]) -> list[int]:
    """Return the rows still searched, or all while too few have ended to be worth a copy.

    Rows that are done fill them up, so that few sizes of batches exist.
    """
    open_rows = [row for row, is_open_row in enumerate(is_open) if is_open_row]
    num_open, num_rows = len(open_rows), len(is_open)
    if num_rows - num_open < _SHARE_THAT_LEAVES * num_rows:
        return [*range(num_rows)]
    multiple = max(multiple for first, multiple in _SIZES_OF_BATCHES if num_open >= first)
    done_rows = [row for row, is_open_row in enumerate(is_open) if not is_open_row]
    return sorted(open_rows + done_rows[: -num_open % multiple])


def _hypothesis(ids: list[int], total: float, stop: int, length_penalty: float) -> Hypothesis:
    is_finished = ids[-1] == stop
    score = total / len(ids) ** length_penalty
    return Hypothesis(ids[:-1] if is_finished else ids, score, is_finished)
