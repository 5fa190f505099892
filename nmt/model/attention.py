"""Scaled dot-product and multi-head attention."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Linear):
    """A linear map that computes in the precision of its weights, whatever comes in."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


def attend(q_BHQK: Tensor, k_BHMK: Tensor, v_BHMK: Tensor, keep_B1QM: Tensor | None) -> Tensor:
    """Return softmax(q k^T / sqrt(K)) v, shape BHQK (Vaswani 2017, 3.2.1).

    keep is True where a query may look and broadcasts over B and Q; None hides nothing. The softmax
    is in fp32. Two products and a softmax: on CPUs and sentences of 10 to 50 tokens this is faster
    than torch's fused kernel, whose backward is slow there.
    """
    scale = 1 / math.sqrt(q_BHQK.shape[-1])
    scores_BHQM = (q_BHQK * scale) @ k_BHMK.transpose(-1, -2)
    if keep_B1QM is None:
        weights_BHQM = torch.softmax(scores_BHQM, dim=-1, dtype=torch.float32)
    else:
        hidden_B1QM = torch.where(keep_B1QM, 0.0, -math.inf)
        weights_BHQM = torch.softmax(scores_BHQM + hidden_B1QM, dim=-1)
    return weights_BHQM.to(v_BHMK.dtype) @ v_BHMK


def split_heads(x_BTD: Tensor, num_heads: int) -> Tensor:
    """BTD to BHTK: head h reads the h-th K columns."""
    return x_BTD.view(*x_BTD.shape[:2], num_heads, -1).transpose(1, 2)


def merge_heads(x_BHTK: Tensor) -> Tensor:
    """BHTK to BTD, the inverse of split_heads."""
    return x_BHTK.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence over itself (Vaswani 2017, 3.2.2)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = Linear(d_model, 3 * d_model)
        self.out = Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, keep_B1QM: Tensor) -> Tensor:
        return self.out(merge_heads(attend(*self.project(x_BTD), keep_B1QM)))

    def project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each BHTK."""
        q_BTD, k_BTD, v_BTD = self.qkv(x_BTD).chunk(3, dim=-1)
        heads = self.num_heads
        return split_heads(q_BTD, heads), split_heads(k_BTD, heads), split_heads(v_BTD, heads)


class CrossAttention(nn.Module):
    """Multi-head attention of the decoder over the memory (Vaswani 2017, 3.2.3)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q = Linear(d_model, d_model)
        self.kv = Linear(d_model, 2 * d_model)
        self.out = Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, keep_B11S: Tensor) -> Tensor:
        q_BHTK = split_heads(self.q(x_BTD), self.num_heads)
        return self.out(merge_heads(attend(q_BHTK, k_BHSK, v_BHSK, keep_B11S)))

    def project(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the memory, each BHSK."""
        k_BSD, v_BSD = self.kv(memory_BSD).chunk(2, dim=-1)
        return split_heads(k_BSD, self.num_heads), split_heads(v_BSD, self.num_heads)
