"""Processes that run `nmt` as ranks of one training, each forked within a tenth of a second.

They are forked from a server that has loaded nmt, so that a test can afford many. All else is
real: the command, the sockets, the signals, the status.
"""

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tiny import copy, write_task
from torch._C._distributed_c10d import TCPStore

import nmt.cli
from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.prepare import prepare
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch
from nmt.training.step import Learner, UpdateResult

# Ten updates an epoch; groups smaller than an update, and of an odd number in some.
KEYS = {
    "training.batch_tokens": 200,
    "training.group_tokens": 64,
    "training.validate_every": 1000,
    "training.save_every": 1000,
    "training.log_every": 1,
    "training.precision": "fp32",
    "vocab.type": "bpe",
    "vocab.size": 320,
    "vocab.byte_fallback": "true",
}
# Until a signal comes; the limit is for what a failed test leaves.
ENDLESS = {"training.max_steps": 0, "training.max_minutes": 2}

# torch loads _dynamo when an optimiser is first used, which takes a second.
_LOADED = ["pytest", "torch._dynamo", "nmt.train", "nmt.cli", "nmt.launch"]

Fault = Callable[[], None]


def write_prepared(folder: Path) -> Path:
    """Write the files and the config of the copy task, prepared in `run` beside it."""
    config = write_task(folder, copy, {"train": 120, "dev": 5, "test": 5})
    prepare(load_config(config, overrides(KEYS)), RunFolder(folder / "run"), Sources(folder))
    return config


def new_run(config: Path, name: str) -> Path:
    """Return a fresh copy of the prepared run."""
    return Path(shutil.copytree(config.parent / "run", config.parent / name))


def train(config: Path, run: Path, changes: dict[str, Any] | None = None) -> list[str]:
    """Return the arguments of `nmt train` under KEYS, and what changes of them."""
    pairs = overrides(KEYS | (changes or {}))
    return ["train", str(config), "--run", str(run), *(w for p in pairs for w in ("--set", p))]


def overrides(keys: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in keys.items()]


def no_fault() -> None:
    pass


class Ranks:
    """So many processes that run one command; what they say lies in files."""

    def __init__(
        self, folder: Path, size: int, arguments: Sequence[Any], fault: Fault = no_fault
    ) -> None:
        """Start them; each calls `fault` first. One is alone, and no rank."""
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self._folder, self._size, self._arguments = folder, size, [*map(str, arguments)]
        self.start(fault)

    def start(self, fault: Fault = no_fault) -> None:
        """Start them (again), with the store of before, as torchrun does."""
        self._logs = [
            self._folder / f"{time.monotonic_ns()}.{rank}.log" for rank in range(self._size)
        ]
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self.processes = [
            context.Process(
                target=_run, args=(self._environment(rank), log, self._arguments, fault)
            )
            for rank, log in enumerate(self._logs)
        ]
        for process in self.processes:
            process.start()

    def _environment(self, rank: int) -> dict[str, str]:
        if self._size == 1:
            return {}
        return {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
            "RANK": str(rank),
            "WORLD_SIZE": str(self._size),
            "LOCAL_WORLD_SIZE": str(self._size),
        }

    def statuses(self, timeout_s: float = 60) -> list[int | None]:
        """Wait for the end of all, and return the status of each; -9 where SIGKILL ended it."""
        deadline = time.monotonic() + timeout_s
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        statuses = [process.exitcode for process in self.processes]
        for process in self.processes:
            process.kill()
        return statuses

    def said(self, rank: int = 0) -> str:
        return self._logs[rank].read_text(encoding="utf-8")

    def signal(self, number: int, *ranks: int) -> None:
        for rank in ranks:
            pid = self.processes[rank].pid
            assert pid
            os.kill(pid, number)


def at_updates(steps: set[int], rank: int, act: Fault) -> None:
    """Let one rank do something before its first forward pass of each of these updates."""
    if os.environ.get("RANK", "0") != str(rank):
        return
    update, add_gradient = Learner.update, Learner.add_gradient
    now = [0]

    def update_and_tell(learner: Learner, batches: Sequence[Batch], step: int) -> UpdateResult:
        now[0] = step
        return update(learner, batches, step)

    def act_and_add(learner: Learner, batch: Batch) -> None:
        if now[0] in steps:
            now[0] = 0
            act()
        add_gradient(learner, batch)

    Learner.update = update_and_tell  # type: ignore[method-assign]
    Learner.add_gradient = act_and_add  # type: ignore[method-assign]


def run_ranks(
    folder: Path,
    size: int,
    arguments: Sequence[Any],
    fault: Fault = no_fault,
    status: int | list[int] = 0,
) -> Ranks:
    """Run `nmt ARGUMENTS` on so many ranks, each of which must end with this status, or its own."""
    ranks = Ranks(folder, size, arguments, fault)
    expected = [status] * size if isinstance(status, int) else status
    assert ranks.statuses() == expected, [ranks.said(rank) for rank in range(size)]
    return ranks


def _run(environment: dict[str, str], log: Path, arguments: list[str], fault: Fault) -> None:
    os.environ |= environment | {"OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["nmt", *arguments]
    fault()
    nmt.cli.main()


def records(run: Path, kind: str = "train") -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl of a kind; the last may not be whole yet."""
    file = run / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in found if record["kind"] == kind]


def wait_for_update(run: Path, step: int, timeout_s: float = 60) -> None:
    """Wait until a running training has logged an update."""
    deadline = time.monotonic() + timeout_s
    while not any(record["step"] >= step for record in records(run)):
        assert time.monotonic() < deadline, f"{run} did not come to update {step}"
        time.sleep(0.01)


def weights(run: Path) -> bytes:
    """Return the file of weights and moments of the last checkpoint."""
    return (run / "checkpoints/last/optimizer.safetensors").read_bytes()


def state(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "checkpoints/last/state.json").read_text())
    return found
