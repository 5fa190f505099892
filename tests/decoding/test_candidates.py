"""The best pieces to go on with, against a full sort, and sums of exponentials against torch's."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt.decoding import candidates
from nmt.decoding.candidates import best_candidates, log_sum_exp

BANNED_N = torch.tensor([0, 1, 3])


def twin(totals_BW: Tensor, scores_BWV: Tensor, beam: int, banned_N: Tensor) -> Tensor:
    """Return the best totals from a sort of every extension, shape BC."""
    log_probs_BWV = scores_BWV.double().log_softmax(2)
    log_probs_BWV[:, :, banned_N] = -torch.inf
    totals_BP = (totals_BW.double().unsqueeze(2) + log_probs_BWV).flatten(1)
    count = min(beam + totals_BW.shape[1], totals_BP.shape[1])
    return totals_BP.sort(dim=1, descending=True).values[:, :count]


def random_scores(num_sentences: int, num_beams: int, num_pieces: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(num_sentences, num_beams, num_pieces, generator=generator)


@pytest.fixture(params=[0, 10**9], ids=["by groups", "by all pieces"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each way to find them, whatever the number of rows."""
    monkeypatch.setattr(candidates, "_MIN_ROWS_FOR_GROUPS", request.param)
    yield


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_pieces", [5, 1023, 1024, 1025, 1055, 2048, 8000])
@pytest.mark.parametrize(("num_beams", "beam"), [(1, 1), (1, 4), (4, 4), (7, 7)])
@pytest.mark.parametrize("banned_N", [BANNED_N[:0], BANNED_N])
def test_they_are_those_of_a_full_sort(
    num_beams: int, beam: int, num_pieces: int, banned_N: Tensor, dtype: torch.dtype
) -> None:
    scores_BWV = random_scores(6, num_beams, num_pieces).to(dtype)
    # What is banned would be chosen often.
    scores_BWV[:, :, banned_N] += 9.0
    totals_BW = -torch.rand(6, num_beams) * 8
    before = scores_BWV.clone()
    best = best_candidates(totals_BW, scores_BWV, beam, banned_N)
    expected_BC = twin(totals_BW, scores_BWV, beam, banned_N).float()
    torch.testing.assert_close(best.totals_BC, expected_BC, atol=1e-5, rtol=0)
    assert torch.equal(scores_BWV, before)
    # Each total is that of its beam and piece, and no place is taken twice.
    log_probs_BWV = scores_BWV.float().log_softmax(2)
    rows_B1 = torch.arange(6).unsqueeze(1)
    found_BC = (
        totals_BW.gather(1, best.beams_BC) + log_probs_BWV[rows_B1, best.beams_BC, best.ids_BC]
    )
    is_banned_BC = torch.isin(best.ids_BC, banned_N)
    assert torch.equal(is_banned_BC, best.totals_BC == -torch.inf)
    torch.testing.assert_close(
        found_BC[~is_banned_BC], best.totals_BC[~is_banned_BC], atol=1e-5, rtol=0
    )
    for beams, ids in zip(best.beams_BC.tolist(), best.ids_BC.tolist(), strict=True):
        assert len(set(zip(beams, ids, strict=True))) == len(ids)


@pytest.mark.usefixtures("_way")
def test_the_best_may_all_be_of_one_group_one_beam_or_the_last_pieces() -> None:
    scores_BWV = torch.zeros(3, 2, 1030)
    groups = 1030 // candidates._GROUP_SIZE
    one_group = torch.arange(5, 1030, groups)[:6]
    scores_BWV[0, 0, one_group] = 10.0 + torch.arange(6)
    scores_BWV[1, 1, -6:] = 10.0 + torch.arange(6)
    scores_BWV[2, :, 2] = 20.0
    totals_BW = torch.zeros(3, 2)
    best = best_candidates(totals_BW, scores_BWV, 4, BANNED_N)
    assert best.ids_BC[0].tolist() == one_group.flip(0).tolist()
    assert best.beams_BC[0].tolist() == [0] * 6
    assert best.ids_BC[1].tolist() == list(range(1029, 1023, -1))
    assert best.beams_BC[1].tolist() == [1] * 6
    assert best.beams_BC[2, :2].tolist() == [0, 1]
    assert best.ids_BC[2, :2].tolist() == [2, 2]


@pytest.mark.usefixtures("_way")
def test_among_equals_the_lower_beam_then_the_lower_id_comes_first() -> None:
    scores_BWV = torch.zeros(1, 2, 2000)
    scores_BWV[:, :, [1999, 700, 40]] = 5.0
    best = best_candidates(torch.zeros(1, 2), scores_BWV, 4, BANNED_N)
    assert best.beams_BC.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert best.ids_BC.tolist() == [[40, 700, 1999] * 2]


@pytest.mark.parametrize("at_once", [1, 8, 1 << 17])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_sum_exp_is_exact_for_any_number_of_rows_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(candidates, "_SCORES_AT_ONCE", at_once * 50)
    scores_RV = random_scores(1, 30, 50)[0].to(dtype)
    scores_RV[3, 0], scores_RV[4] = -torch.inf, scores_RV[4] + 100
    expected_R = scores_RV.double().logsumexp(1).float()
    torch.testing.assert_close(log_sum_exp(scores_RV), expected_R, atol=1e-5, rtol=1e-6)
