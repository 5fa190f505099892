"""Times training against the toolkits that pip installs, on the same pieces, and against the limit
of the machine.

nmt runs as its users run it: nothing is set for speed, for it or for the others. All see two cores.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from peers import ARGUMENTS, PACKAGES, Pieces, version
from record import write_result
from sizes import SIZES, Size, measure_peak

from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore

NUM_CORES = 2
HOOK = Path(__file__).resolve().parent / "hook.py"
FIRST_S, MEASURED_S = 5, 15
# What could make one of them faster, or slower, than its users see it.
SET_BY_HAND = ("OMP_", "MKL_", "KMP_", "GOMP_", "MALLOC_", "GLIBC_", "LD_PRELOAD", "TORCH", "NMT_")


@dataclass(frozen=True)
class Measured:
    """What one run came to."""

    tgt_tokens_per_s: float
    tgt_padding: float
    """Share of the cells of the target that hold no token."""
    padding: float
    """The same of source and target together."""
    peak_mb: float
    first_update_s: float
    """From the command to the end of the first update."""
    tgt_tokens_per_update: float
    num_updates: int


@dataclass(frozen=True)
class Task:
    """A model size, with the corpus prepared for it."""

    size: Size
    config: Path
    run: Path
    pieces: Pieces
    peers: Path

    def command(self, toolkit: str, out: Path) -> list[str]:
        """Return the interpreter of a toolkit and the arguments of its training."""
        if toolkit != "nmt":
            python = str(self.peers / toolkit / "bin/python")
            return [python, *ARGUMENTS[toolkit](self.size, self.pieces, out)]
        run = shutil.copytree(self.run, out / "run")
        return [sys.executable, "train", str(self.config), "--run", str(run)]

    def measure(self, toolkit: str) -> Measured:
        """Train until the figures are steady."""
        with tempfile.TemporaryDirectory(dir=self.config.parent) as name:
            out = Path(name)
            record, said = out / "record.json", out / "said"
            python, *arguments = self.command(toolkit, out)
            hook = [python, "-P", str(HOOK), toolkit, str(record), str(FIRST_S), str(MEASURED_S)]
            start = time.time()
            with said.open("wb") as stream:
                subprocess.run(
                    [*hook, *arguments],
                    cwd=out,
                    env=environment(),
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            if not record.exists():
                sys.exit(f"{said.read_text(errors='replace')[-4000:]}\n{toolkit} trained nothing")
            return read_record(json.loads(record.read_text()), start)

    def flops_per_tgt_token(self) -> float:
        store = TokenStore(RunFolder(self.run).store)
        lengths = (store.lengths(side).tolist() for side in ("src", "tgt"))
        return self.size.flops_per_tgt_token(zip(*lengths, strict=True))


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(SET_BY_HAND)}


def read_record(record: dict[str, Any], start: float) -> Measured:
    assert record["num_threads"] == NUM_CORES, f"it took {record['num_threads']} threads"
    first, updates = record["num_first"], record["updates"]
    seconds = updates[-1][0] - updates[first - 1][0]
    tgt, tgt_cells, src, src_cells = (
        sum(update[column] for update in updates[first:]) for column in range(1, 5)
    )
    return Measured(
        tgt_tokens_per_s=tgt / seconds,
        tgt_padding=1 - tgt / tgt_cells,
        padding=1 - (tgt + src) / (tgt_cells + src_cells),
        peak_mb=record["peak_mb"],
        first_update_s=updates[0][0] - start,
        tgt_tokens_per_update=tgt / (len(updates) - first),
        num_updates=len(updates) - first,
    )


def peak_flops() -> float:
    """Return the machine's peak at this time, measured in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure_peak, (NUM_CORES,))


def prepare(size: Size, folder: Path, options: argparse.Namespace) -> Task:
    folder.mkdir()
    config, run = size.prepare(folder, options.mirror)
    pieces = Pieces(folder / "pieces")
    pieces.write(RunFolder(run))
    return Task(size, config, run, pieces, options.peers.absolute())


def summarise(runs: list[Measured], flops: float, peak: float) -> dict[str, Any]:
    """Return medians over the repeats, and each repeat's speed."""
    rows = [asdict(run) for run in runs]
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    return {
        "tgt_tokens_per_s": [round(run.tgt_tokens_per_s) for run in runs],
        "tgt_tokens_per_s_median": round(medians["tgt_tokens_per_s"]),
        "tgt_padding": round(medians["tgt_padding"], 4),
        "padding": round(medians["padding"], 4),
        "peak_mb": round(medians["peak_mb"]),
        "first_update_s": round(medians["first_update_s"], 2),
        "tgt_tokens_per_update": round(medians["tgt_tokens_per_update"]),
        "updates_measured": [run.num_updates for run in runs],
        "share_of_peak": round(medians["tgt_tokens_per_s"] * flops / peak, 4),
    }


def compare(task: Task, runs: dict[str, list[Measured]], peak: float) -> dict[str, Any]:
    flops = task.flops_per_tgt_token()
    toolkits = {name: summarise(measured, flops, peak) for name, measured in runs.items()}
    figures: dict[str, Any] = {
        "config": task.config.read_text(),
        "mflop_per_tgt_token": round(flops / 1e6, 2),
        "toolkits": toolkits,
    }
    speeds = {name: row["tgt_tokens_per_s_median"] for name, row in toolkits.items()}
    memories = {name: row["peak_mb"] for name, row in toolkits.items()}
    own = speeds.pop("nmt", 0), memories.pop("nmt", 0)
    if speeds and all(own):
        figures["fastest_peer"] = max(speeds, key=lambda name: speeds[name])
        figures["times_the_fastest_peer"] = round(own[0] / max(speeds.values()), 3)
        figures["memory_of_leanest_peer"] = round(own[1] / min(memories.values()), 3)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument("--peers", type=Path, required=True, help="what install_peers.sh filled")
    parser.add_argument("--models", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--only", nargs="+", choices=["nmt", *PACKAGES], default=["nmt", *PACKAGES])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:NUM_CORES])
    with tempfile.TemporaryDirectory() as name:
        tasks = {
            model: prepare(SIZES[model], Path(name) / model, options) for model in options.models
        }
        runs: dict[str, dict[str, list[Measured]]] = {
            # The tiny model is for small corpora: what counts is how near to the limit it comes.
            model: {toolkit: [] for toolkit in options.only if model != "tiny" or toolkit == "nmt"}
            for model in tasks
        }
        peaks = []
        for repeat in range(options.repeats):
            peaks.append(peak_flops())
            for model, measured in runs.items():
                for toolkit in list(measured)[:: -1 if repeat % 2 else 1]:
                    run = tasks[model].measure(toolkit)
                    measured[toolkit].append(run)
                    print(f"{model} {toolkit}: {run}", file=sys.stderr, flush=True)
        peaks.append(peak_flops())
        figures = {
            "peers": {
                toolkit: version(options.peers.absolute() / toolkit / "bin/python", package)
                for toolkit, package in PACKAGES.items()
                if toolkit in options.only
            },
            "threads": NUM_CORES,
            "peak_bf16_gflops": [round(peak / 1e9, 1) for peak in peaks],
            "models": {model: compare(tasks[model], runs[model], max(peaks)) for model in tasks},
        }
    write_result("train", figures)


if __name__ == "__main__":
    main()
