"""Scaled dot-product and multi-head attention."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class _MultiHead(torch.autograd.Function):
    """softmax(q k^T / sqrt(K)) v of every head (Vaswani 2017, 3.2.1), for training on CPUs.

    The softmax is in fp32 and the gradient by hand. Sentences have 10 to 50 tokens: torch's own
    softmax of such rows, the backward of its fused kernel, and what autograd copies to undo each
    view take several times as long as the products.
    """

    @staticmethod
    def forward(
        ctx: Any, q_BTD: Tensor, kv_BM2D: Tensor, hidden_B1QM: Tensor, num_heads: int
    ) -> Tensor:
        (q_BHTK,) = split_heads(q_BTD, 1, num_heads).contiguous()
        k_BHMK, v_BHMK = split_heads(kv_BM2D, 2, num_heads).contiguous()
        scale = 1 / math.sqrt(q_BHTK.shape[-1])
        scores_BHTM = torch.add(hidden_B1QM, q_BHTK @ k_BHMK.transpose(-1, -2), alpha=scale)
        scores_BHTM.sub_(scores_BHTM.amax(-1, keepdim=True)).exp_()
        weights_BHTM = scores_BHTM.div_(scores_BHTM.sum(-1, keepdim=True)).to(q_BTD.dtype)
        ctx.save_for_backward(q_BHTK, k_BHMK, v_BHMK, weights_BHTM)
        ctx.scale = scale
        return merge_heads(weights_BHTM @ v_BHMK)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTD: Tensor) -> tuple[Tensor, Tensor, None, None]:
        q_BHTK, k_BHMK, v_BHMK, weights_BHTM = ctx.saved_tensors
        num_heads = q_BHTK.shape[1]
        (grad_BHTK,) = split_heads(grad_BTD, 1, num_heads).contiguous()
        slope_BHTM = (grad_BHTK @ v_BHMK.transpose(-1, -2)).float()
        slope_BHTM.sub_((slope_BHTM * weights_BHTM).sum(-1, keepdim=True)).mul_(weights_BHTM)
        slope_BHTM = slope_BHTM.mul_(ctx.scale).to(grad_BTD.dtype)
        kv_BMCHK = grad_BTD.new_empty(len(grad_BTD), k_BHMK.shape[2], 2, num_heads, q_BHTK.shape[3])
        k_BMHK, v_BMHK = kv_BMCHK.unbind(2)
        k_BMHK.copy_((slope_BHTM.transpose(-1, -2) @ q_BHTK).transpose(1, 2))
        v_BMHK.copy_((weights_BHTM.transpose(-1, -2) @ grad_BHTK).transpose(1, 2))
        return merge_heads(slope_BHTM @ k_BHMK), kv_BMCHK.flatten(2), None, None


def multi_head(q_BTD: Tensor, kv_BM2D: Tensor, keep_B11M: Tensor | None, num_heads: int) -> Tensor:
    """Return the heads' attention side by side, shape BTD; keys and values come side by side too.

    keep is True where every query may look; None is causal: at itself and before, never after it.
    """
    if q_BTD.device.type == "cpu" and not torch.compiler.is_compiling():
        keep_B1QM = keep_past(q_BTD.shape[1]) if keep_B11M is None else keep_B11M
        hidden_B1QM = torch.where(keep_B1QM, 0.0, -math.inf)
        return _MultiHead.apply(q_BTD, kv_BM2D, hidden_B1QM, num_heads)  # type: ignore[no-untyped-call]
    (q_BHTK,) = split_heads(q_BTD, 1, num_heads)
    k_BHMK, v_BHMK = split_heads(kv_BM2D, 2, num_heads)
    is_causal = keep_B11M is None
    return merge_heads(
        F.scaled_dot_product_attention(
            q_BHTK, k_BHMK, v_BHMK, attn_mask=keep_B11M, is_causal=is_causal
        )
    )


def keep_past(num_positions: int) -> Tensor:
    """Return True where a position may look: at itself and before, never after it, shape 11TT.

    Padding needs no mask here: it stands at the end, so that no real position sees it.
    """
    return torch.ones(1, 1, num_positions, num_positions, dtype=torch.bool).tril()


def split_heads(x_BTPD: Tensor, num_parts: int, num_heads: int) -> Tensor:
    """Return the P parts that lie side by side in the last dimension, each BHTK, shape PBHTK.

    Head h of a part reads its h-th K columns.
    """
    x_BTPHK = x_BTPD.view(*x_BTPD.shape[:2], num_parts, num_heads, -1)
    return x_BTPHK.permute(2, 0, 3, 1, 4)


def merge_heads(x_BHTK: Tensor) -> Tensor:
    """BHTK to BTD: undo split_heads of one part."""
    return x_BHTK.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence over itself (Vaswani 2017, 3.2.2)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, keep_B11T: Tensor | None) -> Tensor:
        d_model = x_BTD.shape[-1]
        q_BTD, kv_BT2D = self.qkv(x_BTD).split((d_model, 2 * d_model), dim=-1)
        return self.out(multi_head(q_BTD, kv_BT2D, keep_B11T, self.num_heads))


class CrossAttention(nn.Module):
    """Multi-head attention of the decoder over the memory (Vaswani 2017, 3.2.3)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(d_model, d_model)
        self.kv = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, keep_B11S: Tensor) -> Tensor:
        return self.out(multi_head(self.q(x_BTD), self.kv(memory_BSD), keep_B11S, self.num_heads))
