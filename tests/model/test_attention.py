"""Attention against the formula, against torch's own, and what its masks hide."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import attend, keep_past, merge_heads, multi_head, split_heads
from nmt.model.transformer import keep_real
from nmt.tokens.vocab import PAD


def random_qkv(num_queries: int, num_memory: int, width: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    q_BHQK = torch.randn(2, 3, num_queries, width, requires_grad=True)
    k_BHMK = torch.randn(2, 3, num_memory, width, requires_grad=True)
    v_BHMK = torch.randn(2, 3, num_memory, width, requires_grad=True)
    return q_BHQK, k_BHMK, v_BHMK


def test_scale_is_inside_the_exponent() -> None:
    q_BHQK = torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]])
    k_BHMK = torch.tensor([[[[2.0, 0, 0, 0], [0, 1, 0, 0]]]])
    v_BHMK = torch.tensor([[[[1.0, 0, 0, 0], [0, 1, 0, 0]]]])
    # The scores are 4 and 0; over sqrt(4) they are 2 and 0.
    share = math.exp(2) / (math.exp(2) + math.exp(0))
    attended = attend(q_BHQK, k_BHMK, v_BHMK, None).flatten()
    torch.testing.assert_close(attended, torch.tensor([share, 1 - share, 0, 0]))


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
def test_equals_the_attention_of_torch(mask: str) -> None:
    qkv = random_qkv(num_queries=4, num_memory=4)
    ids_BS = torch.tensor([[9, 9, 9, PAD], [9, 9, PAD, PAD]])
    keep = {"none": None, "padding": keep_real(ids_BS), "causal": keep_past(4)}
    ours = attend(*qkv, keep[mask])
    theirs = F.scaled_dot_product_attention(*qkv, attn_mask=keep[mask])
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    weight = torch.randn_like(ours)
    our_gradients = torch.autograd.grad((ours * weight).sum(), qkv)
    their_gradients = torch.autograd.grad((theirs * weight).sum(), qkv)
    torch.testing.assert_close(our_gradients, their_gradients, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("mask", ["padding", "causal"])
@pytest.mark.parametrize("num_memory", [4, 17])
def test_heads_with_a_gradient_by_hand_equal_those_of_autograd(num_memory: int, mask: str) -> None:
    torch.manual_seed(2)
    num_queries = num_memory if mask == "causal" else 6
    q_BTD = torch.randn(2, num_queries, 12, dtype=torch.float64, requires_grad=True)
    kv_BM2D = torch.randn(2, num_memory, 24, dtype=torch.float64, requires_grad=True)
    keep_B11M = (torch.arange(num_memory) < torch.tensor([[3], [num_memory]]))[:, None, None]
    ours = multi_head(q_BTD, kv_BM2D, None if mask == "causal" else keep_B11M, 3)
    heads = (split_heads(x, 3) for x in (q_BTD, *kv_BM2D.chunk(2, dim=-1)))
    twin = merge_heads(attend(*heads, keep_past(num_memory) if mask == "causal" else keep_B11M))
    torch.testing.assert_close(ours, twin, atol=1e-6, rtol=1e-5)
    weight = torch.randn_like(ours)
    actual = torch.autograd.grad((ours * weight).sum(), (q_BTD, kv_BM2D))
    expected = torch.autograd.grad((twin * weight).sum(), (q_BTD, kv_BM2D))
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_huge_scores_keep_their_gradient_finite() -> None:
    q_BTD = torch.full((1, 2, 4), 1e3, requires_grad=True)
    kv_BT2D = torch.cat((torch.full((1, 2, 4), -1e3), torch.ones(1, 2, 4)), dim=-1)
    kv_BT2D[:, 0] = 1e3
    attended = multi_head(q_BTD, kv_BT2D, None, 2)
    assert attended[0, 1].tolist() == [1e3] * 4
    assert torch.autograd.grad(attended.sum(), q_BTD)[0].isfinite().all()


def test_true_means_may_look() -> None:
    q_BHQK, k_BHMK, v_BHMK = random_qkv(num_queries=2, num_memory=3)
    only_second = torch.tensor([False, True, False])[None, None, None, :]
    attended = attend(q_BHQK, k_BHMK, v_BHMK, only_second)
    torch.testing.assert_close(attended, v_BHMK[:, :, 1:2].expand_as(attended))


def test_first_position_sees_itself_alone() -> None:
    q_BHQK, k_BHMK, v_BHMK = random_qkv(num_queries=4, num_memory=4)
    attended = attend(q_BHQK, k_BHMK, v_BHMK, keep_past(4))
    torch.testing.assert_close(attended[:, :, 0], v_BHMK[:, :, 0])


def test_huge_scores_neither_overflow_nor_pass_a_mask() -> None:
    q_BHQK = torch.full((1, 1, 1, 4), 1e4)
    k_BHMK = torch.stack((torch.full((4,), -1e4), torch.full((4,), 1e4)))[None, None]
    v_BHMK = torch.tensor([[[[1.0, 0, 0, 0], [0, 1, 0, 0]]]])
    keep = torch.tensor([True, False])[None, None, None, :]
    assert attend(q_BHQK, k_BHMK, v_BHMK, keep).flatten().tolist() == [1, 0, 0, 0]
    assert attend(q_BHQK, k_BHMK, v_BHMK, None).flatten().tolist() == [0, 1, 0, 0]


def test_heads_are_consecutive_columns_and_come_back() -> None:
    x_BTD = torch.arange(2 * 3 * 6).view(2, 3, 6)
    x_BHTK = split_heads(x_BTD, 3)
    assert x_BHTK.shape == (2, 3, 3, 2)
    assert torch.equal(x_BHTK[1, 2, 0], x_BTD[1, 0, 4:6])
    assert torch.equal(merge_heads(x_BHTK), x_BTD)


def test_masks_are_bool_and_say_where_to_look() -> None:
    past = keep_past(3)
    assert past.dtype == torch.bool
    assert past[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    real = keep_real(torch.tensor([[5, 2, PAD], [5, 6, 2]]))
    assert real.shape == (2, 1, 1, 3)
    assert real[:, 0, 0].tolist() == [[True, True, False], [True, True, True]]
