"""The weights that decode.py gives to other toolkits: each arrives once, under one name."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model.positions import sinusoids
from nmt.model.transformer import Transformer

SCRIPT = Path(__file__).parent.parent / "scripts" / "bench" / "decode_peers.py"
TOOLKITS = ("ONMT", "EOLE", "JOEYNMT")


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("decode_peers", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small(**changes: object) -> Transformer:
    config = ModelConfig(d_model=8, d_ff=12, num_heads=2, num_layers=(2, 3), **changes)  # type: ignore[arg-type]
    model = Transformer(config, src_vocab=7, tgt_vocab=7)
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    return model


@pytest.mark.parametrize("toolkit", TOOLKITS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_each_number_of_the_model_arrives_once(peers: ModuleType, toolkit: str, norm: str) -> None:
    model = small(norm=norm, tie="none")
    names = getattr(peers, toolkit)
    renamed = names.rename(model)
    given = sorted(torch.cat([weight.flatten() for weight in model.parameters()]).tolist())
    weights = [weight.flatten() for name, weight in renamed.items() if not name.endswith(".pe")]
    arrived = torch.cat(weights)
    if norm == "post" and names.shifts_norms:
        assert (arrived == 0).sum() == 2 * 2 * 8  # the norms that are passed over
        arrived = arrived[arrived != 0]
    assert sorted(arrived.tolist()) == given


def test_query_key_and_value_part(peers: ModuleType) -> None:
    model = small()
    renamed = peers.ONMT.rename(model)
    q_DD, k_DD, v_DD = model.get_parameter("decoder.1.attention.qkv.weight").chunk(3)
    stem = "decoder.transformer_layers.1.self_attn.linear"
    assert torch.equal(renamed[f"{stem}_query.weight"], q_DD)
    assert torch.equal(renamed[f"{stem}_keys.weight"], k_DD)
    assert torch.equal(renamed[f"{stem}_values.weight"], v_DD)


def test_a_norm_after_a_sublayer_comes_before_the_next(peers: ModuleType) -> None:
    model = small(norm="post")
    renamed = peers.EOLE.rename(model)
    after = {
        "decoder.0.residuals.0": "decoder.transformer_layers.0.precontext_layernorm",
        "decoder.0.residuals.1": "decoder.transformer_layers.0.post_attention_layernorm",
        "decoder.0.residuals.2": "decoder.transformer_layers.1.input_layernorm",
        "decoder.2.residuals.2": "decoder.layer_norm",
        "encoder.1.residuals.1": "encoder.layer_norm",
    }
    for ours, theirs in after.items():
        weight = model.get_parameter(f"{ours}.norm.weight")
        assert torch.equal(renamed[f"{theirs}.weight"], weight), ours


def test_positions_are_ours(peers: ModuleType) -> None:
    sinusoidal = peers.JOEYNMT.rename(small())["encoder.pe.pe"]
    assert torch.equal(sinusoidal, sinusoids(5000, 8))
    model = small(positions="learned", max_positions=20)
    learned = peers.JOEYNMT.rename(model)["decoder.pe.pe"]
    assert torch.equal(learned[:20], model.get_parameter("tgt_positions.table_TD"))
