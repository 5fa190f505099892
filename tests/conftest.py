"""Fixtures of all tests: the real command line, a place for caches, the mirror of real corpora."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny import copy, write_task

# A shell lets what it starts in the background ignore Ctrl-C, and so all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

_MIRROR = os.environ.get("NMT_MIRROR", "")

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The mirror of real corpora, or a skip where NMT_MIRROR named none."""
    if not _MIRROR:
        pytest.skip("NMT_MIRROR names no mirror of real corpora")
    return Path(_MIRROR)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test fills the user's cache, waits for a hub, or finds the mirror without asking."""
    patch = pytest.MonkeyPatch()
    patch.delenv("NMT_MIRROR", raising=False)
    patch.setenv("NMT_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("HF_HUB_OFFLINE", "1")
    yield
    patch.undo()


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Run `nmt ARGUMENTS` in a process of its own, and return it finished.

    `status` is what it must exit with; other keywords are those of subprocess.run.
    """

    def run(
        *arguments: object, status: int = 0, **options: object
    ) -> subprocess.CompletedProcess[str]:
        # Our own warnings to the user are UserWarnings; all others are errors here.
        strict = ["-W", "error", "-W", "default::UserWarning"]
        command = [sys.executable, *strict, "-m", "nmt", *map(str, arguments)]
        # One thread: tiny models are no faster on two, and a busy machine slows them less.
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        options = {
            "capture_output": True,
            "encoding": "utf-8",
            "timeout": 300,
            "env": environment,
        } | options
        done = subprocess.run(command, check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == status, f"{command} gave {done.returncode}:\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def copy_run(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a copy task, trained by `nmt train`."""
    folder = tmp_path_factory.mktemp("copy")
    cli("train", write_task(folder, copy), "--run", folder / "run")
    return folder / "run"
