"""Attention against the formula, against torch's own, and what its masks hide."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import keep_past, merge_heads, multi_head, split_heads
from nmt.model.cells import as_sentences
from nmt.model.transformer import keep_real
from nmt.tokens.vocab import PAD


def random_inputs(
    num_queries: int, num_memory: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Queries, and keys beside values, of two sentences and three heads of four columns.

    With five cells each that are of no sentence.
    """
    torch.manual_seed(2)
    q_CD = torch.randn(2 * num_queries + 5, 12, dtype=dtype, requires_grad=True)
    kv_C2D = torch.randn(2 * num_memory + 5, 24, dtype=dtype, requires_grad=True)
    return q_CD, kv_C2D


def see_all(num_sentences: int, num_queries: int, num_memory: int) -> Tensor:
    return torch.ones(num_sentences, 1, num_queries, num_memory, dtype=torch.bool)


def twin(q_CD: Tensor, kv_C2D: Tensor, keep_B1QM: Tensor) -> Tensor:
    """Return the same by torch's own attention and autograd."""
    num_sentences, _, num_queries, num_memory = keep_B1QM.shape
    (q_BHQK,) = split_heads(as_sentences(q_CD, num_sentences, num_queries), 1, 3)
    k_BHMK, v_BHMK = split_heads(as_sentences(kv_C2D, num_sentences, num_memory), 2, 3)
    attended_BHQK = F.scaled_dot_product_attention(q_BHQK, k_BHMK, v_BHMK, keep_B1QM)
    attended_CD = merge_heads(attended_BHQK).flatten(0, 1)
    return F.pad(attended_CD, (0, 0, 0, len(q_CD) - len(attended_CD)))


def test_scale_is_inside_the_exponent() -> None:
    q_CD = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    kv_C2D = torch.tensor([[2.0, 0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 0]])
    # The scores are 4 and 0; over sqrt(4) they are 2 and 0.
    share = math.exp(2) / (math.exp(2) + math.exp(0))
    attended = multi_head(q_CD, kv_C2D, see_all(1, 1, 2), 1).flatten()
    torch.testing.assert_close(attended, torch.tensor([share, 1 - share, 0, 0]))


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
@pytest.mark.parametrize("num_memory", [4, 17])
def test_equals_the_attention_of_torch(num_memory: int, mask: str) -> None:
    """And what is in a cell of no sentence neither matters nor gets a gradient."""
    num_queries = num_memory if mask == "causal" else 6
    inputs = random_inputs(num_queries, num_memory, torch.float64)
    is_real_BM = torch.arange(num_memory) < torch.tensor([[3], [num_memory]])
    masks = {
        "none": see_all(2, num_queries, num_memory),
        "padding": is_real_BM[:, None, None].expand(-1, -1, num_queries, -1),
        "causal": keep_past(num_memory).expand(2, -1, -1, -1),
    }
    ours = multi_head(*inputs, masks[mask], 3, is_causal=mask == "causal")
    theirs = twin(*inputs, masks[mask])
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    weight = torch.randn_like(ours)
    our_gradients = torch.autograd.grad((ours * weight).sum(), inputs)
    their_gradients = torch.autograd.grad((theirs * weight).sum(), inputs)
    torch.testing.assert_close(our_gradients, their_gradients, atol=1e-5, rtol=1e-5)


def test_true_means_may_look() -> None:
    q_CD, kv_C2D = random_inputs(num_queries=2, num_memory=3)
    only_second = torch.tensor([False, True, False]).expand(2, 1, 2, 3)
    attended_BQD = as_sentences(multi_head(q_CD, kv_C2D, only_second, 3), 2, 2)
    second_BD = as_sentences(kv_C2D, 2, 3)[:, 1:2, 12:]
    torch.testing.assert_close(attended_BQD, second_BD.expand(2, 2, 12))


def test_first_position_sees_itself_alone() -> None:
    q_CD, kv_C2D = random_inputs(num_queries=4, num_memory=4)
    past_B1TT = keep_past(4).expand(2, -1, -1, -1)
    attended_BTD = as_sentences(multi_head(q_CD, kv_C2D, past_B1TT, 3), 2, 4)
    torch.testing.assert_close(attended_BTD[:, 0], as_sentences(kv_C2D, 2, 4)[:, 0, 12:])


def test_huge_scores_neither_overflow_nor_pass_a_mask() -> None:
    q_CD = torch.full((1, 4), 1e4, requires_grad=True)
    kv_C2D = torch.tensor([[-1e4] * 4 + [1.0, 0, 0, 0], [1e4] * 4 + [0, 1.0, 0, 0]])
    only_first = torch.tensor([True, False])[None, None, None, :]
    assert multi_head(q_CD, kv_C2D, only_first, 1).flatten().tolist() == [1, 0, 0, 0]
    attended = multi_head(q_CD, kv_C2D, see_all(1, 1, 2), 1)
    assert attended.flatten().tolist() == [0, 1, 0, 0]
    assert torch.autograd.grad(attended.sum(), q_CD)[0].isfinite().all()


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
