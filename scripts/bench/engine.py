"""Measures the training engine on multi30k: two processes against one, and its own overhead."""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from record import write_result

from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.run_folder import RunFolder
from nmt.train import train_run
from nmt.training import step
from nmt.training.step import Learner

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "configs" / "multi30k.en-de.yaml"
LOG_EVERY = 10
# No validation and no checkpoint but the last: a signal ends each run.
SETTINGS = [
    "training.device=cpu",
    "training.max_minutes=0",
    "training.validate_every=1000000",
    "training.save_every=1000000",
    f"training.log_every={LOG_EVERY}",
]
# Two cores: two processes of a thread each, or one of two.
NUM_CORES = 2


def nmt(command: str, run: Path, num_processes: int, *arguments: str) -> "subprocess.Popen[bytes]":
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return subprocess.Popen(
        [sys.executable, "-m", "nmt", command, CONFIG, "--run", run, *settings, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": str(NUM_CORES // num_processes)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def measure_speed(run: Path, num_processes: int, num_updates: int, num_first: int) -> float:
    """Train for so many updates; return the median of tokens/s without the first ones."""
    process = nmt("train", run, num_processes, "--devices", str(num_processes))
    records: list[dict[str, Any]] = []
    while not records or records[-1]["step"] < num_updates:
        assert process.poll() is None, f"training ended with {process.returncode}"
        time.sleep(0.2)
        metrics = run / "metrics.jsonl"
        lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
        records = [json.loads(line) for line in lines]
    process.send_signal(signal.SIGUSR1)
    assert process.wait() == 128 + signal.SIGUSR1
    return statistics.median(
        record["tokens_per_s"] for record in records if record["step"] > num_first
    )


def measure_overhead(run: Path, num_updates: int, num_first: int) -> dict[str, float]:
    """Train in this process; return what an update and its parts take, medians over updates."""
    torch.set_num_threads(NUM_CORES)
    taken: defaultdict[str, float] = defaultdict(float)
    ends: list[dict[str, float]] = []

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed_work(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = work(*arguments)
            taken[name] += time.perf_counter() - start
            return result

        return timed_work

    def last_of_update(*arguments: Any) -> None:
        optimizer_step(*arguments)
        ends.append({**taken, "update": time.perf_counter()})
        if len(ends) == num_updates:
            signal.raise_signal(signal.SIGUSR1)

    optimizer_step = timed("optimizer_step", torch.optim.AdamW.step)
    step.batch_loss = timed("forward_and_loss", step.batch_loss)
    torch.autograd.backward = timed("backward", torch.autograd.backward)
    torch.optim.AdamW.step = last_of_update
    # What depends on the number of weights alone.
    Learner._renew_copies = timed("rounding_to_bf16", Learner._renew_copies)
    Learner.forget_gradient = timed("gradient_to_zero", Learner.forget_gradient)
    torch.linalg.vector_norm = timed("gradient_norm", torch.linalg.vector_norm)
    torch.Tensor.lerp_ = timed("average_of_weights", torch.Tensor.lerp_)
    train_run(load_config(CONFIG, SETTINGS), RunFolder(run), Sources.from_environment())
    updates = [
        {name: (end[name] - before.get(name, 0)) * 1000 for name in end}
        for before, end in pairwise(ends[num_first - 1 :])
    ]
    medians = {name: statistics.median(each[name] for each in updates) for name in ends[-1]}

    def share_without(*names: str) -> float:
        return statistics.median(
            1 - sum(each[n] for n in names) / each["update"] for each in updates
        )

    learning = ("forward_and_loss", "backward", "optimizer_step")
    return {
        **{f"{name}_ms": round(value, 3) for name, value in medians.items()},
        "overhead_share": round(share_without(*learning), 4),
        "overhead_share_without_passes_over_weights": round(
            share_without(*(name for name in medians if name != "update")), 4
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument("--updates", type=int, default=300, help="of each run")
    parser.add_argument("--first", type=int, default=100, help="updates of a run that do not count")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    speeds: dict[int, list[float]] = {2: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared"
        mirror = ["--mirror", options.mirror] if options.mirror else []
        assert nmt("prepare", prepared, 1, *mirror).wait() == 0

        def fresh_run(name: str) -> Path:
            return Path(shutil.copytree(prepared, Path(folder) / name))

        for repeat in range(options.repeats):
            for num_processes, measured in speeds.items():
                run = fresh_run(f"{repeat}.{num_processes}")
                measured.append(measure_speed(run, num_processes, options.updates, options.first))
                print(f"{num_processes} processes: {measured[-1]:,.0f} tokens/s", file=sys.stderr)
        overhead = measure_overhead(fresh_run("overhead"), options.updates, options.first)
    two, one = (statistics.median(measured) for measured in speeds.values())
    figures = {
        "config": CONFIG.read_text(),
        "settings": SETTINGS,
        "2_processes_of_1_thread_tokens_per_s": speeds[2],
        "1_process_of_2_threads_tokens_per_s": speeds[1],
        "ratio_of_medians": round(two / one, 4),
        "1_process_of_2_threads": overhead,
    }
    write_result("engine", figures)


if __name__ == "__main__":
    main()
