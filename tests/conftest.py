"""Fixtures of all tests: the real command line, a place for caches, the mirror of real corpora."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Tests must find no corpus by accident: the mirror is handed to those alone that ask for it.
_MIRROR = os.environ.pop("NMT_MIRROR", "")

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The mirror of real corpora, or a skip where NMT_MIRROR named none."""
    if not _MIRROR:
        pytest.skip("NMT_MIRROR names no mirror of real corpora")
    return Path(_MIRROR)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's cache, and none waits for a hub."""
    patch = pytest.MonkeyPatch()
    patch.setenv("NMT_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("HF_HUB_OFFLINE", "1")
    yield
    patch.undo()


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Run `nmt ARGUMENTS` in a process of its own, and return it finished.

    `status` is what it must exit with; other keywords are those of subprocess.run.
    """

    def run(*arguments: object, status: int = 0, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "nmt", *map(str, arguments)]
        options = {"capture_output": True, "encoding": "utf-8", "timeout": 300} | options
        done = subprocess.run(command, check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == status, f"{command} gave {done.returncode}:\n{done.stderr}"
        return done

    return run
