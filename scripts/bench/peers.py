"""How the toolkits that nmt is compared with train the same model on the same pieces."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from sizes import Size

from nmt.lines import write_lines
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import PAD, load_vocabs

# More than Multi30k has: all its pairs are sorted by length together, and none is too long.
MAX_PAIRS, MAX_LENGTH = 30_000, 150
DROPOUT, SMOOTHING, RATE, WARMUP = 0.1, 0.1, 0.0005, 4000
BETAS = (0.9, 0.98)
NEVER = 1_000_000
PACKAGES = {"onmt": "opennmt-py", "eole": "eole", "sockeye": "sockeye", "joeynmt": "joeynmt"}


def version(python: Path, package: str) -> str:
    """Return which version of a package the environment of this Python has."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.check_output([str(python), "-c", code], text=True).strip()


@dataclass(frozen=True)
class Pieces:
    """The pairs as pieces, one sentence a line, and the vocabulary in each toolkit's form."""

    folder: Path

    def text(self, name: str, language: str = "") -> str:
        """Return the file of train or dev; without a language, what its names begin with."""
        return str(self.folder / (f"{name}.{language}" if language else name))

    def vocab(self, toolkit: str) -> str:
        return str(self.folder / f"vocab.{toolkit}")

    def write(self, run: RunFolder) -> None:
        """Write what `nmt prepare` made of the corpus."""
        self.folder.mkdir()
        vocab = load_vocabs(run.load_config(), run).src
        for name, file in (("train", run.store), ("dev", run.dev_store)):
            store = TokenStore(file)
            for side, language in (("src", "en"), ("tgt", "de")):
                rows = store.lists(side, np.arange(len(store)))
                assert max(map(len, rows)) < MAX_LENGTH
                lines = (" ".join(vocab.pieces(ids[:-1])) for ids in rows)
                write_lines(Path(self.text(name, language)), lines)
        self._write_vocabs(vocab.pieces(range(PAD + 1, len(vocab))))

    def _write_vocabs(self, pieces: Sequence[str]) -> None:
        """Write the pieces; each toolkit adds, or asks for, control pieces of its own."""
        for toolkit in ("onmt", "eole"):
            write_lines(Path(self.vocab(toolkit)), (f"{piece}\t1" for piece in pieces))
        write_lines(Path(self.vocab("joeynmt")), pieces)
        numbered = enumerate(["<pad>", "<unk>", "<s>", "</s>", *pieces])
        ids = {piece: number for number, piece in numbered}
        Path(self.vocab("sockeye")).write_text(json.dumps(ids, ensure_ascii=False))


def onmt_arguments(size: Size, pieces: Pieces, out: Path) -> list[str]:
    training = _training_of_onmt(size, out)
    config = {
        **_data_of_onmt(size, pieces, "onmt", out, ["filtertoolong"]),
        **training,
        "src_seq_length": MAX_LENGTH,
        "tgt_seq_length": MAX_LENGTH,
        "model_dtype": "fp32",
        "param_init": 0,
        "param_init_glorot": True,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "word_vec_size": size.d_model,
        "save_model": str(out / "model"),
        **_model_of_onmt(size),
    }
    return ["-config", _write_yaml(config, out)]


def eole_arguments(size: Size, pieces: Pieces, out: Path) -> list[str]:
    config = {
        **_data_of_onmt(size, pieces, "eole", out, []),
        "n_sample": 0,
        "training": {
            **_training_of_onmt(size, out),
            "model_path": str(out / "model"),
            "accum_steps": [0],
            "compute_dtype": "fp32",
            "use_amp": False,
            "param_init_method": "xavier_uniform",
        },
        "model": {
            "architecture": "transformer",
            **_model_of_onmt(size),
            "add_final_linear_bias": True,
            "embeddings": {
                "word_vec_size": size.d_model,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }
    # These two stand at the top of a config of eole.
    for key in ("seed", "report_every"):
        config[key] = config["training"].pop(key)
    return ["train", "-c", _write_yaml(config, out)]


def _data_of_onmt(
    size: Size, pieces: Pieces, toolkit: str, out: Path, transforms: list[str]
) -> dict[str, Any]:
    """Return what OpenNMT-py and its successor eole both take."""
    corpus = {"path_src": pieces.text("train", "en"), "path_tgt": pieces.text("train", "de")}
    return {
        "data": {"train": {**corpus, "weight": 1}},
        "transforms": transforms,
        "src_vocab": pieces.vocab(toolkit),
        "tgt_vocab": pieces.vocab(toolkit),
        "src_vocab_size": size.vocab,
        "tgt_vocab_size": size.vocab,
        "vocab_size_multiple": 1,
        "share_vocab": True,
        "save_data": str(out / "data"),
        "overwrite": True,
    }


def _training_of_onmt(size: Size, out: Path) -> dict[str, Any]:
    return {
        "seed": 1,
        "report_every": 10,
        "save_checkpoint_steps": NEVER,
        "train_steps": NEVER,
        "valid_steps": NEVER,
        "world_size": 1,
        "gpu_ranks": [],
        "num_workers": 0,
        "bucket_size": MAX_PAIRS,
        "batch_type": "tokens",
        "batch_size": size.batch_tokens,
        "batch_size_multiple": 1,
        "normalization": "tokens",
        "accum_count": [1],
        "optim": "adam",
        "adam_beta1": BETAS[0],
        "adam_beta2": BETAS[1],
        "learning_rate": 1.0,
        "decay_method": "noam",
        "warmup_steps": WARMUP,
        "max_grad_norm": 0,
        "dropout": [DROPOUT],
        "attention_dropout": [DROPOUT],
        "dropout_steps": [0],
        "label_smoothing": SMOOTHING,
    }


def _model_of_onmt(size: Size) -> dict[str, Any]:
    return {
        "layers": size.num_layers,
        "heads": size.num_heads,
        "hidden_size": size.d_model,
        "transformer_ff": size.d_ff,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "add_qkvbias": True,
        "add_ffnbias": True,
    }


def joeynmt_arguments(size: Size, pieces: Pieces, out: Path) -> list[str]:
    stack = {
        "type": "transformer",
        "num_layers": size.num_layers,
        "num_heads": size.num_heads,
        "embeddings": {"embedding_dim": size.d_model, "scale": True, "dropout": DROPOUT},
        "hidden_size": size.d_model,
        "ff_size": size.d_ff,
        "dropout": DROPOUT,
    }
    side = {"max_length": MAX_LENGTH, "level": "word", "voc_file": pieces.vocab("joeynmt")}
    config = {
        "name": "bench",
        "joeynmt_version": "2.3.0",
        "model_dir": str(out / "model"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": pieces.text("train"),
            "dev": pieces.text("dev"),
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {"beam_size": 1, "eval_metrics": ["bleu"]},
        "training": {
            "optimizer": "adam",
            "adam_betas": list(BETAS),
            "learning_rate": RATE,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": WARMUP,
            "label_smoothing": SMOOTHING,
            "loss": "crossentropy",
            "batch_size": size.batch_tokens,
            "batch_type": "token",
            "normalization": "tokens",
            "epochs": NEVER,
            "updates": NEVER,
            "validation_freq": NEVER,
            "logging_freq": 10,
            "early_stopping_metric": "loss",
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }
    return ["train", _write_yaml(config, out), "--skip-test"]


def sockeye_arguments(size: Size, pieces: Pieces, out: Path) -> list[str]:
    texts = [pieces.text(name, language) for name in ("train", "dev") for language in ("en", "de")]
    names = ("--source", "--target", "--validation-source", "--validation-target")
    given = dict(zip(names, texts, strict=True)) | {
        "--source-vocab": pieces.vocab("sockeye"),
        "--target-vocab": pieces.vocab("sockeye"),
        "--output": out / "model",
        "--max-seq-len": MAX_LENGTH,
        "--seed": 1,
        "--num-layers": f"{size.num_layers}:{size.num_layers}",
        "--transformer-model-size": size.d_model,
        "--num-embed": f"{size.d_model}:{size.d_model}",
        "--transformer-attention-heads": size.num_heads,
        "--transformer-feed-forward-num-hidden": size.d_ff,
        "--transformer-preprocess": "n",
        "--transformer-postprocess": "dr",
        "--weight-tying-type": "src_trg_softmax",
        "--embed-dropout": DROPOUT,
        "--transformer-dropout-attention": DROPOUT,
        "--transformer-dropout-act": DROPOUT,
        "--transformer-dropout-prepost": DROPOUT,
        "--batch-type": "word",
        "--batch-size": size.batch_tokens,
        "--batch-sentences-multiple-of": 1,
        "--label-smoothing": SMOOTHING,
        "--optimizer": "adam",
        "--optimizer-betas": f"{BETAS[0]}:{BETAS[1]}",
        "--initial-learning-rate": RATE,
        "--learning-rate-scheduler-type": "none",
        "--gradient-clipping-type": "none",
        "--checkpoint-interval": NEVER,
        "--max-updates": NEVER,
        "--decode-and-evaluate": 0,
    }
    flags = ["--shared-vocab", "--use-cpu"]
    return [*flags, *(str(word) for pair in given.items() for word in pair)]


def _write_yaml(config: dict[str, Any], out: Path) -> str:
    file = out / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    return str(file)


ARGUMENTS = {
    "onmt": onmt_arguments,
    "eole": eole_arguments,
    "sockeye": sockeye_arguments,
    "joeynmt": joeynmt_arguments,
}
