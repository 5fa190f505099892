"""The whole model: who may see whom, that padding is nothing, ties, first weights, precision."""

import copy
import itertools
import math
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import CrossAttention, SelfAttention
from nmt.model.cells import as_sentences
from nmt.model.layers import FeedForward
from nmt.model.transformer import Transformer, compute_in, keep_real
from nmt.tokens.vocab import PAD, START, STOP

Norm = Literal["post", "pre"]
Positions = Literal["sinusoidal", "learned"]
Tie = Literal["all", "decoder", "none"]
NORMS: list[Norm] = ["post", "pre"]
KINDS: list[tuple[Norm, Positions]] = [
    ("post", "sinusoidal"),
    ("post", "learned"),
    ("pre", "sinusoidal"),
    ("pre", "learned"),
]

SRC_BS = torch.tensor([[5, 6, 7, 8, STOP], [9, 4, STOP, PAD, PAD]])
TGT_BT = torch.tensor([[START, 10, 11, 12], [START, 13, PAD, PAD]])


def small(
    norm: Norm = "post",
    positions: Positions = "sinusoidal",
    tie: Tie = "none",
    num_layers: tuple[int, int] = (2, 2),
) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=12,
        d_ff=20,
        num_heads=3,
        num_layers=num_layers,
        dropout=0.0,
        norm=norm,
        positions=positions,
        max_positions=16,
        tie=tie,
    )
    return Transformer(config, src_vocab=17, tgt_vocab=17)


def embedded(model: nn.Module) -> list[Tensor]:
    """Return a list that receives what the embedding gives, ready for torch.autograd.grad."""
    outputs: list[Tensor] = []
    model.register_forward_hook(lambda _, __, output: outputs.append(output))
    return outputs


def influence(logits_BTV: Tensor, inputs_BMD: Tensor) -> Tensor:
    """Return which of the inputs move which position's logits, shape BTM."""
    weight_V = torch.randn(logits_BTV.shape[-1])
    columns = []
    for position in range(logits_BTV.shape[1]):
        seen = (logits_BTV[:, position] @ weight_V).sum()
        (gradient_BMD,) = torch.autograd.grad(seen, inputs_BMD, retain_graph=True)
        columns.append(gradient_BMD.ne(0).any(dim=-1))
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_gradients_flow_from_no_later_target_and_from_no_padding(
    norm: Norm, positions: Positions
) -> None:
    model = small(norm, positions)
    sources, targets = embedded(model.src_embedding), embedded(model.tgt_embedding)
    logits_BTV = model(SRC_BS, TGT_BT)
    causal_TT = torch.ones(4, 4, dtype=torch.bool).tril()
    assert torch.equal(influence(logits_BTV, targets[0]), causal_TT.expand(2, 4, 4))
    is_real_BS = SRC_BS != PAD
    assert torch.equal(influence(logits_BTV, sources[0]), is_real_BS[:, None].expand(2, 4, 5))


@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_encoder_looks_both_ways_but_not_at_padding(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    sources = embedded(model.src_embedding)
    memory_BSD = model.encode(SRC_BS, keep_real(SRC_BS))
    seen_BSS = influence(memory_BSD, sources[0])
    assert seen_BSS[0].all()
    assert torch.equal(seen_BSS[1, :3], (SRC_BS[1] != PAD).expand(3, 5))


@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_later_target_token_leaves_earlier_logits(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    before_BTV = model(SRC_BS, TGT_BT)
    for changed in range(1, 4):
        tgt_BT = TGT_BT.clone()
        tgt_BT[:, changed] = 14
        after_BTV = model(SRC_BS, tgt_BT)
        assert torch.equal(after_BTV[:, :changed], before_BTV[:, :changed])
        assert not torch.allclose(after_BTV[:, changed], before_BTV[:, changed], atol=1e-3)


@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_what_stands_at_a_pad_position_changes_nothing(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    keep_B11S = keep_real(SRC_BS)
    before_BTV = model(SRC_BS, TGT_BT)
    src_BS, tgt_BT = SRC_BS.clone(), TGT_BT.clone()
    src_BS[1, 3:], tgt_BT[1, 2:] = torch.tensor([15, 16]), torch.tensor([16, 15])
    after_BTV = model.project(model.decode(tgt_BT, model.encode(src_BS, keep_B11S), keep_B11S))
    assert torch.equal(after_BTV[0], before_BTV[0])
    assert torch.equal(after_BTV[1, :2], before_BTV[1, :2])


@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_a_sentence_alone_gives_what_it_gives_padded(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    together_BTV = model(SRC_BS, TGT_BT)
    alone_BTV = model(SRC_BS[1:, :3], TGT_BT[1:, :2])
    torch.testing.assert_close(together_BTV[1:, :2], alone_BTV, atol=1e-5, rtol=1e-5)


def test_without_positions_the_encoder_does_not_know_the_order() -> None:
    model = small()
    src_BS = torch.tensor([[5, 6, 7, 8, STOP, PAD]])
    order = torch.tensor([3, 0, 4, 1, 2, 5])
    keep_B11S = keep_real(src_BS)
    knows_order = (
        model.encode(src_BS[:, order], keep_B11S) - model.encode(src_BS, keep_B11S)[:, order]
    )
    assert knows_order.abs().max() > 0.1
    model.src_positions.register_forward_hook(lambda _, __, places_TD: torch.zeros_like(places_TD))
    memory_BSD = model.encode(src_BS, keep_B11S)
    permuted_BSD = model.encode(src_BS[:, order], keep_B11S)
    torch.testing.assert_close(permuted_BSD, memory_BSD[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_both_stacks_end_in_exactly_one_norm(norm: Norm) -> None:
    model = small(norm)
    memory_BSD = model.encode(SRC_BS, keep_real(SRC_BS))
    hidden_BTD = model.decode(TGT_BT, memory_BSD, keep_real(SRC_BS))
    for out in (memory_BSD, hidden_BTD):
        torch.testing.assert_close(out.mean(-1), torch.zeros(out.shape[:2]), atol=1e-5, rtol=0)
        variance = out.var(-1, correction=0)
        torch.testing.assert_close(variance, torch.ones(out.shape[:2]), atol=1e-3, rtol=0)
    num_norms = sum(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert num_norms == 2 * (2 + 3) + (2 if norm == "pre" else 0)


def test_embeddings_are_scaled_and_positions_are_not() -> None:
    model = small(num_layers=(1, 1))
    seen: list[Tensor] = []
    model.encoder[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.encode(SRC_BS, keep_real(SRC_BS))
    places_SD = model.src_positions(5, 0, SRC_BS.device)
    embedded_BSD = model.src_embedding(SRC_BS) * math.sqrt(12) + places_SD
    torch.testing.assert_close(as_sentences(seen[0], *SRC_BS.shape), embedded_BSD)


def count_weights(config: ModelConfig, src_vocab: int, tgt_vocab: int) -> dict[Tie, int]:
    """Return the number of weights for each tie, from the paper's shapes."""
    width, inner = config.d_model, config.d_ff
    attention = 4 * (width * width + width)
    feed_forward = width * inner + inner + inner * width + width
    norm = 2 * width
    num_encoder, num_decoder = config.num_layers
    layers = num_encoder * (attention + feed_forward + 2 * norm)
    layers += num_decoder * (2 * attention + feed_forward + 3 * norm)
    return {
        "all": layers + src_vocab * width,
        "decoder": layers + (src_vocab + tgt_vocab) * width,
        "none": layers + (src_vocab + 2 * tgt_vocab) * width,
    }


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("num_layers", [(2, 2), (3, 1), (1, 2)])
@pytest.mark.parametrize("tgt_vocab", [17, 23])
def test_ties_have_the_weights_of_the_paper(
    tie: Tie, num_layers: tuple[int, int], tgt_vocab: int
) -> None:
    src_vocab = tgt_vocab if tie == "all" else 17
    config = ModelConfig(6, 10, num_heads=3, num_layers=num_layers, tie=tie)
    model = Transformer(config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    expected = count_weights(config, src_vocab, tgt_vocab)[tie]
    assert sum(weight.numel() for weight in model.parameters()) == expected
    shared = {
        "src=tgt": model.src_embedding.weight is model.tgt_embedding.weight,
        "tgt=out": model.tgt_embedding.weight is model.output.weight,
    }
    assert shared == {"src=tgt": tie == "all", "tgt=out": tie != "none"}
    assert (len(model.encoder), len(model.decoder)) == num_layers
    assert model(SRC_BS, TGT_BT).shape == (2, 4, tgt_vocab)


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
def test_gradients_reach_every_weight_and_the_right_rows(tie: Tie) -> None:
    model = small(tie=tie)
    model(SRC_BS, TGT_BT).logsumexp(-1).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.ne(0).any(), name
    rows = {
        name: set(weight.grad.ne(0).any(dim=1).nonzero().flatten().tolist())
        for name, weight in model.named_parameters()
        if "embedding" in name and weight.grad is not None
    }
    read = set(SRC_BS.flatten().tolist()) - {PAD}
    spoken = set(TGT_BT.flatten().tolist())
    every = set(range(17))
    expected: dict[Tie, dict[str, set[int]]] = {
        "all": {"src_embedding.weight": every},
        "decoder": {"src_embedding.weight": read, "tgt_embedding.weight": every},
        "none": {"src_embedding.weight": read, "tgt_embedding.weight": spoken},
    }
    assert rows == expected[tie]


def test_linear_maps_start_as_xavier_with_bias_0() -> None:
    config = ModelConfig(64, 128, num_heads=4, num_layers=(1, 1), tie="none")
    torch.manual_seed(0)
    model = Transformer(config, src_vocab=300, tgt_vocab=300)
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    assert len(linears) == (2 + 2) + (2 + 3 + 2) + 1
    for linear in linears:
        bound = math.sqrt(6 / (linear.in_features + linear.out_features))
        assert 0.98 * bound < linear.weight.abs().max() <= bound
        assert linear.weight.var().item() == pytest.approx(bound**2 / 3, rel=0.05)
        assert linear is model.output or not linear.bias.any()
    assert model.output.bias is None


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
def test_scaled_embeddings_start_with_variance_1(tie: Tie) -> None:
    torch.manual_seed(0)
    config = ModelConfig(64, 64, num_heads=4, num_layers=(1, 1), tie=tie)
    model = Transformer(config, src_vocab=400, tgt_vocab=400)
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert (8 * embedding.weight).var().item() == pytest.approx(1, rel=0.05)
        assert embedding.weight.mean().item() == pytest.approx(0, abs=0.005)


def test_first_logits_are_small_enough_to_learn_from() -> None:
    """With a tied projection, a d_model**-0.5 too much would give logits of deviation d_model."""
    torch.manual_seed(0)
    config = ModelConfig(64, 128, num_heads=4, num_layers=(2, 2), dropout=0.0)
    model = Transformer(config, src_vocab=400, tgt_vocab=400)
    src_BS, tgt_BT = torch.randint(4, 400, (8, 10)), torch.randint(4, 400, (8, 10))
    assert model(src_BS, tgt_BT).std().item() == pytest.approx(1, rel=0.3)


def test_dropout_is_on_in_training_alone_and_drawn_from_the_seed() -> None:
    config = ModelConfig(12, 20, num_heads=3, num_layers=(1, 1), dropout=0.3)
    model = Transformer(config, src_vocab=17, tgt_vocab=17)

    def logits(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model(SRC_BS, TGT_BT)

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))
    model.eval()
    assert torch.equal(logits(1), logits(2))


def test_both_embeddings_and_each_sublayer_are_dropped_out() -> None:
    """Vaswani 2017, 5.4: on each sub-layer's output and on the sums of embeddings and positions."""
    config = ModelConfig(12, 20, num_heads=3, num_layers=(3, 1), dropout=0.3)
    model = Transformer(config, src_vocab=17, tgt_vocab=17)
    calls: list[float] = []
    for module in model.modules():
        if type(module).__name__ == "Dropout":
            module.register_forward_hook(lambda _, __, output: calls.append(output.numel()))
    model(SRC_BS, TGT_BT)
    assert len(calls) == (1 + 3 * 2) + (1 + 1 * 3)


@pytest.mark.parametrize("tie", ["all", "none"])
@pytest.mark.parametrize("norm", NORMS)
def test_bf16_logits_stay_close_to_fp32(tie: Tie, norm: Norm) -> None:
    """bf16 has 8 bits: logits of deviation 1 after 4 layers are within 0.06, 0.01 on average."""
    torch.manual_seed(0)
    config = ModelConfig(64, 128, num_heads=4, num_layers=(2, 2), norm=norm, tie=tie)
    model = Transformer(config, src_vocab=400, tgt_vocab=400).eval()
    src_BS, tgt_BT = torch.randint(4, 400, (8, 10)), torch.randint(4, 400, (8, 10))
    fast = compute_in(copy.deepcopy(model), torch.bfloat16)
    off = (fast(src_BS, tgt_BT).float() - model(src_BS, tgt_BT)).abs()
    assert 0 < off.max() < 0.06
    assert off.mean() < 0.01


@pytest.mark.parametrize("tie", ["all", "none"])
def test_all_but_the_embeddings_computes_in_bf16(tie: Tie) -> None:
    model = compute_in(small("pre", "learned", tie), torch.bfloat16)
    for module in model.modules():
        weights = dict(module.named_parameters(recurse=False))
        is_fast = isinstance(module, nn.Linear | nn.LayerNorm)
        expected = torch.bfloat16 if is_fast else torch.float32
        assert {weight.dtype for weight in weights.values()} <= {expected}, module
    seen: list[torch.dtype] = []
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    assert model(SRC_BS, TGT_BT).dtype == torch.bfloat16
    assert set(seen) == {torch.bfloat16}


def test_fp32_on_fp32_leaves_the_model_as_it_is() -> None:
    model = small(tie="all")
    weights = list(model.parameters())
    assert compute_in(model, torch.float32) is model
    after = list(model.parameters())
    assert all(old is new for old, new in itertools.zip_longest(weights, after))
    assert model.output.weight is model.src_embedding.weight


def test_every_sublayer_has_its_own_weights() -> None:
    model = small(num_layers=(3, 2))
    counts = {
        kind: len({id(module) for module in model.modules() if isinstance(module, kind)})
        for kind in (SelfAttention, CrossAttention, FeedForward)
    }
    assert counts == {SelfAttention: 5, CrossAttention: 2, FeedForward: 5}
