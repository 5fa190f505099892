"""Writes a trained model in the format of CTranslate2."""

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.errors import UserError
from nmt.model.positions import sinusoids
from nmt.model.transformer import Transformer
from nmt.tokens.vocab import START, STOP, UNK, Vocab, Vocabs

# CTranslate2 has no sinusoids of the paper's layout: it is given a table, which has an end.
MAX_POSITIONS = 4096
QUANTIZATIONS = ("none", "int8")


def load_ctranslate2(module: str) -> Any:
    """Import ctranslate2 or a module of it, which are there only with the extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(
            "CTranslate2 is not installed; install it with `pip install 'nmt[ctranslate2]'`."
        ) from None


def write_model(model: Transformer, vocabs: Vocabs, folder: Path, quantization: str) -> None:
    """Write model.bin, config.json and the vocabularies into a folder that is there.

    `quantization` is none (fp32) or int8. CTranslate2 itself adds start and stop token.
    """
    specs = load_ctranslate2("ctranslate2.specs")
    num_encoder, num_decoder = model.config.num_layers
    is_pre = model.config.norm == "pre"
    spec = specs.TransformerSpec.from_config(
        (num_encoder, num_decoder), model.config.num_heads, pre_norm=is_pre
    )
    # Copies, as CTranslate2 quantizes in place.
    state = model.state_dict()
    weights = {name: tensor.to(torch.float32, copy=True) for name, tensor in state.items()}
    stacks = (("encoder", "src", spec.encoder), ("decoder", "tgt", spec.decoder))
    for name, side, stack in stacks:
        embeddings = stack.embeddings[0] if name == "encoder" else stack.embeddings
        embeddings.weight = weights[f"{side}_embedding.weight"]
        stack.position_encodings.encodings = _positions(model, weights, side)
        if is_pre:
            _norm(stack.layer_norm, weights, f"{name}_norm")
        for number, layer in enumerate(stack.layer):
            _layer(layer, weights, f"{name}.{number}", has_cross=name == "decoder")
    spec.decoder.projection.weight = weights["output.weight"]
    spec.config.layer_norm_epsilon = 1e-5
    spec.config.add_source_eos = True
    unk, start, stop = vocabs.tgt.pieces([UNK, START, STOP])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unk, start, stop
    spec.config.decoder_start_token = start
    spec.register_source_vocabulary(all_pieces(vocabs.src))
    spec.register_target_vocabulary(all_pieces(vocabs.tgt))
    spec.validate()
    spec.optimize(quantization=None if quantization == "none" else quantization)
    spec.save(str(folder))


def all_pieces(vocab: Vocab) -> list[str]:
    """Return the piece of each id, in the order of the ids."""
    return vocab.pieces(range(len(vocab)))


def _positions(model: Transformer, weights: dict[str, Tensor], side: str) -> Tensor:
    if model.max_positions:
        return weights[f"{side}_positions.table_TD"]
    return sinusoids(MAX_POSITIONS, model.config.d_model)


def _layer(layer: Any, weights: dict[str, Tensor], name: str, *, has_cross: bool) -> None:
    for linear, part in zip(layer.self_attention.linear, ("qkv", "out"), strict=True):
        _linear(linear, weights, f"{name}.attention.{part}")
    residuals = [layer.self_attention, layer.ffn]
    if has_cross:
        for linear, part in zip(layer.attention.linear, ("q", "kv", "out"), strict=True):
            _linear(linear, weights, f"{name}.cross.{part}")
        residuals.insert(1, layer.attention)
    _linear(layer.ffn.linear_0, weights, f"{name}.feed_forward.inner")
    _linear(layer.ffn.linear_1, weights, f"{name}.feed_forward.outer")
    for number, sublayer in enumerate(residuals):
        _norm(sublayer.layer_norm, weights, f"{name}.residuals.{number}.norm")


def _linear(spec: Any, weights: dict[str, Tensor], name: str) -> None:
    spec.weight, spec.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _norm(spec: Any, weights: dict[str, Tensor], name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
