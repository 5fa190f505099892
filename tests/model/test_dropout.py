"""Dropout: its rate, its scale, its independence, and that a seed decides it.

All draws have a fixed seed, so a bound that holds once holds always; bounds are 5 deviations wide.
"""

import math

import pytest
import torch

from nmt.model.dropout import Dropout

NUM = 400_000


def kept_of(rate: float, seed: int = 3) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(torch.ones(NUM)) != 0


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.5, 0.9])
def test_rate_and_scale_fit_each_other(rate: float) -> None:
    torch.manual_seed(1)
    out = Dropout(rate)(torch.full((NUM,), 2.0))
    rounded = round(rate * 256) / 256
    assert abs(rounded - rate) <= 1 / 512
    deviation = math.sqrt(rounded * (1 - rounded) / NUM)
    assert abs((out == 0).double().mean().item() - rounded) < 5 * deviation
    survivor = 2 / (1 - rounded)
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([survivor]))
    assert abs(out.double().mean().item() - 2) < 5 * survivor * deviation


def test_evaluation_and_rate_0_change_nothing() -> None:
    x = torch.randn(7, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_seed_decides_the_mask() -> None:
    assert torch.equal(kept_of(0.3), kept_of(0.3))
    assert not torch.equal(kept_of(0.3), kept_of(0.3, seed=4))


def test_calls_draw_anew() -> None:
    dropout, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(0)
    assert not torch.equal(dropout(x), dropout(x))


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_elements_of_a_random_word_are_independent(rate: float) -> None:
    kept = kept_of(rate).view(-1, 8).double()
    words = len(kept)
    each = kept.mean(0)
    expected = 1 - round(rate * 256) / 256
    assert (each - expected).abs().max() < 5 * math.sqrt(expected * (1 - expected) / words)
    correlation = torch.corrcoef(kept.T) - torch.eye(8)
    assert correlation.abs().max() < 5 / math.sqrt(words)
    neighbours = torch.corrcoef(torch.stack((kept[:-1].flatten(), kept[1:].flatten())))[0, 1]
    assert abs(neighbours) < 5 / math.sqrt(NUM)


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (3, 5), (2, 3, 11), (0, 4)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    out = Dropout(0.5)(torch.ones(shape))
    assert out.shape == shape
    assert set(out.flatten().tolist()) <= {0.0, 2.0}


def test_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, requires_grad=True)
    out = Dropout(0.25)(x)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, (out / x).detach())


def test_transposed_input_and_bf16_keep_layout_and_type() -> None:
    torch.manual_seed(0)
    x = torch.arange(1.0, 13).view(3, 4).T.to(torch.bfloat16)
    out = Dropout(0.5)(x)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out[out != 0], 2 * x[out != 0])


def test_the_highest_rate_that_a_config_takes_keeps_something() -> None:
    torch.manual_seed(0)
    out = Dropout(0.95)(torch.ones(10_000))
    assert out.isfinite().all()
    assert 400 < (out != 0).sum() < 600
