"""Attention against the formula, against torch's own, and what its masks hide."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import keep_past, merge_heads, multi_head, split_heads
from nmt.model.transformer import keep_real
from nmt.tokens.vocab import PAD


def random_inputs(
    num_queries: int, num_memory: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Queries, and keys beside values, of two sentences and three heads of four columns."""
    torch.manual_seed(2)
    q_BTD = torch.randn(2, num_queries, 12, dtype=dtype, requires_grad=True)
    kv_BM2D = torch.randn(2, num_memory, 24, dtype=dtype, requires_grad=True)
    return q_BTD, kv_BM2D


def see_all(num_memory: int) -> Tensor:
    return torch.ones(1, 1, 1, num_memory, dtype=torch.bool)


def twin(q_BTD: Tensor, kv_BM2D: Tensor, keep_B1QM: Tensor) -> Tensor:
    """Return the same by torch's own attention and autograd."""
    (q_BHTK,) = split_heads(q_BTD, 1, 3)
    k_BHMK, v_BHMK = split_heads(kv_BM2D, 2, 3)
    return merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHMK, v_BHMK, keep_B1QM))


def test_scale_is_inside_the_exponent() -> None:
    q_BTD = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]])
    kv_BM2D = torch.tensor([[[2.0, 0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 0]]])
    # The scores are 4 and 0; over sqrt(4) they are 2 and 0.
    share = math.exp(2) / (math.exp(2) + math.exp(0))
    attended = multi_head(q_BTD, kv_BM2D, see_all(2), 1).flatten()
    torch.testing.assert_close(attended, torch.tensor([share, 1 - share, 0, 0]))


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
@pytest.mark.parametrize("num_memory", [4, 17])
def test_equals_the_attention_of_torch(num_memory: int, mask: str) -> None:
    num_queries = num_memory if mask == "causal" else 6
    inputs = random_inputs(num_queries, num_memory, torch.float64)
    is_real_BM = torch.arange(num_memory) < torch.tensor([[3], [num_memory]])
    masks = {"none": see_all(num_memory), "padding": is_real_BM[:, None, None], "causal": None}
    ours = multi_head(*inputs, masks[mask], 3)
    theirs = twin(*inputs, keep_past(num_memory) if mask == "causal" else masks[mask])
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    weight = torch.randn_like(ours)
    our_gradients = torch.autograd.grad((ours * weight).sum(), inputs)
    their_gradients = torch.autograd.grad((theirs * weight).sum(), inputs)
    torch.testing.assert_close(our_gradients, their_gradients, atol=1e-5, rtol=1e-5)


def test_true_means_may_look() -> None:
    q_BTD, kv_BM2D = random_inputs(num_queries=2, num_memory=3)
    only_second = torch.tensor([False, True, False])[None, None, None, :]
    attended = multi_head(q_BTD, kv_BM2D, only_second, 3)
    torch.testing.assert_close(attended, kv_BM2D[:, 1:2, 12:].expand_as(attended))


def test_first_position_sees_itself_alone() -> None:
    q_BTD, kv_BT2D = random_inputs(num_queries=4, num_memory=4)
    torch.testing.assert_close(multi_head(q_BTD, kv_BT2D, None, 3)[:, 0], kv_BT2D[:, 0, 12:])


def test_huge_scores_neither_overflow_nor_pass_a_mask() -> None:
    q_BTD = torch.full((1, 1, 4), 1e4, requires_grad=True)
    kv_BM2D = torch.tensor([[[-1e4] * 4 + [1.0, 0, 0, 0], [1e4] * 4 + [0, 1.0, 0, 0]]])
    only_first = torch.tensor([True, False])[None, None, None, :]
    assert multi_head(q_BTD, kv_BM2D, only_first, 1).flatten().tolist() == [1, 0, 0, 0]
    attended = multi_head(q_BTD, kv_BM2D, see_all(2), 1)
    assert attended.flatten().tolist() == [0, 1, 0, 0]
    assert torch.autograd.grad(attended.sum(), q_BTD)[0].isfinite().all()


def test_heads_are_consecutive_columns_and_come_back() -> None:
    x_BTD = torch.arange(2 * 3 * 12).view(2, 3, 12)
    x_PBHTK = split_heads(x_BTD, 2, 3)
    assert x_PBHTK.shape == (2, 2, 3, 3, 2)
    assert torch.equal(x_PBHTK[0, 1, 2, 0], x_BTD[1, 0, 4:6])
    assert torch.equal(x_PBHTK[1, 1, 2, 0], x_BTD[1, 0, 10:12])
    assert torch.equal(merge_heads(x_PBHTK[1]), x_BTD[..., 6:])


def test_masks_are_bool_and_say_where_to_look() -> None:
    past = keep_past(3)
    assert past.dtype == torch.bool
    assert past[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    real = keep_real(torch.tensor([[5, 2, PAD], [5, 6, 2]]))
    assert real.shape == (2, 1, 1, 3)
    assert real[:, 0, 0].tolist() == [[True, True, False], [True, True, True]]
