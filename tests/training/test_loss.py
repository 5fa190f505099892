"""The loss against torch's own, and that it is sums over real positions."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.config import ModelConfig
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, pad, shift
from nmt.tokens.vocab import PAD
from nmt.training.loss import LossSums, batch_loss, smoothed_cross_entropy

SMOOTHINGS = [0.0, 0.1, 0.5]
SRC = [[5, 6, 7, 2], [8, 2], [9, 10, 2]]
TGT = [[11, 2], [12, 13, 14, 5, 2], [2]]


def random_logits(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    logits_NV = (3 * torch.randn(40, 17)).to(dtype).requires_grad_()
    return logits_NV, torch.randint(0, 17, (40,))


def gradient(loss: Tensor, logits_NV: Tensor) -> Tensor:
    return torch.autograd.grad(loss, logits_NV)[0]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_equals_the_cross_entropy_of_torch(smoothing: float) -> None:
    logits_NV, tgt_N = random_logits()
    loss, nll = smoothed_cross_entropy(logits_NV, tgt_N, smoothing)
    expected = F.cross_entropy(logits_NV, tgt_N, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, F.cross_entropy(logits_NV, tgt_N, reduction="sum"))
    torch.testing.assert_close(gradient(loss, logits_NV), gradient(expected, logits_NV))


def test_smoothing_by_hand() -> None:
    """Two pieces of probability 3/4 and 1/4, the first right: .9 + .05 on it and .05 beside it."""
    logits_NV = torch.tensor([[math.log(3), 0.0]])
    loss, nll = smoothed_cross_entropy(logits_NV, torch.tensor([0]), 0.1)
    assert nll.item() == pytest.approx(-math.log(0.75))
    assert loss.item() == pytest.approx(-0.95 * math.log(0.75) - 0.05 * math.log(0.25))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_bf16_logits_lose_nothing_more(smoothing: float) -> None:
    """The sums are in fp32: equal to those of the same, already rounded, logits in fp32."""
    logits_NV, tgt_N = random_logits(torch.bfloat16)
    loss, nll = smoothed_cross_entropy(logits_NV, tgt_N, smoothing)
    wide_NV = logits_NV.detach().float().requires_grad_()
    expected = F.cross_entropy(wide_NV, tgt_N, label_smoothing=smoothing, reduction="sum")
    assert loss.dtype == nll.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    # The gradient comes back in bf16, so it is rounded to 8 bits once.
    expected_gradient = gradient(expected, wide_NV)
    actual_gradient = gradient(loss, logits_NV).float()
    torch.testing.assert_close(actual_gradient, expected_gradient, rtol=2**-8, atol=1e-6)


def test_nll_carries_no_gradient() -> None:
    logits_NV, tgt_N = random_logits()
    for smoothing in SMOOTHINGS:
        assert not smoothed_cross_entropy(logits_NV, tgt_N, smoothing)[1].requires_grad


def test_sums_grow_with_the_rows() -> None:
    logits_NV, tgt_N = random_logits()
    once = smoothed_cross_entropy(logits_NV, tgt_N, 0.1)
    twice = smoothed_cross_entropy(logits_NV.repeat(2, 1), tgt_N.repeat(2), 0.1)
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
