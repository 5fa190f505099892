"""Dropout, with a generator that is cheap on CPUs."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_ANY = torch.iinfo(torch.int64).min


class Dropout(nn.Module):
    """Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate).

    On a CPU one random 64-bit word decides about eight elements, a byte each, so the rate is
    rounded to the nearest 1/256 and the scale fits the rounded rate.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.rate)
        dropped = round(self.rate * 256)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(_ANY, None)
        draws = words.view(torch.uint8)[: x.numel()].view(x.shape)
        # Compared straight into x's type, which is vectorised, where a mask of booleans is not.
        factors = torch.ge(draws, dropped, out=torch.empty_like(x, requires_grad=False))
        return x * factors.mul_(256 / (256 - dropped))
