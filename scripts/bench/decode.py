"""Times nmt's decoding of a trained run against CTranslate2 with the same weights, side by side.

Sets: test_2016_flickr, with BLEU, and newstest2014, for speed and memory only (a model of captions
translates no news). Each pass is a process of its own with two threads in all; passes of all
engines alternate, and medians are told. CTranslate2 runs with the workers, threads and batch size
that are its best in a trial. Then a single line, the time to the first translation, how time and
memory grow with batch size, length and beam, and the memory of many lines.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from record import write_result

from nmt.config import CorpusSpec
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.evaluation.score import corpus_bleu
from nmt.lines import normalise, read_lines, write_lines
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import Vocab, load_vocabs

WORKER = Path(__file__).with_name("decode_worker.py")
SETS = ["multi30k/test_2016_flickr", "wmt-newstest/newstest2014"]
BEAMS = (4, 1)
BATCH = 256


@dataclass(frozen=True)
class Engine:
    """A model and how it is called; `settings` are options of decode_worker.py."""

    name: str
    python: str
    kind: str
    model: Path
    settings: tuple[str, ...]

    def run(self, source: Path, *options: object) -> dict[str, float]:
        words = [self.python, WORKER, self.kind, self.model, source, *self.settings, *options]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{self.name}: {done.stderr}")
        found: dict[str, float] = json.loads(done.stdout)
        return found


def write_sets(run: RunFolder, sources: Sources, folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Write the source of each set, and return its file and its references."""
    config = run.load_config()
    sets = {}
    for name in SETS:
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
        file = folder / f"{name.replace('/', '.')}.src"
        write_lines(file, src)
        sets[name] = (file, tgt)
    return sets


def nmt_engine(run: Path, precision: str, engine: str = "torch") -> Engine:
    settings = ("--engine-of-nmt", engine, "--precision", precision, "--batch", str(BATCH))
    return Engine(f"nmt {engine} {precision}", sys.executable, "nmt", run, settings)


def ctranslate2_engine(
    python: str, model: Path, compute_type: str, beam: int, source: Path
) -> Engine:
    """Return CTranslate2 with the setting that is the fastest for this beam."""
    engines = [
        Engine(
            f"CTranslate2 {compute_type}",
            python,
            "ctranslate2",
            model,
            ("--precision", compute_type, "--workers", workers, "--batch", batch),
        )
        for workers, batch in product("12", ("32", "64", "128"))
    ]
    return min(engines, key=lambda engine: engine.run(source, "--beam", beam)["seconds"])


def compare(
    engines: list[Engine], file: Path, references: list[str], vocab: Vocab, beam: int, repeats: int
) -> dict[str, dict[str, Any]]:
    """Return what each engine reaches on a set; passes alternate."""
    measured: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    outputs = {engine.name: file.with_suffix(f".{engine.name}") for engine in engines}
    for _ in range(repeats):
        for engine in engines:
            output = outputs[engine.name]
            measured[engine.name].append(engine.run(file, "--beam", beam, "--output", output))
    table = {}
    for engine in engines:
        lines = list(read_lines(outputs[engine.name]))
        seconds = statistics.median(each["seconds"] for each in measured[engine.name])
        num_tokens = sum(map(len, vocab.encode(lines)))
        table[engine.name] = {
            "sentences_per_s": round(len(lines) / seconds, 1),
            "target_tokens_per_s": round(num_tokens / seconds),
            "peak_mb": max(each["peak_mb"] for each in measured[engine.name]),
            "bleu": round(corpus_bleu(lines, [references]), 2),
            "settings": " ".join(engine.settings),
        }
        print(beam, file.name, engine.name, table[engine.name], file=sys.stderr, flush=True)
    return table


def latency_ms(engines: list[Engine], file: Path, repeats: int) -> dict[str, float]:
    """Return the median milliseconds of a line that is translated alone, beam 4."""
    seconds = defaultdict(list)
    for _ in range(repeats):
        for engine in engines:
            found = engine.run(file, "--single", "--batch", 1, "--workers", 1)
            seconds[engine.name].append(found["seconds"])
    return {name: round(1000 * statistics.median(each), 1) for name, each in seconds.items()}


def first_translation_s(run: Path, repeats: int) -> dict[str, float]:
    """Return the seconds from the command to the end of `nmt translate` of one line."""

    def timed(*words: object) -> float:
        start = time.monotonic()
        command = [sys.executable, *map(str, words)]
        subprocess.run(command, input="A man sleeps.\n", stdout=subprocess.DEVNULL, text=True)
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
    for shortest, longest in ((5, 15), (16, 30), (31, 60)):
        chosen = [
            line
            for line, length in zip(lines, lengths, strict=True)
            if shortest <= length <= longest
        ][:400]
        source, output = folder / "growth.src", folder / "growth.out"
        write_lines(source, chosen)
        for batch, beam in product((1, 16, 64, 256), (1, 4, 8)):
            part = chosen[:40] if batch == 1 else chosen
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
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--peers", type=Path, help="has ct2/bin/python; else this Python is asked")
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument(
        "--exported",
        type=Path,
        required=True,
        help="the weights for CTranslate2, in fp32/ and int8/",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lines", type=int, default=100_000, help="of the longest stream")
    options = parser.parse_args()
    run = RunFolder(options.run)
    vocab = load_vocabs(run.load_config(), run).tgt
    python = str(options.peers / "ct2/bin/python") if options.peers else sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = write_sets(run, Sources.from_environment(options.mirror), folder)
        captions = sets[SETS[0]][0]
        figures: dict[str, Any] = {"threads": 2, "repeats": options.repeats}
        for beam in BEAMS:
            engines = [nmt_engine(run.path, "bf16"), nmt_engine(run.path, "fp32")] + [
                ctranslate2_engine(python, options.exported / kind, compute_type, beam, captions)
                for kind, compute_type in (("fp32", "float32"), ("int8", "int8"))
            ]
            for set_name, (file, references) in sets.items():
                key = f"{set_name}, beam {beam}"
                figures[key] = compare(engines, file, references, vocab, beam, options.repeats)
            if beam == BEAMS[0]:
                figures["single line, beam 4, ms"] = latency_ms(engines, captions, options.repeats)
        figures["to the first translation, s"] = first_translation_s(run.path, 5)
        figures["growth"] = growth(run.path, sets[SETS[1]][0], vocab, folder)
        figures["stream, greedy"] = [
            stream(run.path, captions, count, folder) for count in (1000, options.lines)
        ]
    write_result("decode", figures)


if __name__ == "__main__":
    main()
