"""Tasks run once, in any process, and leave whole files with marks."""

import hashlib
import os
from functools import partial
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.tasks import Task, hash_of, run_tasks, worker_pool


def write_text(text: str, log: Path, path: Path) -> int:
    path.write_text(text)
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if text == "bad":
        raise UserError("bad is bad.")
    return len(text)


def tasks(folder: Path, texts: list[str]) -> list[Task]:
    return [
        Task(folder / f"{n}.txt", hash_of(text), partial(write_text, text, folder / "log"))
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_marks_come_in_the_order_of_the_tasks(tmp_path: Path, num_workers: int) -> None:
    with worker_pool(num_workers) as pool:
        marks = run_tasks(tasks(tmp_path, ["a", "bb", "ccc"]), pool=pool, label="test")
    assert [mark.rows for mark in marks] == [1, 2, 3]
    assert marks[1].sha256 == hashlib.sha256(b"bb").hexdigest()
    pids = set((tmp_path / "log").read_text().split())
    assert (str(os.getpid()) in pids) == (num_workers == 1)


def test_what_is_done_is_not_done_again_unless_made_from_something_else(tmp_path: Path) -> None:
    first = run_tasks(tasks(tmp_path, ["a", "bb"]), pool=None, label="test")
    again = run_tasks(tasks(tmp_path, ["a", "xyz"]), pool=None, label="test")
    assert len((tmp_path / "log").read_text().split()) == 3
    assert again[0] == first[0]
    assert (tmp_path / "1.txt").read_text() == "xyz"
    (tmp_path / "0.txt").write_text("longer than it was")
    run_tasks(tasks(tmp_path, ["a"]), pool=None, label="test")
    assert (tmp_path / "0.txt").read_text() == "a"


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_error_comes_through_and_leaves_nothing_half_written(
    tmp_path: Path, num_workers: int
) -> None:
    with pytest.raises(UserError, match="bad is bad"), worker_pool(num_workers) as pool:
        run_tasks(tasks(tmp_path, ["bad", "good"]), pool=pool, label="test")
    assert not (tmp_path / "0.txt").exists()
    assert not list(tmp_path.glob(".*"))


def test_hashes_tell_values_apart() -> None:
    assert hash_of(1, "a") == hash_of(1, "a")
    assert len({hash_of(1, "a"), hash_of("1", "a"), hash_of(1), hash_of([1, "a"])}) == 4
