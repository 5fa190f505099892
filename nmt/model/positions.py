"""Positions: the sinusoids of the paper, or learned ones."""

import math

import torch
from torch import Tensor, nn


def sinusoids(num_positions: int, d_model: int, first: int = 0) -> Tensor:
    """Return the encodings of `num_positions` positions from `first` on, shape TD.

    PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same
    (Vaswani 2017, 3.5).
    """
    positions_T1 = torch.arange(first, first + num_positions, dtype=torch.float32)[:, None]
    even_D = torch.arange(0, d_model, 2, dtype=torch.float32)
    angles_TD = positions_T1 * torch.exp(even_D * (-math.log(10_000.0) / d_model))
    return torch.stack((angles_TD.sin(), angles_TD.cos()), dim=-1).flatten(1)


class SinusoidalPositions(nn.Module):
    """Sinusoids for any length, computed when first needed."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.table_TD = torch.empty(0, d_model)

    def forward(self, num_positions: int, first: int, device: torch.device) -> Tensor:
        """Return positions first, first + 1, ..., shape TD."""
        last, table_TD = first + num_positions, self.table_TD
        if last > len(table_TD) or table_TD.device != device:
            num_ready, d_model = table_TD.shape
            table_TD = sinusoids(max(last, 2 * num_ready), d_model).to(device)
            self.table_TD = table_TD  # threads decode side by side: each reads what it has made
        return table_TD[first:last]


class LearnedPositions(nn.Module):
    """One trained vector a position (Vaswani 2017, table 3, row E)."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table_TD = nn.Parameter(torch.randn(max_positions, d_model) * d_model**-0.5)

    def forward(self, num_positions: int, first: int, device: torch.device) -> Tensor:
        """Return positions first, first + 1, ..., shape TD."""
        assert first + num_positions <= len(self.table_TD), (
            "a sequence is longer than max_positions"
        )
        return self.table_TD[first : first + num_positions]
