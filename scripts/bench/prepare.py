"""Times nmt prepare from text to token store on a million real pairs or more, its memory, and how
soon training has its first batch."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from record import write_result

from nmt.lines import read_lines, write_lines
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import load_vocabs
from nmt.training.checkpoint import Progress
from nmt.training.feed import Feed

CONFIG = """\
src: en
tgt: de
data: {{train: [{{src: train.en, tgt: train.de}}], dev: [{{src: dev.en, tgt: dev.de}}]}}
vocab: {{size: 16000}}
"""
NEWSTESTS = "2008 2009 2010 2011 2012 2013 2015 2016 2017 2018".split()


def real_pairs(mirror: Path) -> list[tuple[str, str]]:
    """Return the pairs of Multi30k, the newstests and Tatoeba."""
    files = [mirror / "multi30k/train"] + [mirror / f"wmt-newstest/newstest{y}" for y in NEWSTESTS]
    pairs: list[tuple[str, str]] = []
    for file in files:
        sides = (read_lines(f"{file}.{side}.gz") for side in ("en", "de"))
        pairs += zip(*sides, strict=True)
    with zipfile.ZipFile(mirror / "tatoeba/deu-eng.zip") as archive:
        text = archive.read("deu.txt").decode("utf-8")
    rows = (line.split("\t")[:2] for line in text.split("\n") if line)
    return pairs + [(src, tgt) for src, tgt in rows]


def repeated(pairs: list[tuple[str, str]], count: int) -> Iterator[tuple[str, str]]:
    """Yield `count` pairs; those of a later round bear its number, and so are no duplicates."""
    for number in range(count):
        turn, place = divmod(number, len(pairs))
        src, tgt = pairs[place]
        yield (f"{src} {turn}", f"{tgt} {turn}") if turn else (src, tgt)


def write_texts(folder: Path, mirror: Path, count: int) -> Path:
    pairs = list(repeated(real_pairs(mirror), count))
    write_lines(folder / "train.en", (src for src, _ in pairs))
    write_lines(folder / "train.de", (tgt for _, tgt in pairs))
    for side in ("en", "de"):
        write_lines(folder / f"dev.{side}", read_lines(mirror / f"multi30k/val.{side}.gz"))
    config = folder / "bench.yaml"
    config.write_text(CONFIG.format())
    return config


def measure(config: Path, run: Path) -> dict[str, float]:
    """Return seconds, and the peak memory of all processes together and of the largest, in MB."""
    start = time.monotonic()
    command = [sys.executable, "-m", "nmt", "prepare", str(config), "--run", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    total = 0.0
    while not (waited := os.wait4(process.pid, os.WNOHANG))[0]:
        total = max(total, sum(map(memory_mb, family(process.pid))))
        time.sleep(0.2)
    _, status, usage = waited
    assert status == 0, "nmt prepare failed"
    return {
        "seconds": time.monotonic() - start,
        "peak_mb_together": total,
        "peak_mb_largest": usage.ru_maxrss / 1024,
    }


def family(pid: int) -> Iterator[int]:
    """Yield a process and those that it started and that still run."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in read(task / "children").split():
            yield from family(int(child))


def memory_mb(pid: int) -> float:
    """Return what a process holds, pages that it shares by parts; 0 where it is gone."""
    lines = read(Path(f"/proc/{pid}/smaps_rollup")).split("\n")
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def first_batch(run: RunFolder) -> float:
    """Return the seconds in which an opened store gives training its first update."""
    start = time.monotonic()
    config = run.load_config()
    batches = Feed(config, run, load_vocabs(config, run)).next_update(Progress())
    assert batches[0].src_BS.numel()
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for count in options.pairs:
        with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(1) as other:
            folder = Path(name)
            # In another process, as the peak of a child includes what its parent held at the start.
            config = other.submit(write_texts, folder, options.mirror, count).result()
            runs = [measure(config, folder / f"run{n}") for n in range(options.repeats)]
            kept = json.loads((folder / "run0/data/statistics.json").read_text())["num_pairs"]
            opened = other.submit(first_batch, RunFolder(folder / "run0")).result()
        seconds = statistics.median(run["seconds"] for run in runs)
        figures[f"{count:,} pairs"] = {
            "kept": kept,
            "seconds": [round(run["seconds"], 1) for run in runs],
            "pairs_per_s_median": round(count / seconds),
            "peak_mb_together": round(max(run["peak_mb_together"] for run in runs)),
            "peak_mb_largest": round(max(run["peak_mb_largest"] for run in runs)),
            "first_batch_s": round(opened, 2),
        }
        print(json.dumps(figures), flush=True)
    write_result("prepare", figures)


if __name__ == "__main__":
    main()
