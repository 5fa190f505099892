"""Times nmt's decoding of a trained run against other engines with the same weights, side by side.

Engines: CTranslate2 in fp32 and int8, with the workers, threads and batch size that are its best in
a trial, and the toolkits that decode_peers.py writes for, with 64 sentences a batch. Sets:
test_2016_flickr, with BLEU, and lines of newstest2014, for speed and memory only (a model of
captions translates no news; compare tokens there, as CTranslate2 has no cap of length for each
sentence, and goes on where the others stop). Each pass is a process of its own with two threads in
all; passes of all engines alternate, and medians are told. Peers read and write pieces, nmt and
CTranslate2 text. Then a single line, the time to the first translation, how time and memory grow
with batch size, length and beam, and the memory of many lines.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import sentencepiece as spm
from decode_peers import PRE_NORM_ONLY, WRITERS
from peers import PACKAGES, version
from record import write_result
from train import NUM_CORES, environment

from nmt.config import CorpusSpec
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.decoding.translate import load_trained
from nmt.evaluation.score import corpus_bleu
from nmt.lines import normalise, read_lines, write_lines
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import Vocab, load_vocabs

WORKER = Path(__file__).with_name("decode_worker.py")
CAPTIONS, NEWS = "multi30k/test_2016_flickr", "wmt-newstest/newstest2014"
NEWS_LINES = 500
BEAMS = (4, 1)
BATCH, PEER_BATCH = 256, 64
# What is too slow for as much as the others do: at most so many lines, and passes over each set.
MAX_LINES = {"joeynmt": 100}
MAX_PASSES = {
    CAPTIONS: {"joeynmt": 1},
    NEWS: {"nmt": 2, "ctranslate2": 2, "onmt": 1, "eole": 1, "joeynmt": 0},
}


@dataclass(frozen=True)
class TestSet:
    """A file of text, the same as pieces, and the references."""

    name: str
    text: Path
    pieces: Path
    references: list[str]


@dataclass(frozen=True)
class Engine:
    """A model and how it is called; `settings` are options of decode_worker.py."""

    name: str
    python: str
    kind: str
    model: Path
    settings: tuple[str, ...]

    @property
    def is_peer(self) -> bool:
        return self.kind in WRITERS

    def run(self, source: Path, *options: object) -> dict[str, float]:
        # -P, as this folder has names of modules that they import.
        words = [self.python, "-P", WORKER, self.kind, self.model, source, *self.settings, *options]
        done = subprocess.run(
            list(map(str, words)), capture_output=True, text=True, check=False, env=environment()
        )
        if done.returncode:
            sys.exit(f"{self.name}: {done.stderr}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


def write_sets(run: RunFolder, vocab: Vocab, sources: Sources, folder: Path) -> list[TestSet]:
    config = run.load_config()
    sets = []
    for name, num_lines in ((CAPTIONS, None), (NEWS, NEWS_LINES)):
        corpus = open_corpus(
            CorpusSpec(name=name),
            src_lang=config.src,
            tgt_lang=config.tgt,
            default_split="test",
            sources=sources,
        )
        src: list[str] = []
        tgt: list[str] = []
        for batch in corpus.batches():
            src += map(normalise, batch.column("src").to_pylist())
            tgt += map(normalise, batch.column("tgt").to_pylist())
        text = folder / f"{name.replace('/', '.')}.src"
        pieces = text.with_suffix(".pieces")
        write_lines(text, src[:num_lines])
        ids = vocab.encode(src[:num_lines])
        write_lines(pieces, (" ".join(vocab.pieces(row[:-1])) for row in ids))
        sets.append(TestSet(name, text, pieces, tgt[:num_lines]))
    return sets


def export(run: Path, folder: Path) -> Path:
    """Let nmt write fp32/ and int8/ for CTranslate2."""
    for name, quantization in (("fp32", "none"), ("int8", "int8")):
        words = [run, folder / name, "--format", "ctranslate2", "--quantization", quantization]
        command = [sys.executable, "-m", "nmt", "export", *map(str, words)]
        subprocess.run(command, stdout=sys.stderr, check=True)
    return folder


def nmt_engine(run: Path, precision: str, engine: str = "torch") -> Engine:
    settings = ("--engine-of-nmt", engine, "--precision", precision, "--batch", str(BATCH))
    return Engine(f"nmt {engine} {precision}", sys.executable, "nmt", run, settings)


def ctranslate2_engine(model: Path, compute_type: str, beam: int, source: Path) -> Engine:
    """Return CTranslate2 with the setting that is the fastest for this beam."""
    engines = [
        Engine(
            f"CTranslate2 {compute_type}",
            sys.executable,
            "ctranslate2",
            model,
            ("--precision", compute_type, "--workers", workers, "--batch", batch),
        )
        for workers, batch in (("2", "16"), ("2", "32"), ("2", "64"), ("2", "128"), ("1", "64"))
    ]
    return min(engines, key=lambda engine: engine.run(source, "--beam", beam)["seconds"])


def peer_engines(run: RunFolder, folder: Path, peers: Path, names: Sequence[str]) -> list[Engine]:
    """Return the toolkits that are installed under `peers`, with the model of the run."""
    trained = load_trained(run, "")
    engines = []
    for name in names:
        model = folder / name
        model.mkdir()
        WRITERS[name](trained.model, trained.vocabs, model)
        python = str(peers / name / "bin/python")
        settings = ["--batch", str(PEER_BATCH)]
        if trained.model.config.norm == "post" and name in PRE_NORM_ONLY:
            settings.append("--post-norm")
        if name in MAX_LINES:
            settings += ["--lines", str(MAX_LINES[name])]
        engines.append(Engine(PACKAGES[name], python, name, model, tuple(settings)))
    return engines


def compare(
    engines: list[Engine], test: TestSet, vocab: Vocab, beam: int, repeats: int
) -> dict[str, dict[str, Any]]:
    """Return what each engine reaches on a set; passes alternate."""
    processor = spm.SentencePieceProcessor(model_proto=vocab.model)
    passes = {
        engine.name: min(repeats, MAX_PASSES[test.name].get(engine.kind, repeats))
        for engine in engines
    }
    measured: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    outputs = {engine.name: test.text.with_suffix(f".{engine.name}") for engine in engines}
    for repeat in range(repeats):
        for engine in engines:
            if repeat < passes[engine.name]:
                source = test.pieces if engine.is_peer else test.text
                found = engine.run(source, "--beam", beam, "--output", outputs[engine.name])
                measured[engine.name].append(found)
    table = {}
    for engine in engines:
        if not measured[engine.name]:
            continue
        lines = list(read_lines(outputs[engine.name]))
        if engine.is_peer:
            lines = [normalise(processor.decode(line.split(" "))) for line in lines]
        seconds = statistics.median(each["seconds"] for each in measured[engine.name])
        num_tokens = sum(map(len, vocab.encode(lines)))
        table[engine.name] = {
            "sentences_per_s": round(len(lines) / seconds, 1),
            "target_tokens_per_s": round(num_tokens / seconds),
            "peak_mb": max(each["peak_mb"] for each in measured[engine.name]),
            "bleu": round(corpus_bleu(lines, [test.references[: len(lines)]]), 2),
            "lines": len(lines),
            "passes_s": [round(each["seconds"], 2) for each in measured[engine.name]],
            "settings": " ".join(engine.settings),
        }
        print(beam, test.name, engine.name, table[engine.name], file=sys.stderr, flush=True)
    return table


def compare_speeds(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return how many times the speed of each engine that did as much each of nmt's ways has."""
    units = ("sentences_per_s", "target_tokens_per_s")
    return {
        ours: {
            theirs: {unit: round(row[unit] / other[unit], 2) for unit in units}
            for theirs, other in table.items()
            if not theirs.startswith("nmt") and other["lines"] == row["lines"]
        }
        for ours, row in table.items()
        if ours.startswith("nmt")
    }


def latency_ms(engines: list[Engine], file: Path, repeats: int) -> dict[str, float]:
    """Return the median milliseconds of a line that is translated alone, beam 4."""
    seconds = defaultdict(list)
    for _, engine, threads in product(range(repeats), engines, (1, 2)):
        found = engine.run(file, "--single", "--batch", 1, "--workers", 1, "--threads", threads)
        seconds[f"{engine.name}, threads: {threads}"].append(found["seconds"])
    return {name: round(1000 * statistics.median(each), 1) for name, each in seconds.items()}


def first_translation_s(run: Path, repeats: int) -> dict[str, float]:
    """Return the seconds from the command to the end of `nmt translate` of one line."""

    def timed(*words: object) -> float:
        start = time.monotonic()
        command = [sys.executable, *map(str, words)]
        subprocess.run(
            command, input="A man sleeps.\n", stdout=subprocess.DEVNULL, text=True, check=True
        )
        return time.monotonic() - start

    pairs = [
        (timed("-m", "nmt", "translate", run), timed("-c", "import torch")) for _ in "x" * repeats
    ]
    translate, torch = map(statistics.median, zip(*pairs, strict=True))
    return {"nmt translate": round(translate, 2), "of which import torch": round(torch, 2)}


def growth(run: Path, file: Path, vocab: Vocab, folder: Path) -> list[dict[str, Any]]:
    """Return tokens/s and memory by length of the source, batch size and beam."""
    lines = list(read_lines(file))
    lengths = [len(ids) for ids in vocab.encode(lines)]
    rows = []
    source, output = folder / "growth.src", folder / "growth.out"
    for shortest, longest in ((5, 20), (21, 40), (41, 80)):
        chosen = [
            line
            for line, length in zip(lines, lengths, strict=True)
            if shortest <= length <= longest
        ]
        for batch, beam in ((1, 4), (16, 4), (64, 1), (64, 4), (64, 8)):
            part = chosen[: 128 if batch > 1 else 16]
            write_lines(source, part)
            found = nmt_engine(run, "auto").run(
                source, "--batch", batch, "--beam", beam, "--output", output
            )
            num_tokens = sum(map(len, vocab.encode(list(read_lines(output)))))
            rows.append(
                {
                    "source_tokens": f"{shortest} to {longest}",
                    "batch_size": batch,
                    "beam": beam,
                    "target_tokens_per_s": round(num_tokens / found["seconds"]),
                    "peak_mb": found["peak_mb"],
                }
            )
    return rows


def stream(run: Path, file: Path, num_lines: int, folder: Path) -> dict[str, float]:
    """Return what `nmt translate` by a pipe takes for so many lines, greedy, from one set."""
    lines = list(read_lines(file))
    source = folder / "many.src"
    write_lines(source, (lines[number % len(lines)] for number in range(num_lines)))
    command = [sys.executable, "-m", "nmt", "translate", str(run), "--beam", "1"]
    start = time.monotonic()
    with (
        source.open("rb") as stdin,
        subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process,
    ):
        assert process.stdout
        process.stdout.readline()
        first_s, num_out, peak_kb = time.monotonic() - start, 1, 0
        while process.stdout.readline():
            num_out += 1
            if num_out % 500 == 0 and num_out < num_lines:  # it goes on: it can still be asked
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    assert num_out == num_lines
    return {
        "lines": num_lines,
        "first_line_s": round(first_s, 1),
        "all_s": round(time.monotonic() - start, 1),
        "peak_mb": round(peak_kb / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    # While it trains, its best checkpoint changes, and engines would have different weights.
    parser.add_argument("--run", type=Path, required=True, help="one whose training has ended")
    parser.add_argument(
        "--peers", type=Path, help="what install_peers.sh filled; else none of them"
    )
    parser.add_argument("--only", nargs="+", choices=WRITERS, default=list(WRITERS))
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument(
        "--exported",
        type=Path,
        help="the weights for CTranslate2, in fp32/ and int8/; else nmt export writes them",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lines", type=int, default=100_000, help="of the longest stream")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:NUM_CORES])
    run = RunFolder(options.run)
    vocab = load_vocabs(run.load_config(), run).tgt
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = write_sets(run, vocab, Sources.from_environment(options.mirror), folder)
        captions, news = (test.text for test in sets)
        exported = options.exported or export(run.path, folder / "exported")
        toolkits = options.only if options.peers else []
        peers = options.peers and options.peers.absolute()
        peers_of_run = peer_engines(run, folder, peers, toolkits)
        figures: dict[str, Any] = {
            "peers": {
                toolkit: version(peers / toolkit / "bin/python", PACKAGES[toolkit])
                for toolkit in toolkits
            },
            "threads": NUM_CORES,
            "repeats": options.repeats,
        }
        for beam in BEAMS:
            engines = [
                nmt_engine(run.path, "bf16"),
                nmt_engine(run.path, "fp32"),
                nmt_engine(run.path, "fp32", "ctranslate2"),
                nmt_engine(run.path, "int8", "ctranslate2"),
                ctranslate2_engine(exported / "fp32", "float32", beam, captions),
                ctranslate2_engine(exported / "int8", "int8", beam, captions),
            ]
            for test in sets:
                table = compare([*engines, *peers_of_run], test, vocab, beam, options.repeats)
                figures[f"{test.name}, beam {beam}"] = {
                    "engines": table,
                    "times_the_speed_of": compare_speeds(table),
                }
            if beam == BEAMS[0]:
                figures["single line, beam 4, ms"] = latency_ms(engines, captions, options.repeats)
        figures["to the first translation, s"] = first_translation_s(run.path, 5)
        figures["growth"] = growth(run.path, news, vocab, folder)
        figures["stream, greedy"] = [
            stream(run.path, captions, count, folder) for count in (1000, options.lines)
        ]
    write_result("decode", figures)


if __name__ == "__main__":
    main()
