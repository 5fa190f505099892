"""Search on hand-made tables, against exhaustive search and a slow twin in plain Python."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pytest
import torch
from torch import Tensor

from nmt.decoding.search import Hypothesis, beam_search, greedy

START, STOP = 1, 2


@dataclass(frozen=True)
class Table:
    """A model that looks up the scores after a prefix; a prefix is a node of a (folded) tree.

    `select` moves the nodes, so a search that keeps the wrong state gets the wrong scores.
    """

    tables_BNV: Tensor
    nodes_BW: Tensor
    is_fresh: bool = True
    num_selects: tuple[int, ...] = ()

    @classmethod
    def of(cls, tables_BNV: Tensor) -> Self:
        return cls(tables_BNV, torch.zeros(len(tables_BNV), 1, dtype=torch.long))

    def select(self, sentences_B: Tensor, beams_BW: Tensor) -> "Table":
        nodes_BW = self.nodes_BW[sentences_B.unsqueeze(1), beams_BW]
        sizes = (*self.num_selects, len(sentences_B))
        return Table(self.tables_BNV[sentences_B], nodes_BW, False, sizes)


def child(node: int, piece: int, num_nodes: int, num_pieces: int) -> int:
    return (node * num_pieces + piece + 1) % num_nodes


def step(ids_BW: Tensor, state: Table) -> tuple[Tensor, Table]:
    assert ids_BW.shape == state.nodes_BW.shape
    nodes_BW = state.nodes_BW
    if state.is_fresh:
        assert (ids_BW == START).all()
    else:
        num_nodes, num_pieces = state.tables_BNV.shape[1:]
        nodes_BW = (nodes_BW * num_pieces + ids_BW + 1) % num_nodes
    rows_B1 = torch.arange(len(nodes_BW)).unsqueeze(1)
    scores_BWV = state.tables_BNV[rows_B1, nodes_BW]
    return scores_BWV, Table(state.tables_BNV, nodes_BW, False, state.num_selects)


def random_tables(seed: int, sentences: int, pieces: int, nodes: int = 211) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(sentences, nodes, pieces, generator=generator)


def log_probs_of(table_NV: Tensor) -> list[list[float]]:
    log_probs: list[list[float]] = table_NV.double().log_softmax(-1).tolist()
    return log_probs


def forced_total(log_probs: list[list[float]], ids: Sequence[int]) -> float:
    node, total = 0, 0.0
    for piece in ids:
        total += log_probs[node][piece]
        node = child(node, piece, len(log_probs), len(log_probs[0]))
    return total


def forced_score(table_NV: Tensor, hypothesis: Hypothesis) -> float:
    text = whole(hypothesis)
    return forced_total(log_probs_of(table_NV), text) / len(text)


def whole(hypothesis: Hypothesis) -> list[int]:
    return hypothesis.ids + [STOP] * hypothesis.is_finished


def twin(
    table_NV: Tensor, cap: int, beam: int, length_penalty: float, banned: Sequence[int] = ()
) -> list[Hypothesis]:
    """Beam search as one would write it on paper: one sentence, lists, every extension scored."""
    log_probs = log_probs_of(table_NV)
    num_nodes, num_pieces = table_NV.shape
    live: list[tuple[float, list[int], int]] = [(0.0, [], 0)]
    pool: list[Hypothesis] = []
    for length in range(1, cap + 1):
        candidates = [
            (
                total + log_probs[node][piece],
                [*ids, piece],
                child(node, piece, num_nodes, num_pieces),
            )
            for total, ids, node in live
            for piece in range(num_pieces)
            if piece not in banned
        ]
        candidates.sort(key=lambda c: -c[0])
        pool += [
            Hypothesis(ids[:-1], total / length**length_penalty, True)
            for total, ids, _ in candidates[:beam]
            if ids[-1] == STOP
        ]
        live = [c for c in candidates if c[1][-1] != STOP][:beam]
        if len(pool) >= beam:
            break
    else:
        pool += [Hypothesis(ids, total / cap**length_penalty, False) for total, ids, _ in live]
    return sorted(pool, key=lambda h: (not h.is_finished, -h.score))[:beam]


def search(
    tables_BNV: Tensor,
    caps: Sequence[int],
    beam: int,
    length_penalty: float = 1.0,
    banned: Sequence[int] = (),
    num_best: int | None = None,
) -> list[list[Hypothesis]]:
    return beam_search(
        step,
        Table.of(tables_BNV),
        max_lengths_B=torch.tensor(caps),
        beam=beam,
        length_penalty=length_penalty,
        start=START,
        stop=STOP,
        banned=banned,
        num_best=beam if num_best is None else num_best,
    )


def take_likeliest(
    tables_BNV: Tensor, caps: Sequence[int], banned: Sequence[int] = ()
) -> list[Hypothesis]:
    state = Table.of(tables_BNV)
    lengths_B = torch.tensor(caps)
    return greedy(
        step,
        state,
        max_lengths_B=lengths_B,
        length_penalty=1.0,
        start=START,
        stop=STOP,
        banned=banned,
    )


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [(h.ids, h.is_finished) for h in found] == [(h.ids, h.is_finished) for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


def table_of(rows: dict[tuple[int, ...], dict[int, float]], pieces: int = 6) -> Tensor:
    """One sentence whose probabilities are given by prefix; all other prefixes end at once."""
    probs_NV = torch.zeros(pieces**4, pieces)
    probs_NV[:, STOP] = 1.0
    for prefix, probs in rows.items():
        node = 0
        for piece in prefix:
            node = child(node, piece, *probs_NV.shape)
        probs_NV[node] = 0.0
        for piece, prob in probs.items():
            probs_NV[node, piece] = prob
    return probs_NV.log().unsqueeze(0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("banned", [(), (0, START, 3)])
def test_beam_one_equals_greedy(seed: int, banned: tuple[int, ...]) -> None:
    tables_BNV = random_tables(seed, sentences=20, pieces=12)
    caps = [1 + n for n in range(20)]
    expected = take_likeliest(tables_BNV, caps, banned)
    assert [best for [best] in search(tables_BNV, caps, beam=1, banned=banned)] == expected
    assert {h.is_finished for h in expected} == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_beam_one_equals_greedy_where_scores_tie(seed: int) -> None:
    tables_BNV = random_tables(seed, sentences=20, pieces=60).sign()
    caps = [15] * 20
    expected = take_likeliest(tables_BNV, caps)
    assert [best for [best] in search(tables_BNV, caps, beam=1)] == expected


def test_among_equals_the_lower_beam_then_the_lower_id_wins() -> None:
    tables_BNV = torch.zeros(1, 211, 6)
    tables_BNV[..., STOP] = -3.0
    [found] = search(tables_BNV, [2], beam=5)
    assert [h.ids for h in found] == [[0, 0], [0, 1], [0, 3], [0, 4], [0, 5]]


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_piece(seed: int) -> None:
    tables_BNV = random_tables(seed, sentences=1, pieces=8)
    [found] = take_likeliest(tables_BNV, [30])
    node = 0
    for piece in whole(found):
        assert tables_BNV[0, node].argmax() == piece
        node = child(node, piece, *tables_BNV.shape[1:])
    assert found.score == pytest.approx(forced_score(tables_BNV[0], found), abs=1e-5)


@pytest.mark.parametrize("cap", [4, 5])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_is_exhaustive_search(seed: int, length_penalty: float, cap: int) -> None:
    tables_BNV = random_tables(seed, sentences=2, pieces=4, nodes=1366)
    num_sentences_up_to_cap = sum(3**n for n in range(cap + 1))
    found = search(tables_BNV, [cap] * 2, num_sentences_up_to_cap, length_penalty)
    for table_NV, hypotheses in zip(tables_BNV, found, strict=True):
        log_probs = log_probs_of(table_NV)
        others = (0, 1, 3)
        ended = [(*ids, STOP) for n in range(cap) for ids in itertools.product(others, repeat=n)]
        cut = list(itertools.product(others, repeat=cap))
        for texts, is_finished in ((ended, True), (cut, False)):
            scores = {t: forced_total(log_probs, t) / len(t) ** length_penalty for t in texts}
            expected = sorted(texts, key=lambda text: -scores[text])
            part = [h for h in hypotheses if h.is_finished is is_finished]
            assert [tuple(whole(h)) for h in part] == expected
            expected_scores = [scores[text] for text in expected]
            assert [h.score for h in part] == pytest.approx(expected_scores, abs=1e-5)


@pytest.mark.parametrize("beam", [2, 3, 5, 8])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("banned", [(), (0, START, 3)])
@pytest.mark.parametrize("pieces", [5, 30])
def test_agrees_with_the_slow_twin(
    beam: int, length_penalty: float, banned: tuple[int, ...], pieces: int
) -> None:
    tables_BNV = random_tables(beam, sentences=12, pieces=pieces)
    caps = [1 + n for n in range(12)]
    found = search(tables_BNV, caps, beam, length_penalty, banned)
    for table_NV, cap, hypotheses in zip(tables_BNV, caps, found, strict=True):
        assert_same(hypotheses, twin(table_NV, cap, beam, length_penalty, banned))


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentence_does_not_depend_on_its_neighbours(beam: int) -> None:
    tables_BNV = random_tables(7, sentences=30, pieces=20)
    caps = [1 + (11 * n) % 17 for n in range(30)]
    together = search(tables_BNV, caps, beam)
    alone = [search(tables_BNV[n : n + 1], [caps[n]], beam)[0] for n in range(30)]
    backwards = search(tables_BNV.flip(0), caps[::-1], beam)[::-1]
    for others in (alone, backwards):
        for found, expected in zip(others, together, strict=True):
            assert_same(found, expected)


def test_n_best_is_unique_and_sorted_and_scored_as_when_forced() -> None:
    tables_BNV = random_tables(3, sentences=6, pieces=9)
    for table_NV, hypotheses in zip(tables_BNV, search(tables_BNV, [9] * 6, 6), strict=True):
        assert len({tuple(whole(h)) for h in hypotheses}) == len(hypotheses) == 6
        assert hypotheses == sorted(hypotheses, key=lambda h: (-h.is_finished, -h.score))
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(forced_score(table_NV, hypothesis), abs=1e-5)


def test_n_best_is_the_head_of_the_beam() -> None:
    tables_BNV = random_tables(4, sentences=6, pieces=9)
    expected = [found[:2] for found in search(tables_BNV, [9] * 6, beam=5)]
    assert search(tables_BNV, [9] * 6, beam=5, num_best=2) == expected


def test_greedy_falls_into_the_trap_and_beam_two_does_not() -> None:
    table = table_of(
        {
            (): {3: 0.6, 4: 0.4},
            (3,): {3: 0.5, 4: 0.5},
            (4,): {5: 0.9, STOP: 0.1},
        }
    )
    assert take_likeliest(table, [5])[0].ids[0] == 3
    [[best]] = search(table, [5], beam=2, length_penalty=0.0, num_best=1)
    assert best.ids == [4, 5]
    assert best.score == pytest.approx(math.log(0.36), abs=1e-5)


def test_three_steps_where_beam_one_and_beam_three_differ() -> None:
    table = table_of(
        {
            (): {3: 0.4, 4: 0.32, 5: 0.28},
            (3,): {3: 0.4, 4: 0.3, 5: 0.3},
            (4,): {3: 0.5, 5: 0.5},
            (5,): {3: 1.0},
            (5, 3): {4: 1.0},
        }
    )
    for beam, ids in ((1, [3, 3]), (3, [5, 3, 4])):
        [[best]] = search(table, [5], beam, length_penalty=0.0, num_best=1)
        assert best.ids == ids


def test_a_model_that_never_ends_is_cut_at_the_cap_and_flagged() -> None:
    tables_BNV = random_tables(1, sentences=3, pieces=8)
    tables_BNV[..., STOP] = -torch.inf
    caps = [1, 4, 7]
    best_of_three = [best for [best] in search(tables_BNV, caps, beam=3, num_best=1)]
    for found in (best_of_three, take_likeliest(tables_BNV, caps)):
        assert [len(h.ids) for h in found] == caps
        assert not any(h.is_finished for h in found)
        for table_NV, hypothesis in zip(tables_BNV, found, strict=True):
            assert hypothesis.score == pytest.approx(forced_score(table_NV, hypothesis), abs=1e-5)


def test_what_ended_ranks_before_what_was_cut() -> None:
    table = table_of({(): {3: 0.9, STOP: 0.1}, (3,): {4: 1.0}, (3, 4): {4: 1.0}})
    [found] = search(table, [2], beam=2)
    assert [(h.ids, h.is_finished) for h in found] == [([], True), ([3, 4], False)]
    assert found[0].score < found[1].score


def test_what_has_no_probability_is_no_hypothesis() -> None:
    table = table_of({(): {3: 0.5, STOP: 0.5}})
    [found] = search(table, [4], beam=4)
    assert sorted(h.ids for h in found) == [[], [3]]


@pytest.mark.parametrize("beam", [1, 4])
def test_banned_ids_are_never_chosen_and_keep_their_probability(beam: int) -> None:
    tables_BNV = random_tables(5, sentences=8, pieces=10)
    tables_BNV[..., [0, START, 3]] += 5.0
    banned = (0, START, 3)
    for table_NV, [best] in zip(
        tables_BNV, search(tables_BNV, [12] * 8, beam, banned=banned, num_best=1), strict=True
    ):
        assert not set(best.ids) & set(banned)
        assert best.score == pytest.approx(forced_score(table_NV, best), abs=1e-5)


def test_half_precision_scores_are_added_up_in_fp32() -> None:
    tables_BNV = random_tables(6, sentences=10, pieces=40).bfloat16()
    caps = [12] * 10
    exact = search(tables_BNV.float(), caps, beam=4)
    for found, expected in zip(search(tables_BNV, caps, beam=4), exact, strict=True):
        assert_same(found, expected)


def test_logits_and_log_probabilities_give_the_same() -> None:
    tables_BNV = random_tables(8, sentences=10, pieces=15)
    shifted = tables_BNV + torch.randn(10, 211, 1)
    for logits in (tables_BNV, shifted):
        found = search(logits, [10] * 10, beam=4)
        expected = search(tables_BNV.log_softmax(-1), [10] * 10, beam=4)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([2, 1, 4, 2], [4, 3, 1, 1]),
        # Larger batches have a multiple of 8, 16 or 32 sentences where so many are left.
        ([1] * 5 + [2] * 9 + [4] * 6, [20, 16, 6, 6]),
        ([1] * 2 + [2] * 9, [11, 11]),
        ([1] * 60 + [2] * 60 + [3] * 70, [190, 160, 80]),
    ],
)
def test_sentences_that_are_done_leave_the_batch(lengths: list[int], expected: list[int]) -> None:
    sizes: list[int] = []

    def counting_step(ids_BW: Tensor, state: Table) -> tuple[Tensor, Table]:
        sizes.append(len(ids_BW))
        return step(ids_BW, state)

    tables_BNV = random_tables(2, sentences=len(lengths), pieces=8)
    tables_BNV[..., STOP] = -torch.inf
    lengths_B = torch.tensor(lengths)
    state = Table.of(tables_BNV)
    greedy(
        counting_step, state, max_lengths_B=lengths_B, length_penalty=1.0, start=START, stop=STOP
    )
    assert sizes == expected


def test_select_is_called_only_when_something_changes() -> None:
    last: list[Table] = []

    def keeping_step(ids_B1: Tensor, state: Table) -> tuple[Tensor, Table]:
        last[:] = [state]
        return step(ids_B1, state)

    tables_BNV = random_tables(2, sentences=3, pieces=8)
    tables_BNV[..., STOP] = -torch.inf
    lengths_B = torch.tensor([3, 8, 3])
    state = Table.of(tables_BNV)
    greedy(keeping_step, state, max_lengths_B=lengths_B, length_penalty=1.0, start=START, stop=STOP)
    assert last[0].num_selects == (1,)
    beam_search(
        keeping_step,
        state,
        max_lengths_B=lengths_B,
        beam=1,
        length_penalty=1.0,
        start=START,
        stop=STOP,
    )
    assert last[0].num_selects == (1,)


def test_the_scores_of_the_model_stay_as_they_were() -> None:
    tables_BNV = random_tables(2, sentences=3, pieces=8)
    before = tables_BNV.clone()
    search(tables_BNV, [6] * 3, beam=3, banned=(0,))
    take_likeliest(tables_BNV, [6] * 3, banned=(0,))
    assert torch.equal(tables_BNV, before)


def test_no_sentences_no_hypotheses() -> None:
    tables_BNV = random_tables(2, sentences=1, pieces=8)[:0]
    assert search(tables_BNV, [], beam=3) == []
    assert take_likeliest(tables_BNV, []) == []
