"""Scaled dot-product and multi-head attention."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt.model.cells import as_cells, as_sentences


class _MultiHead(torch.autograd.Function):
    """softmax(q k^T / sqrt(K)) v of every head (Vaswani 2017, 3.2.1), for training on CPUs.

    The softmax is in fp32 and the gradient by hand. Sentences have 10 to 50 tokens: torch's own
    softmax of such rows, the backward of its fused kernel, and what autograd copies to undo each
    view take several times as long as the products.
    """

    @staticmethod
    def forward(
        ctx: Any, q_CD: Tensor, kv_C2D: Tensor, keep_B1QM: Tensor, num_heads: int
    ) -> Tensor:
        hidden_B1QM = torch.where(keep_B1QM, 0.0, -math.inf)
        num_sentences, _, num_queries, num_memory = keep_B1QM.shape
        q_BQD = as_sentences(q_CD, num_sentences, num_queries)
        kv_BM2D = as_sentences(kv_C2D, num_sentences, num_memory)
        (q_BHQK,) = split_heads(q_BQD, 1, num_heads).contiguous()
        k_BHMK, v_BHMK = split_heads(kv_BM2D, 2, num_heads).contiguous()
        scale = 1 / math.sqrt(q_BHQK.shape[-1])
        scores_BHQM = torch.add(hidden_B1QM, q_BHQK @ k_BHMK.transpose(-1, -2), alpha=scale)
        scores_BHQM.sub_(scores_BHQM.amax(-1, keepdim=True)).exp_()
        weights_BHQM = scores_BHQM.div_(scores_BHQM.sum(-1, keepdim=True)).to(q_CD.dtype)
        ctx.save_for_backward(q_BHQK, k_BHMK, v_BHMK, weights_BHQM)
        ctx.scale, ctx.num_cells = scale, len(kv_C2D)
        return _to_cells([weights_BHQM @ v_BHMK], len(q_CD))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_CD: Tensor) -> tuple[Tensor, Tensor, None, None]:
        q_BHQK, k_BHMK, v_BHMK, weights_BHQM = ctx.saved_tensors
        num_sentences, num_heads, num_queries, _ = q_BHQK.shape
        grad_BQD = as_sentences(grad_CD, num_sentences, num_queries)
        (grad_BHQK,) = split_heads(grad_BQD, 1, num_heads).contiguous()
        slope_BHQM = (grad_BHQK @ v_BHMK.transpose(-1, -2)).float()
        slope_BHQM.sub_((slope_BHQM * weights_BHQM).sum(-1, keepdim=True)).mul_(weights_BHQM)
        slope_BHQM = slope_BHQM.mul_(ctx.scale).to(grad_CD.dtype)
        of_k_BHMK = slope_BHQM.transpose(-1, -2) @ q_BHQK
        of_v_BHMK = weights_BHQM.transpose(-1, -2) @ grad_BHQK
        of_q_CD = _to_cells([slope_BHQM @ k_BHMK], len(grad_CD))
        return of_q_CD, _to_cells([of_k_BHMK, of_v_BHMK], ctx.num_cells), None, None


def _to_cells(parts_BHTK: list[Tensor], num_cells: int) -> Tensor:
    """Return parts side by side, each with its heads side by side; 0 in cells of no sentence."""
    num_sentences, num_heads, num_positions, width = parts_BHTK[0].shape
    x_CPHK = parts_BHTK[0].new_empty(num_cells, len(parts_BHTK), num_heads, width)
    x_CPHK[num_sentences * num_positions :] = 0
    x_BTPHK = as_sentences(x_CPHK, num_sentences, num_positions)
    for x_BTHK, part_BHTK in zip(x_BTPHK.unbind(2), parts_BHTK, strict=True):
        x_BTHK.copy_(part_BHTK.transpose(1, 2))
    return x_CPHK.flatten(1)


def multi_head(
    q_CD: Tensor, kv_C2D: Tensor, keep_B1QM: Tensor, num_heads: int, *, is_causal: bool = False
) -> Tensor:
    """Return the heads' attention side by side, shape CD; keys and values come side by side too.

    keep is True where a query may look; its shape says how the cells are sentences. Where it is
    keep_past, is_causal says so.
    """
    if q_CD.device.type == "cpu" and not torch.compiler.is_compiling():
        return _MultiHead.apply(q_CD, kv_C2D, keep_B1QM, num_heads)  # type: ignore[no-untyped-call]
    num_sentences, _, num_queries, num_memory = keep_B1QM.shape
    (q_BHQK,) = split_heads(as_sentences(q_CD, num_sentences, num_queries), 1, num_heads)
    k_BHMK, v_BHMK = split_heads(as_sentences(kv_C2D, num_sentences, num_memory), 2, num_heads)
    mask = None if is_causal else keep_B1QM
    attended_BHQK = F.scaled_dot_product_attention(
        q_BHQK, k_BHMK, v_BHMK, attn_mask=mask, is_causal=is_causal
    )
    return as_cells(merge_heads(attended_BHQK))


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

    def __init__(self, d_model: int, num_heads: int, *, is_causal: bool = False) -> None:
        super().__init__()
        self.num_heads, self.is_causal = num_heads, is_causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x_CD: Tensor, keep_B1TT: Tensor) -> Tensor:
        d_model = x_CD.shape[-1]
        q_CD, kv_C2D = self.qkv(x_CD).split((d_model, 2 * d_model), dim=-1)
        heads = multi_head(q_CD, kv_C2D, keep_B1TT, self.num_heads, is_causal=self.is_causal)
        return self.out(heads)


class CrossAttention(nn.Module):
    """Multi-head attention of the decoder over the memory (Vaswani 2017, 3.2.3)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(d_model, d_model)
        self.kv = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x_CD: Tensor, memory_CD: Tensor, keep_B1TS: Tensor) -> Tensor:
        return self.out(multi_head(self.q(x_CD), self.kv(memory_CD), keep_B1TS, self.num_heads))
