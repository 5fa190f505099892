"""Sentences of ids as one tensor, filled up at the end."""

import torch
from torch import Tensor

from nmt.tokens.vocab import PAD


def pad(rows: list[list[int]]) -> Tensor:
    """Return lists of ids as one tensor, filled up to the longest: `[[5, 2], [2]]` gets a PAD."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
