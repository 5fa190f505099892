"""Writes a trained run as a model of OpenNMT-py, eole or JoeyNMT, so that decode.py can time them.

The weights stay as they are and get other names. OpenNMT-py and eole know pre-norm only, and
decode_worker.py lets them compute post-norm. Sockeye is left out: its attention has no biases, so
it cannot hold these weights. (Its own small model decodes at a quarter of OpenNMT-py's speed.)
"""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file
from torch import Tensor

from nmt.lines import write_lines
from nmt.model.positions import sinusoids
from nmt.model.transformer import Transformer
from nmt.tokens.vocab import PAD, START, STOP, UNK, Vocabs

NUM_POSITIONS = 5000  # the length of their tables
LAYER = re.compile(r"(encoder|decoder)\.(\d+)\.(.+)")
STACKS = ("encoder", "decoder")
FINAL_NORMS = {f"{stack}_norm": f"{stack}.layer_norm" for stack in STACKS}
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Names:
    """What a toolkit calls our weights, without .weight and .bias; several names in our order."""

    layers: dict[str, str]
    """Of each stack: what stands before the number of a layer."""
    attentions: dict[str, str]
    """Of each stack: self-attention, and in the decoder cross-attention."""
    linears: str
    """Of an attention: query, key, value, output."""
    feed_forward: str
    norms: dict[str, str]
    """Of each stack: after our sub-layers."""
    others: dict[str, str]
    shifts_norms: bool
    """Whether the norm of a post-norm layer goes by what follows it, as there it comes first."""

    def rename(self, model: Transformer) -> Weights:
        """Return the weights under the names of this toolkit, each once."""
        weights = split(model)
        if self.shifts_norms and model.config.norm == "post":
            weights = shift_norms(weights, model.config.num_layers)
        parts = {stack: self._parts(stack) for stack in STACKS}
        renamed = {}
        for name, weight in weights.items():
            owner, _, kind = name.rpartition(".")
            if layer := LAYER.fullmatch(owner):
                stack, number, part = layer.groups()
                owner = f"{self.layers[stack]}.{number}.{parts[stack][part]}"
            else:
                owner = self.others[owner]
            renamed[f"{owner}.{kind}"] = weight
        assert len(renamed) == len(weights)
        return renamed

    def _parts(self, stack: str) -> dict[str, str]:
        """Return the name of each part of a layer by ours."""
        parts = {
            f"{ours}.{part}": f"{theirs}.{linear}"
            for ours, theirs in zip(
                ("attention", "cross"), self.attentions[stack].split(), strict=False
            )
            for part, linear in zip(("q", "k", "v", "out"), self.linears.split(), strict=True)
        }
        for part, linear in zip(("inner", "outer"), self.feed_forward.split(), strict=True):
            parts[f"feed_forward.{part}"] = linear
        for number, norm in enumerate(self.norms[stack].split()):
            parts[f"residuals.{number}.norm"] = norm
        return parts


def split(model: Transformer) -> Weights:
    """Return the weights with query, key and value apart, and the positions of both sides."""
    weights: Weights = {}
    for name, weight in model.state_dict().items():
        owner, _, kind = name.rpartition(".")
        stem, _, part = owner.rpartition(".")
        if part in ("qkv", "kv"):
            for letter, piece in zip(part, weight.chunk(len(part)), strict=True):
                weights[f"{stem}.{letter}.{kind}"] = piece.clone()
        elif kind != "table_TD":
            weights[name] = weight.clone()
    table_TD = sinusoids(NUM_POSITIONS, model.config.d_model)
    for side in ("src", "tgt"):
        positions = model.get_submodule(f"{side}_positions")
        given = positions.table_TD if model.max_positions else table_TD
        weights[f"{side}_positions.pe"] = torch.zeros_like(table_TD)
        weights[f"{side}_positions.pe"][: len(given)] = given
    return weights


def shift_norms(weights: Weights, num_layers: tuple[int, int]) -> Weights:
    """Name each norm of a post-norm stack by the sub-layer that follows it.

    The last becomes the norm at the end of the stack. The first sub-layer has none before it: what
    it gets is zero, and decode_worker.py passes over it.
    """
    shifted = dict(weights)
    for stack, count, num_norms in zip(STACKS, num_layers, (2, 3), strict=True):
        norms = [
            f"{stack}.{layer}.residuals.{number}.norm"
            for layer in range(count)
            for number in range(num_norms)
        ]
        for kind in ("weight", "bias"):
            shifted[f"{norms[0]}.{kind}"] = torch.zeros_like(weights[f"{norms[0]}.{kind}"])
            for name, later in zip(norms, [*norms[1:], f"{stack}_norm"], strict=True):
                shifted[f"{later}.{kind}"] = weights[f"{name}.{kind}"]
    return shifted


ONMT = Names(
    layers={"encoder": "encoder.transformer", "decoder": "decoder.transformer_layers"},
    attentions={"encoder": "self_attn", "decoder": "self_attn context_attn"},
    linears="linear_query linear_keys linear_values final_linear",
    feed_forward="feed_forward.w_1 feed_forward.w_2",
    norms={
        "encoder": "layer_norm feed_forward.layer_norm",
        "decoder": "layer_norm_1 layer_norm_2 feed_forward.layer_norm",
    },
    others={
        "src_embedding": "encoder.embeddings.make_embedding.emb_luts.0",
        "tgt_embedding": "decoder.embeddings.make_embedding.emb_luts.0",
        "src_positions": "encoder.embeddings.make_embedding.pe",
        "tgt_positions": "decoder.embeddings.make_embedding.pe",
        **FINAL_NORMS,
        "output": "generator",
    },
    shifts_norms=True,
)
EOLE = Names(
    layers={stack: f"{stack}.transformer_layers" for stack in STACKS},
    attentions=ONMT.attentions,
    linears=ONMT.linears,
    feed_forward="mlp.gate_up_proj mlp.down_proj",
    norms={
        "encoder": "input_layernorm post_attention_layernorm",
        "decoder": "input_layernorm precontext_layernorm post_attention_layernorm",
    },
    others={
        "src_embedding": "src_emb.embeddings",
        "tgt_embedding": "tgt_emb.embeddings",
        "src_positions": "src_emb.pe",
        "tgt_positions": "tgt_emb.pe",
        **FINAL_NORMS,
        "output": "generator",
    },
    shifts_norms=True,
)
JOEYNMT = Names(
    layers={stack: f"{stack}.layers" for stack in STACKS},
    attentions={"encoder": "src_src_att", "decoder": "trg_trg_att src_trg_att"},
    linears="q_layer k_layer v_layer output_layer",
    feed_forward="feed_forward.pwff_layer.0 feed_forward.pwff_layer.3",
    norms={
        "encoder": "layer_norm feed_forward.layer_norm",
        "decoder": "x_layer_norm dec_layer_norm feed_forward.layer_norm",
    },
    others={
        "src_embedding": "src_embed.lut",
        "tgt_embedding": "trg_embed.lut",
        "src_positions": "encoder.pe",
        "tgt_positions": "decoder.pe",
        **FINAL_NORMS,
        "output": "decoder.output_layer",
    },
    shifts_norms=False,
)


def write_onmt(model: Transformer, vocabs: Vocabs, folder: Path) -> None:
    """Write model.pt."""
    config = model.config
    weights = ONMT.rename(model)
    output = weights.pop("generator.weight")
    options = {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": -1,
        "enc_layers": config.num_layers[0],
        "dec_layers": config.num_layers[1],
        "hidden_size": config.d_model,
        "word_vec_size": config.d_model,
        "transformer_ff": config.d_ff,
        "heads": config.num_heads,
        "position_encoding": True,
        "add_qkvbias": True,
        "add_ffnbias": True,
        "norm_eps": 1e-5,
        "dropout": [0.0],
        "attention_dropout": [0.0],
        "optim": "adam",
        "freeze_word_vecs_enc": False,
        "freeze_word_vecs_dec": False,
    }
    checkpoint = {
        "model": _with_one_sentence(weights, 1),
        "generator": {"weight": output, "bias": torch.zeros(len(output))},
        "vocab": {
            "src": _pieces(vocabs, "src", pad="<blank>"),
            "tgt": _pieces(vocabs, "tgt", pad="<blank>"),
            "data_task": "seq2seq",
            "decoder_start_token": "<s>",
        },
        "opt": Namespace(**options),
    }
    torch.save(checkpoint, folder / "model.pt")


def write_eole(model: Transformer, vocabs: Vocabs, folder: Path) -> None:
    """Write config.json, vocab.json and model.00.safetensors."""
    config = model.config
    num_encoder, num_decoder = config.num_layers
    weights = _with_one_sentence(EOLE.rename(model), 1)
    weights["generator.bias"] = torch.zeros(len(weights["generator.weight"]))
    for layer in range(num_decoder):
        weights[f"decoder.transformer_layers.{layer}.layer_scalar"] = torch.ones(1)
    save_file(weights, folder / "model.00.safetensors")
    stack = {
        "hidden_size": config.d_model,
        "transformer_ff": config.d_ff,
        "heads": config.num_heads,
        "add_qkvbias": True,
        "add_ffnbias": True,
        "add_final_linear_bias": True,
        "norm_eps": 1e-5,
    }
    model_config = {
        "architecture": "transformer",
        **stack,
        "encoder": {"encoder_type": "transformer", "layers": num_encoder, **stack},
        "decoder": {"decoder_type": "transformer", "layers": num_decoder, **stack},
        "embeddings": {
            "word_vec_size": config.d_model,
            "position_encoding_type": "SinusoidalInterleaved",
        },
    }
    vocab = {
        "src": _pieces(vocabs, "src"),
        "tgt": _pieces(vocabs, "tgt"),
        "decoder_start_token": "<s>",
        "specials": {
            f"{name}_token": piece
            for name, piece in (("bos", "<s>"), ("pad", "<pad>"), ("eos", "</s>"), ("unk", "<unk>"))
        },
    }
    files = {
        "config": {
            "data": {},
            "src_vocab": "",
            "tgt_vocab": "",
            "model": model_config,
            "training": {"compute_dtype": "fp32"},
        },
        "vocab": vocab,
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def write_joeynmt(model: Transformer, vocabs: Vocabs, folder: Path) -> None:
    """Write config.yaml, best.ckpt and the vocabularies."""
    config = model.config
    weights = _with_one_sentence(JOEYNMT.rename(model), 0)
    specials = [UNK, PAD, START, STOP]  # in its order
    for name in ("src_embed.lut", "trg_embed.lut", "decoder.output_layer"):
        weight_VD = weights[f"{name}.weight"]
        weights[f"{name}.weight"] = torch.cat((weight_VD[specials], weight_VD[len(specials) :]))
    torch.save({"model_state": weights}, folder / "best.ckpt")
    stacks = {
        name: {
            "type": "transformer",
            "num_layers": num_layers,
            "num_heads": config.num_heads,
            "embeddings": {"embedding_dim": config.d_model, "scale": True},
            "hidden_size": config.d_model,
            "ff_size": config.d_ff,
            "layer_norm": config.norm,
        }
        for name, num_layers in zip(STACKS, config.num_layers, strict=True)
    }
    sides = {}
    for side, theirs in (("src", "src"), ("tgt", "trg")):
        file = folder / f"vocab.{side}"
        write_lines(file, _pieces(vocabs, side))
        sides[theirs] = {"lang": side, "level": "word", "voc_file": str(file)}
    settings = {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {"test": "unused", **sides},
        "testing": {"load_model": str(folder / "best.ckpt"), "beam_alpha": 1.0},
        "training": {"batch_size": 64},
        "model": stacks,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))


def _pieces(vocabs: Vocabs, side: str, pad: str = "<pad>") -> list[str]:
    """Return the piece of each id, in order, with this toolkit's name for padding."""
    vocab = vocabs.src if side == "src" else vocabs.tgt
    pieces = vocab.pieces(range(len(vocab)))
    pieces[PAD] = pad
    return pieces


def _with_one_sentence(weights: Weights, dimension: int) -> Weights:
    """Give the tables of positions the dimension that stands for the sentences of a batch."""
    return {
        name: weight.unsqueeze(dimension) if name.endswith(".pe") else weight
        for name, weight in weights.items()
    }


PRE_NORM_ONLY = ("onmt", "eole")
WRITERS: dict[str, Callable[[Transformer, Vocabs, Path], Any]] = {
    "onmt": write_onmt,
    "eole": write_eole,
    "joeynmt": write_joeynmt,
}
