"""nmt train --devices N: starts N processes on this machine, and gives back what they say."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import IO

import torch.distributed as dist

from nmt.tasks import count_workers

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
# Once one process has ended badly, the others see it when they next talk to it, and end by
# themselves. One that does not is asked to, by SIGTERM, and then made to.
_ASK_AFTER_S, _KILL_AFTER_S = 5.0, 60.0

Process = subprocess.Popen[bytes]


def is_worker() -> bool:
    """Return whether this process is one of several that torchrun or `launch` started."""
    return "RANK" in os.environ


def launch(arguments: Sequence[str], num_processes: int) -> int:
    """Run `nmt ARGUMENTS` in so many processes that train together; return their status.

    What the first says is seen as it comes. Signals are handed on. Where one ends badly, its status
    is returned: 128 + signal where one killed it.
    """
    # The store is kept here, so that no port has to be guessed.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    environment = {
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        "OMP_NUM_THREADS": str(max(1, count_workers() // num_processes)),
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": str(num_processes),
        "LOCAL_WORLD_SIZE": str(num_processes),
    }
    with _remembering_signals() as signals, ExitStack() as files:
        said = [files.enter_context(tempfile.TemporaryFile()) for _ in range(1, num_processes)]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "nmt", *arguments],
                env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=None if rank == 0 else subprocess.DEVNULL,
                stderr=None if rank == 0 else said[rank - 1],
                # Ctrl-C reaches this process alone, which hands it on.
                start_new_session=True,
            )
            for rank in range(num_processes)
        ]
        failed = _wait(processes, signals)
        if failed is None:
            return 0
        if failed > 0 and not _is_told_by_first(processes, failed):
            _show(said[failed - 1])
        return _status_of(processes[failed], failed, signals)


def _wait(processes: Sequence[Process], signals: list[int]) -> int | None:
    """Hand on signals until all have ended; return the rank that ended badly first, or None."""
    failed: int | None = None
    failed_at, num_handed_on, is_asked = 0.0, 0, False
    while True:
        while num_handed_on < len(signals):
            _send(processes, signals[num_handed_on])
            num_handed_on += 1
        statuses = [process.poll() for process in processes]
        if failed is None and any(statuses):
            failed = next(rank for rank, status in enumerate(statuses) if status)
            failed_at = time.monotonic()
        if None not in statuses:
            return failed
        waited = time.monotonic() - failed_at if failed is not None else 0.0
        if waited > _ASK_AFTER_S and not is_asked:
            _send(processes, signal.SIGTERM)
            is_asked = True
        if waited > _KILL_AFTER_S:
            _send(processes, signal.SIGKILL)
        time.sleep(0.05)


def _send(processes: Sequence[Process], number: int) -> None:
    for process in processes:
        process.send_signal(number)


def _is_told_by_first(processes: Sequence[Process], failed: int) -> bool:
    """Return whether the first has said what is wrong elsewhere: a message, not a crash."""
    return processes[failed].returncode == processes[0].returncode == 2


def _show(said: IO[bytes]) -> None:
    said.seek(0)
    sys.stderr.write(said.read().decode(errors="replace"))
    sys.stderr.flush()


def _status_of(process: Process, rank: int, signals: Sequence[int]) -> int:
    if process.returncode >= 0:
        return process.returncode
    number = signal.Signals(-process.returncode)
    if number not in signals:
        print(
            f"error: rank {rank} was killed by {number.name}, perhaps as memory ran out; the same "
            f"command goes on from the last checkpoint.",
            file=sys.stderr,
        )
    return 128 + number


@contextmanager
def _remembering_signals() -> Iterator[list[int]]:
    """Yield the signals that have come, which end nothing by themselves meanwhile."""
    signals: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        signals.append(number)

    previous = {number: signal.signal(number, remember) for number in _SIGNALS}
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
