"""Greedy and beam search that know no model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from nmt.decoding.candidates import Candidates, best_candidates

# Tensor names end in their shape: B sentences (those still searched), W beams, V vocabulary,
# T pieces so far, C candidates, N any few.


# Sentences that are done leave the batch when this share of it is: each time, all state is copied.
_SHARE_THAT_LEAVES = 1 / 8


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
    history_BT = last_B1[:, :0]
    hypotheses: dict[int, Hypothesis] = {}
    present = list(range(len(caps)))
    while len(hypotheses) < len(caps):
        scores_B1V, state = step(last_B1, state)
        best = best_candidates(totals_B1, scores_B1V, 1, banned_N)
        totals_B1, last_B1 = best.totals_BC[:, :1], best.ids_BC[:, :1]
        history_BT = torch.cat([history_BT, last_B1], dim=1)
        has_stopped = (last_B1[:, 0] == stop).tolist()
        for row, sentence in enumerate(present):
            is_done = has_stopped[row] or history_BT.shape[1] == caps[sentence]
            if is_done and sentence not in hypotheses:
                ids, total = history_BT[row].tolist(), totals_B1[row].item()
                hypotheses[sentence] = _hypothesis(ids, total, stop, length_penalty)
        kept = _rows_that_stay([sentence not in hypotheses for sentence in present])
        if 0 < len(kept) < len(present):
            kept_B = last_B1.new_tensor(kept)
            last_B1, totals_B1, history_BT = last_B1[kept_B], totals_B1[kept_B], history_BT[kept_B]
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
    history_BWT = last_BW.new_empty((len(caps), 1, 0))
    pools: list[list[Hypothesis]] = [[] for _ in caps]
    is_open = [True] * len(caps)
    present = list(range(len(caps)))
    while any(is_open):
        scores_BWV, state = step(last_BW, state)
        best = best_candidates(totals_BW, scores_BWV, beam, banned_N)
        length = history_BWT.shape[2] + 1
        columns_BW, leaves_BC = _split(
            best, stop, beam, num_parents=last_BW.shape[1], is_capped_B=max_lengths_B == length
        )
        for row, ids, total in _read(history_BWT, best, leaves_BC):
            if is_open[present[row]]:
                pools[present[row]].append(_hypothesis(ids, total, stop, length_penalty))
        for sentence in present:
            is_open[sentence] &= len(pools[sentence]) < beam and length < caps[sentence]
        num_before = len(present)
        kept = _rows_that_stay([is_open[sentence] for sentence in present])
        present = [present[row] for row in kept]
        if present:
            kept_B = last_BW.new_tensor(kept)
            max_lengths_B = max_lengths_B[kept_B]
            totals_BW, beams_BW, last_BW = (x.gather(1, columns_BW)[kept_B] for x in best)
            parents_BWT = history_BWT[kept_B.unsqueeze(1), beams_BW]
            history_BWT = torch.cat([parents_BWT, last_BW.unsqueeze(2)], dim=2)
            if beam > 1 or len(kept) < num_before:
                state = state.select(kept_B, beams_BW)
    return [
        sorted(pool, key=lambda h: (h.is_finished, h.score), reverse=True)[:num_best]
        for pool in pools
    ]


def _rows_that_stay(is_open: Sequence[bool]) -> list[int]:
    """Return the rows still searched, or all while too few have ended to be worth a copy."""
    open_rows = [row for row, is_open_row in enumerate(is_open) if is_open_row]
    num_done = len(is_open) - len(open_rows)
    return open_rows if num_done >= _SHARE_THAT_LEAVES * len(is_open) else [*range(len(is_open))]


def _split(
    best: Candidates, stop: int, beam: int, num_parents: int, is_capped_B: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the columns of the candidates that go on, and a mask of those that leave the search.

    The best `beam` that do not stop go on; those that stop leave if among the best `beam` of all.
    At the cap, all these leave. What has no probability never leaves: it is no hypothesis.
    """
    is_stop_BC = best.ids_BC == stop
    # Each parent has one stop token at most. A small vocabulary fills the beam only in some steps.
    width = min(beam, is_stop_BC.shape[1] - num_parents)
    columns_BW = is_stop_BC.int().sort(dim=1, stable=True).indices[:, :width]
    goes_on_BC = torch.zeros_like(is_stop_BC).scatter(1, columns_BW, True)
    is_among_best_C = torch.arange(is_stop_BC.shape[1], device=is_stop_BC.device) < beam
    leaves_BC = is_stop_BC & is_among_best_C | goes_on_BC & is_capped_B.unsqueeze(1)
    return columns_BW, leaves_BC & (best.totals_BC != -torch.inf)


def _read(
    history_BWT: Tensor, best: Candidates, is_read_BC: Tensor
) -> Iterator[tuple[int, list[int], float]]:
    """Yield the row, the ids and the total of each candidate under the mask, best first by row."""
    rows_N, columns_N = is_read_BC.nonzero(as_tuple=True)
    if len(rows_N) == 0:
        return
    parents_NT = history_BWT[rows_N, best.beams_BC[rows_N, columns_N]]
    ids_NT = torch.cat([parents_NT, best.ids_BC[rows_N, columns_N].unsqueeze(1)], dim=1)
    totals_N = best.totals_BC[rows_N, columns_N]
    yield from zip(rows_N.tolist(), ids_NT.tolist(), totals_N.tolist(), strict=True)


def _hypothesis(ids: list[int], total: float, stop: int, length_penalty: float) -> Hypothesis:
    is_finished = ids[-1] == stop
    score = total / len(ids) ** length_penalty
    return Hypothesis(ids[:-1] if is_finished else ids, score, is_finished)
