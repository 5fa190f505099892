"""The loss against torch's own, and that it is sums over real positions."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import nmt.training.loss
from nmt.config import ModelConfig
from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.batches import Batch, shift
from nmt.tokens.padding import pad
from nmt.tokens.vocab import PAD
from nmt.training.loss import LossSums, batch_loss, smoothed_cross_entropy

SMOOTHINGS = [0.0, 0.1, 0.5]
SRC = [[5, 6, 7, 2], [8, 2], [9, 10, 2]]
TGT = [[11, 2], [12, 13, 14, 5, 2], [2]]


def random_logits(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """40 hidden vectors of width 6, the weights of 17 pieces, and a piece for each vector."""
    torch.manual_seed(0)
    hidden_ND = (2 * torch.randn(40, 6)).to(dtype).requires_grad_()
    weight_VD = torch.randn(17, 6).to(dtype).requires_grad_()
    return hidden_ND, weight_VD, torch.randint(0, 17, (40,))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_equals_the_cross_entropy_of_torch(smoothing: float) -> None:
    hidden_ND, weight_VD, tgt_N = random_logits()
    loss, nll = smoothed_cross_entropy(hidden_ND, weight_VD, tgt_N, smoothing)
    logits_NV = hidden_ND @ weight_VD.t()
    expected = F.cross_entropy(logits_NV, tgt_N, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits_NV, tgt_N, reduction="sum"))
    inputs = (hidden_ND, weight_VD)
    expected_gradients = torch.autograd.grad(3 * expected, inputs)
    torch.testing.assert_close(
        torch.autograd.grad(3 * loss, inputs), expected_gradients, atol=1e-5, rtol=1e-5
    )


def test_smoothing_by_hand() -> None:
    """Two pieces of probability 3/4 and 1/4, the first right: .9 + .05 on it and .05 beside it."""
    hidden_ND, weight_VD = torch.tensor([[math.log(3)]]), torch.tensor([[1.0], [0.0]])
    loss, nll = smoothed_cross_entropy(hidden_ND, weight_VD, torch.tensor([0]), 0.1)
    assert nll.item() == pytest.approx(-math.log(0.75))
    assert loss.item() == pytest.approx(-0.95 * math.log(0.75) - 0.05 * math.log(0.25))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_bf16_rounds_and_no_more(smoothing: float) -> None:
    """Against fp32 of the same numbers: logits and probabilities have 8 bits, the sums are fp32."""
    hidden_ND, weight_VD, tgt_N = random_logits(torch.bfloat16)
    loss, nll = smoothed_cross_entropy(hidden_ND, weight_VD, tgt_N, smoothing)
    wide = [x.detach().float().requires_grad_() for x in (hidden_ND, weight_VD)]
    expected = F.cross_entropy(
        wide[0] @ wide[1].t(), tgt_N, label_smoothing=smoothing, reduction="sum"
    )
    assert loss.dtype == nll.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=1e-3, atol=0)
    actual = torch.autograd.grad(loss, (hidden_ND, weight_VD))
    for mine, theirs in zip(actual, torch.autograd.grad(expected, wide), strict=True):
        assert mine.dtype == torch.bfloat16
        assert (mine.float() - theirs).norm() < 2**-6 * theirs.norm()


def test_a_piece_without_probability_has_a_finite_loss_and_its_gradient() -> None:
    hidden_ND = torch.tensor([[200.0]], requires_grad=True)
    weight_VD = torch.tensor([[1.0], [0.0]])
    loss, nll = smoothed_cross_entropy(hidden_ND, weight_VD, torch.tensor([1]), 0.0)
    assert nll.item() == pytest.approx(-math.log(1.1754944e-38))
    assert torch.autograd.grad(loss, hidden_ND)[0].tolist() == [[1.0]]


def test_nll_carries_no_gradient() -> None:
    hidden_ND, weight_VD, tgt_N = random_logits()
    for smoothing in SMOOTHINGS:
        sums = smoothed_cross_entropy(hidden_ND, weight_VD, tgt_N, smoothing)
        assert [value.requires_grad for value in sums] == [True, False]


@pytest.mark.parametrize("rows_at_once", [32, 64])
def test_rows_may_be_taken_in_parts(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 80 rows, of which the last part is filled up."""
    hidden_ND, weight_VD, tgt_N = random_logits()
    hidden_ND, tgt_N = hidden_ND.repeat(2, 1), tgt_N.repeat(2)
    results = []
    for number in (96, rows_at_once):
        monkeypatch.setattr(nmt.training.loss, "_ROWS_AT_ONCE", number)
        loss, nll = smoothed_cross_entropy(hidden_ND, weight_VD, tgt_N, 0.1)
        results.append((loss, nll, *torch.autograd.grad(loss, (hidden_ND, weight_VD))))
    for part, whole in zip(*results, strict=True):
        torch.testing.assert_close(part, whole)


def test_sums_grow_with_the_rows() -> None:
    hidden_ND, weight_VD, tgt_N = random_logits()
    once = smoothed_cross_entropy(hidden_ND, weight_VD, tgt_N, 0.1)
    twice = smoothed_cross_entropy(hidden_ND.repeat(2, 1), weight_VD, tgt_N.repeat(2), 0.1)
    for one, two in zip(once, twice, strict=True):
        torch.testing.assert_close(two, 2 * one)


def model() -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(12, 20, num_heads=3, num_layers=(1, 1), dropout=0.0)
    return Transformer(config, src_vocab=17, tgt_vocab=17)


def batch_of(rows: list[int]) -> Batch:
    return Batch(pad([SRC[row] for row in rows]), *shift(pad([TGT[row] for row in rows])))


def values(sums: LossSums) -> Tensor:
    return torch.stack((sums.loss.detach(), sums.nll, torch.tensor(float(sums.num_tokens))))


def test_batch_loss_counts_real_positions_alone() -> None:
    translator, batch = model(), batch_of([0, 1, 2])
    sums = batch_loss(translator, batch, 0.1)
    assert sums.num_tokens == 2 + 5 + 1
    expected = F.cross_entropy(
        translator(batch.src_BS, batch.tgt_in_BT).flatten(0, 1),
        batch.tgt_out_BT.flatten(),
        ignore_index=PAD,
        label_smoothing=0.1,
        reduction="sum",
    )
    torch.testing.assert_close(sums.loss, expected)


def test_the_places_of_a_batch_choose_what_a_mask_chooses() -> None:
    """In loss and gradient, to the bit: the same numbers in the same order."""
    translator, batch = model(), batch_of([0, 1, 2])
    is_real_BT = batch.tgt_out_BT != PAD
    keep_B11S = keep_real(batch.src_BS)
    memory_BSD = translator.encode(batch.src_BS, keep_B11S)
    hidden_BTD = translator.decode(batch.tgt_in_BT, memory_BSD, keep_B11S)
    loss, nll = smoothed_cross_entropy(
        hidden_BTD[is_real_BT], translator.output.weight, batch.tgt_out_BT[is_real_BT], 0.1
    )
    sums = batch_loss(translator, batch, 0.1)
    assert torch.equal(values(sums), torch.stack((loss.detach(), nll, torch.tensor(8.0))))
    weights = list(translator.parameters())
    pairs = zip(
        torch.autograd.grad(sums.loss, weights), torch.autograd.grad(loss, weights), strict=True
    )
    assert all(torch.equal(*pair) for pair in pairs)


def test_batch_loss_is_the_sum_over_its_sentences() -> None:
    """And so is the gradient: padding adds nothing, and nothing is divided."""
    translator = model()
    together = batch_loss(translator, batch_of([0, 1, 2]), 0.1)
    alone = [batch_loss(translator, batch_of([row]), 0.1) for row in range(3)]
    torch.testing.assert_close(values(together), torch.stack([*map(values, alone)]).sum(0))
    weights = list(translator.parameters())
    expected = torch.autograd.grad(sum((one.loss for one in alone), torch.zeros(())), weights)
    actual = torch.autograd.grad(together.loss, weights)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)
