"""Linear maps of fixed weights, which a CPU puts in the order of its bf16 products once."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Map: TypeAlias = Callable[[Tensor], Tensor]


def fixed_map(linear: nn.Linear, *, has_relu: bool = False) -> Map:
    """Return what computes a linear map, and max(0, .) of it where asked, from now on.

    Its weights may not change any more.
    """
    weight, bias = linear.weight.detach(), linear.bias
    if weight.is_cpu and weight.dtype == torch.bfloat16 and _can_pack():
        return _packed(weight, bias, has_relu)
    if has_relu:
        return lambda x: F.linear(x, weight, bias).relu_()
    return lambda x: F.linear(x, weight, bias)


def _packed(weight: Tensor, bias: Tensor | None, has_relu: bool) -> Map:
    """Put weights in order once, not anew at every product.

    That is a tenth of a product of 64 rows and half of one of the few rows of a single sentence.
    The operators are those that torch's compiler calls; it gives them no public name.
    """
    ordered = torch.ops.mkldnn._reorder_linear_weight(weight)
    product = torch.ops.mkldnn._linear_pointwise.default
    after = "relu" if has_relu else "none"
    return lambda x: product(x, ordered, bias, after, [], "")


def _can_pack() -> bool:
    operators = ("_reorder_linear_weight", "_linear_pointwise")
    return torch._C._has_mkldnn and all(hasattr(torch.ops.mkldnn, name) for name in operators)
