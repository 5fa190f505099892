"""Times nmt prepare against what Sockeye and OpenNMT-py bring to prepare the same text.

They do less than nmt does. They clean, deduplicate and guard nothing; Sockeye takes text that is
split into pieces already, and OpenNMT-py counts a vocabulary and binarises nothing. So no single
ratio is the fair one: all of READINGS are told, the one kindest to the peers first.
install_peers.sh makes their environments.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import sentencepiece as spm
import yaml
from peers import PACKAGES, version
from prepare import write_texts
from record import write_result

from nmt.config import load_config
from nmt.lines import read_lines, write_lines
from nmt.tasks import count_workers

CORES = count_workers()
MAX_TOKENS = 250  # nmt's clean.max_tokens, so that all keep about the same pairs
LINES_AT_ONCE = 10_000

# The steps that make up a toolkit's time, a step being a key of `steps`.
READINGS = {
    "pieces made beforehand, for the peers only": {
        "nmt": ["nmt"],
        "Sockeye": ["sockeye.prepare_data"],
        "OpenNMT-py": ["onmt_build_vocab on pieces"],
    },
    "SentencePiece trained beforehand, for the peers only": {
        "nmt": ["nmt"],
        "Sockeye": ["SentencePiece splits", "sockeye.prepare_data"],
        "OpenNMT-py": ["onmt_build_vocab on text"],
    },
    "SentencePiece trained beforehand, for all": {
        "nmt": ["nmt with a model"],
        "Sockeye": ["SentencePiece splits", "sockeye.prepare_data"],
        "OpenNMT-py": ["onmt_build_vocab on text"],
    },
    "everything from text": {
        "nmt": ["nmt"],
        "Sockeye": ["SentencePiece trains", "SentencePiece splits", "sockeye.prepare_data"],
        "OpenNMT-py": ["SentencePiece trains", "onmt_build_vocab on text"],
    },
    "everything from text, by OpenNMT-py's own command": {
        "nmt": ["nmt"],
        "OpenNMT-py": ["onmt_build_vocab -learn_subwords"],
    },
}


def run(*command: object) -> None:
    words = list(map(str, command))
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(words)}")


def train_pieces(config: Path, out: Path) -> None:
    """Train joint.model: nmt's settings, on as many sentences, drawn by SentencePiece."""
    vocab = load_config(config).vocab
    spm.SentencePieceTrainer.train(
        input=[str(config.parent / f"train.{side}") for side in ("en", "de")],
        model_prefix=str(out / "joint"),
        model_type=vocab.type,
        vocab_size=vocab.size,
        hard_vocab_limit=False,
        byte_fallback=vocab.byte_fallback,
        character_coverage=1.0,
        input_sentence_size=2 * vocab.sample,
        shuffle_input_sentence=True,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=3,
        num_threads=CORES,
        minloglevel=2,
    )


def split_text(texts: Path, out: Path) -> None:
    """Write pieces.en and pieces.de, a process each."""
    with get_context("spawn").Pool(2) as pool:
        pool.starmap(_split_side, [(texts, out, "en"), (texts, out, "de")])


def _split_side(texts: Path, out: Path, side: str) -> None:
    processor = spm.SentencePieceProcessor(model_file=str(out / "joint.model"))
    lines = read_lines(texts / f"train.{side}")

    def split() -> Iterator[str]:
        while batch := list(islice(lines, LINES_AT_ONCE)):
            yield from map(" ".join, processor.encode(batch, out_type=str))

    write_lines(out / f"pieces.{side}", split())


def prepare_by_nmt(config: Path, run_folder: Path, *options: object) -> None:
    run(sys.executable, "-m", "nmt", "prepare", config, "--run", run_folder, *options)


def prepare_by_sockeye(python: Path, pieces: Path, out: Path) -> None:
    texts = ["--source", f"{pieces}.en", "--target", f"{pieces}.de", "--shared-vocab"]
    # A shard a core, for a process takes a whole shard, and by default there would be one.
    shares = ["--max-processes", CORES, "--min-num-shards", CORES, "--max-seq-len", MAX_TOKENS]
    run(python, "-m", "sockeye.prepare_data", *texts, *shares, "--output", out)


def count_by_onmt(
    python: Path, text: Path, out: Path, subwords: dict[str, Any], *options: object
) -> None:
    """Count the pieces of all pairs; `subwords` are the keys that say how text is split."""
    config = {
        "data": {"train": {"path_src": f"{text}.en", "path_tgt": f"{text}.de", "weight": 1}},
        **subwords,
        "src_seq_length": MAX_TOKENS,
        "tgt_seq_length": MAX_TOKENS,
        "share_vocab": True,
        "src_vocab": str(out / "vocab"),
        "tgt_vocab": str(out / "vocab"),
        "save_data": str(out / "data"),
    }
    out.mkdir()
    file = out / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    counts = ["-n_sample", -1, "-num_threads", CORES]
    run(python, "-m", "onmt.bin.build_vocab", "-config", file, *counts, *options)


def steps(config: Path, out: Path, peers: Path) -> dict[str, Callable[[], None]]:
    """Return what is timed; a later step needs what an earlier one wrote."""
    text, pieces, model = config.parent / "train", out / "pieces", out / "joint.model"
    sockeye, onmt = (peers / name / "bin/python" for name in ("sockeye", "onmt"))
    plain = {"transforms": ["filtertoolong"]}
    given = {
        "transforms": ["sentencepiece", "filtertoolong"],
        "src_subword_model": str(model),
        "tgt_subword_model": str(model),
    }
    learnt = {
        "transforms": ["onmt_tokenize", "filtertoolong"],
        "src_subword_type": "sentencepiece",
        "tgt_subword_type": "sentencepiece",
        "src_subword_model": str(out / "own.model"),
        "tgt_subword_model": str(out / "own.model"),
    }
    learn = ["-learn_subwords", "-learn_subwords_size", load_config(config).vocab.size]
    take_model = ["--set", f"vocab.model={model}"]
    return {
        "nmt": lambda: prepare_by_nmt(config, out / "nmt"),
        "SentencePiece trains": lambda: train_pieces(config, out),
        "SentencePiece splits": lambda: split_text(config.parent, out),
        "nmt with a model": lambda: prepare_by_nmt(config, out / "nmt2", *take_model),
        "sockeye.prepare_data": lambda: prepare_by_sockeye(sockeye, pieces, out / "sockeye"),
        "onmt_build_vocab on pieces": lambda: count_by_onmt(onmt, pieces, out / "onmt", plain),
        "onmt_build_vocab on text": lambda: count_by_onmt(onmt, text, out / "onmt2", given),
        "onmt_build_vocab -learn_subwords": lambda: count_by_onmt(
            onmt, text, out / "onmt3", learnt, *learn
        ),
    }


def time_steps(config: Path, peers: Path) -> dict[str, float]:
    seconds = {}
    with tempfile.TemporaryDirectory(dir=config.parent) as name:
        for step, act in steps(config, Path(name), peers).items():
            start = time.monotonic()
            act()
            seconds[step] = time.monotonic() - start
    print(json.dumps(seconds), flush=True)
    return seconds


def compare(rounds: list[dict[str, float]], num_pairs: int) -> dict[str, dict[str, float]]:
    """Return pairs/s under each reading, and how many times the faster peer nmt is."""
    table = {}
    for reading, toolkits in READINGS.items():
        speeds = {
            toolkit: num_pairs / statistics.median(sum(r[step] for step in made_of) for r in rounds)
            for toolkit, made_of in toolkits.items()
        }
        fastest_peer = max(speed for toolkit, speed in speeds.items() if toolkit != "nmt")
        table[reading] = {
            **{f"{toolkit}, pairs/s": round(speed) for toolkit, speed in speeds.items()},
            "ratio": round(speeds["nmt"] / fastest_peer, 2),
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--peers", type=Path, required=True, help="what install_peers.sh filled")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    peers = options.peers.absolute()
    with tempfile.TemporaryDirectory() as name:
        config = write_texts(Path(name), options.mirror, options.pairs)
        rounds = [time_steps(config, peers) for _ in range(options.repeats)]
    figures = {
        "pairs": options.pairs,
        "processes": CORES,
        "peers": {
            "Sockeye": version(peers / "sockeye/bin/python", PACKAGES["sockeye"]),
            "OpenNMT-py": version(peers / "onmt/bin/python", PACKAGES["onmt"]),
        },
        "seconds": {step: [round(times[step], 1) for times in rounds] for step in rounds[0]},
        "readings": compare(rounds, options.pairs),
    }
    write_result("prepare_peers", figures)


if __name__ == "__main__":
    main()
