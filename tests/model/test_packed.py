"""Fixed maps against F.linear, their slow twin."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nmt.model import packed
from nmt.model.packed import fixed_map


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("has_relu", [True, False])
@pytest.mark.parametrize("num_rows", [1, 4, 300])
@pytest.mark.parametrize("can_pack", [True, False])
def test_a_fixed_map_is_the_map(
    monkeypatch: pytest.MonkeyPatch,
    can_pack: bool,
    num_rows: int,
    has_relu: bool,
    has_bias: bool,
    dtype: torch.dtype,
) -> None:
    if not can_pack:
        monkeypatch.setattr(packed, "_can_pack", lambda: False)
    torch.manual_seed(0)
    linear = nn.Linear(24, 40, bias=has_bias).to(dtype)
    x = torch.randn(2, num_rows, 24).to(dtype)
    with torch.inference_mode():
        expected = F.linear(x, linear.weight, linear.bias)
        expected = expected.relu() if has_relu else expected
        found = fixed_map(linear, has_relu=has_relu)(x)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected)


def test_bf16_weights_are_packed_here() -> None:
    """Where torch drops or renames the operators, decoding is slower and this says so."""
    if torch._C._has_mkldnn:
        assert packed._can_pack()
