"""A training that goes on notices when its text or what was done to it changed."""

import os
import shutil
from pathlib import Path

import pytest
from conftest import Cli
from tiny import copy, write_task

TINY = {"train": 50, "dev": 5, "test": 5}


@pytest.fixture(scope="module")
def config(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a run of two updates in the folder `run` beside it."""
    path = write_task(tmp_path_factory.mktemp("resume"), copy, TINY)
    path.write_text(path.read_text().replace("size: 60", "size: 50"))
    cli("train", path, "--run", path.parent / "run", "--set", "training.max_steps=2")
    return path


def contents(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def refusal(cli: Cli, config: Path, *overrides: str, max_steps: int = 4) -> str:
    """Return what `nmt train` says when it does not go on; the run is left as it was."""
    run = config.parent / "run"
    before = contents(run)
    sets = [
        word
        for override in (f"training.max_steps={max_steps}", *overrides)
        for word in ("--set", override)
    ]
    done = cli("train", config, "--run", run, *sets, status=2)
    assert contents(run) == before
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("max_steps", [2, 4], ids=["finished", "going on"])
def test_other_text_is_named(cli: Cli, config: Path, max_steps: int) -> None:
    path = config.parent / "train.src"
    text = path.read_text()
    path.write_text("".join(reversed(text.splitlines(keepends=True))))  # of the same size
    assert refusal(cli, config, max_steps=max_steps) == (
        f"error: {config.parent}/run: was trained on other data ({path} has other content); "
        f"give another folder with --run, or delete this one.\n"
    )
    path.write_text(text)


def test_changed_keys_are_named_with_both_values(cli: Cli, config: Path) -> None:
    assert refusal(cli, config, "clean.max_tokens=30", "vocab.type=bpe") == (
        f"error: {config.parent}/run: has checkpoints made with another config: clean.max_tokens "
        f"was 250, is 30; vocab.type was unigram, is bpe. Set these back, or give another folder "
        f"with --run.\n"
    )


def test_a_touched_file_of_the_same_text_changes_nothing(
    cli: Cli, config: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(config.parent / "run", tmp_path / "run", symlinks=True)
    for path in config.parent.glob("*.src"):
        os.utime(path, ns=(1, 1))
    store = (run / "data/train.arrow").stat().st_mtime_ns
    done = cli("train", config, "--run", run, "--set", "training.max_steps=4")
    assert "going on from update 2" in done.stdout
    assert "finished (4 updates)" in done.stdout
    assert "preparing again" not in done.stderr
    assert (run / "data/train.arrow").stat().st_mtime_ns == store
