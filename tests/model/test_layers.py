"""Layers against torch.nn's own, and what post-norm and pre-norm do to the output."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import CrossAttention, SelfAttention, keep_past
from nmt.model.cells import as_cells, as_sentences
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.transformer import keep_real
from nmt.tokens.vocab import PAD

Norm = Literal["post", "pre"]
NORMS: list[Norm] = ["post", "pre"]
IDS_BS = torch.tensor([[9, 9, 9, 9, 2], [9, 9, 2, PAD, PAD]])


def small(norm: Norm, d_model: int = 12, num_heads: int = 3, dropout: float = 0.0) -> ModelConfig:
    return ModelConfig(d_model, 20, num_heads, num_layers=(1, 1), dropout=dropout, norm=norm)


def set_to(target: Tensor, *sources: Tensor) -> None:
    with torch.no_grad():
        target.copy_(torch.cat(sources))


def copy_attention(theirs: nn.MultiheadAttention, ours: SelfAttention | CrossAttention) -> None:
    maps = [ours.qkv] if isinstance(ours, SelfAttention) else [ours.q, ours.kv]
    set_to(theirs.in_proj_weight, *(linear.weight for linear in maps))
    set_to(theirs.in_proj_bias, *(linear.bias for linear in maps))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_rest(
    theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
    ours: EncoderLayer | DecoderLayer,
) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for number, residual in enumerate(ours.residuals, start=1):
        assert isinstance(residual, Residual)
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())


def keep(ids_BS: Tensor, num_queries: int) -> Tensor:
    return keep_real(ids_BS).expand(-1, -1, num_queries, -1)


def encoded(layer: EncoderLayer, x_BSD: Tensor) -> Tensor:
    return as_sentences(layer(as_cells(x_BSD), keep(IDS_BS, 5)), 2, 5)


def disturb(module: nn.Module) -> None:
    """Give biases and norms values too, so that a forgotten one shows."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.3)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d_model", "num_heads"), [(12, 3), (6, 3), (8, 1), (8, 8)])
def test_encoder_layer_equals_that_of_torch(norm: Norm, d_model: int, num_heads: int) -> None:
    torch.manual_seed(0)
    ours = EncoderLayer(small(norm, d_model, num_heads))
    disturb(ours)
    theirs = nn.TransformerEncoderLayer(
        d_model, num_heads, 20, dropout=0, batch_first=True, norm_first=norm == "pre"
    )
    copy_attention(theirs.self_attn, ours.attention)
    copy_rest(theirs, ours)
    x_BSD = torch.randn(2, 5, d_model)
    expected = theirs(x_BSD, src_key_padding_mask=IDS_BS == PAD)
    torch.testing.assert_close(encoded(ours, x_BSD), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d_model", "num_heads"), [(12, 3), (6, 3), (8, 1), (8, 8)])
def test_decoder_layer_equals_that_of_torch(norm: Norm, d_model: int, num_heads: int) -> None:
    torch.manual_seed(0)
    ours = DecoderLayer(small(norm, d_model, num_heads))
    disturb(ours)
    theirs = nn.TransformerDecoderLayer(
        d_model, num_heads, 20, dropout=0, batch_first=True, norm_first=norm == "pre"
    )
    copy_attention(theirs.self_attn, ours.attention)
    copy_attention(theirs.multihead_attn, ours.cross)
    copy_rest(theirs, ours)
    x_BTD, memory_BSD = torch.randn(2, 4, d_model), torch.randn(2, 5, d_model)
    expected = theirs(
        x_BTD, memory_BSD, tgt_mask=~keep_past(4)[0, 0], memory_key_padding_mask=IDS_BS == PAD
    )
    past_B1TT = keep_past(4).expand(2, -1, -1, -1)
    actual_CD = ours(as_cells(x_BTD), as_cells(memory_BSD), past_B1TT, keep(IDS_BS, 4))
    torch.testing.assert_close(as_sentences(actual_CD, 2, 4), expected, atol=1e-5, rtol=1e-4)


def test_post_norm_output_has_mean_0_and_variance_1() -> None:
    torch.manual_seed(0)
    x_BSD = 7 + 40 * torch.randn(2, 5, 64)
    out_BSD = encoded(EncoderLayer(small("post", d_model=64, num_heads=4)), x_BSD)
    torch.testing.assert_close(out_BSD.mean(-1), torch.zeros(2, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(out_BSD.var(-1, correction=0), torch.ones(2, 5), atol=1e-4, rtol=0)


def test_pre_norm_leaves_the_residual_stream_alone() -> None:
    torch.manual_seed(0)
    x_BSD = 7 + 40 * torch.randn(2, 5, 64)
    out_BSD = encoded(EncoderLayer(small("pre", d_model=64, num_heads=4)), x_BSD)
    assert out_BSD.std() > 30
    assert (out_BSD - x_BSD).std() < 10


def test_residual_is_the_formula_of_the_paper() -> None:
    torch.manual_seed(0)
    x_BTD = torch.randn(2, 3, 12)
    post, pre = Residual(small("post")), Residual(small("pre"))
    disturb(post.norm)
    pre.norm.load_state_dict(post.norm.state_dict())
    assert torch.equal(post(x_BTD, torch.sin), post.norm(x_BTD + torch.sin(x_BTD)))
    assert torch.equal(pre(x_BTD, torch.sin), x_BTD + torch.sin(pre.norm(x_BTD)))


@pytest.mark.parametrize("norm", NORMS)
def test_dropout_falls_on_the_sublayer_and_never_on_the_residual(norm: Norm) -> None:
    torch.manual_seed(0)
    residual = Residual(small(norm, dropout=0.5))
    x_BTD = torch.full((4, 50, 12), 3.0)
    residual.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    seen: list[Tensor] = []
    out_BTD = residual(x_BTD, torch.ones_like)
    summed_BTD = out_BTD if norm == "pre" else seen[0]
    assert set(summed_BTD.unique().tolist()) == {3.0, 5.0}


def test_feed_forward_is_the_formula_and_spares_its_input() -> None:
    torch.manual_seed(0)
    layer = FeedForward(6, 10)
    disturb(layer)
    x_BTD = torch.randn(2, 3, 6)
    before_BTD = x_BTD.clone()
    hidden_BTF = torch.clamp(x_BTD @ layer.inner.weight.T + layer.inner.bias, min=0)
    expected = hidden_BTF @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x_BTD), expected)
    assert torch.equal(x_BTD, before_BTD)
