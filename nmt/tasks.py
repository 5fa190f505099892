"""Runs tasks in a pool of processes; what is done, and made from the same, stays done."""

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from nmt.errors import UserError
from nmt.lines import write_whole


@dataclass(frozen=True)
class Task:
    """Something that writes one file; all of it can be sent to another process."""

    output: Path
    made_from: str
    """A hash of all that the file depends on."""
    write: Callable[[Path], int]
    """Writes the file under the path it is given, and returns the number of rows."""


@dataclass(frozen=True)
class Done:
    """The mark beside a file that is whole."""

    rows: int
    size: int
    sha256: str
    made_from: str


@contextmanager
def worker_pool(num_workers: int) -> Iterator[Executor | None]:
    """Yield a pool of processes, each started when it is first needed; None for one worker."""
    if num_workers == 1:
        yield None
        return
    # Not fork: the libraries that tasks use keep threads, which a fork would cut off.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(num_workers, mp_context=context)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def run_tasks(tasks: Sequence[Task], *, pool: Executor | None, label: str) -> list[Done]:
    """Run what is not done yet, and return the marks in the order of the tasks.

    Without a pool, or for a single task, all happens in this process. Raises what a task raised;
    UserError where a worker was killed, and then what is done stays done.
    """
    marks = {task.output: _mark_of(task) for task in tasks}
    open_tasks = [task for task in tasks if marks[task.output] is None]
    bar = tqdm(total=len(open_tasks), desc=label, unit=" shards", disable=None)
    with bar:
        for task, mark in _run(open_tasks, pool):
            marks[task.output] = mark
            bar.update()
    return [mark for mark in marks.values() if mark]


def hash_of(*parts: object) -> str:
    """Return a hash of values whose repr says all about them."""
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def count_workers() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(tasks: Sequence[Task], pool: Executor | None) -> Iterator[tuple[Task, Done]]:
    if pool is None or len(tasks) < 2:
        yield from ((task, _perform(task)) for task in tasks)
        return
    try:
        running = {pool.submit(_perform, task): task for task in tasks}
        for future in as_completed(running):
            yield running[future], future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed, perhaps as memory ran out; run the same command again, "
            "and it goes on where it was."
        ) from None


def _perform(task: Task) -> Done:
    """Write the file under another name, rename it, then mark it."""
    task.output.parent.mkdir(parents=True, exist_ok=True)
    partial = task.output.with_name(f".{task.output.name}.{os.getpid()}.partial")
    try:
        rows = task.write(partial)
        with partial.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        mark = Done(rows, partial.stat().st_size, sha256, task.made_from)
        partial.replace(task.output)
    finally:
        partial.unlink(missing_ok=True)
    with write_whole(_mark_file(task.output)) as stream:
        stream.write(json.dumps(asdict(mark)).encode())
    return mark


def _mark_of(task: Task) -> Done | None:
    """Return the mark of a task that need not run, or None."""
    file = _mark_file(task.output)
    if not file.exists() or not task.output.exists():
        return None
    mark = Done(**json.loads(file.read_text()))
    is_same = mark.made_from == task.made_from and mark.size == task.output.stat().st_size
    return mark if is_same else None


def _mark_file(output: Path) -> Path:
    return output.with_name(f"{output.name}.done")
