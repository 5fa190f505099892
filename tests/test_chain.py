"""The prepared rows are the same bytes for any number of workers or shards, whatever was killed."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
from prepared import some_pairs, write_corpus, write_small

from nmt import chain
from nmt.chain import Plan
from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.errors import UserError
from nmt.prepare import prepare
from nmt.run_folder import RunFolder

TWO_CORPORA = (
    "data.train=[{{src: {0}/train.en, tgt: {0}/train.de}}, {{src: {0}/more.en, tgt: {0}/more.de}}]"
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two corpora whose duplicates lie in other shards and in the other corpus."""
    folder = tmp_path_factory.mktemp("corpora")
    pairs = some_pairs(300, seed=1)
    bad = [("", "lo"), ("ant", "ant"), ("ant\u2028bat", "mi")]
    path = write_small(folder, [*pairs, *bad, *pairs[:20]])
    write_corpus(folder, "more", [*pairs[100:130], *some_pairs(200, seed=5), *bad])
    return path


def prepared(
    config: Path, run: Path, plan: Plan, overrides: Sequence[str] | None = None
) -> dict[str, bytes]:
    """Prepare both corpora, and return the bytes of every file in the data folder."""
    overrides = [TWO_CORPORA.format(config.parent)] if overrides is None else overrides
    loaded = load_config(config, [*overrides, "clean.drop_copies=true"])
    prepare(loaded, RunFolder(run), Sources(run.parent / "cache"), plan)
    files = [path for path in (run / "data").rglob("*") if path.is_file()]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def expected(config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    run = tmp_path_factory.mktemp("expected") / "run"
    return prepared(config, run, Plan(num_workers=1, rows_per_shard=10_000))


# 556 rows in two corpora: 2, 7 and 16 shards.
@pytest.mark.parametrize(
    ("num_workers", "rows_per_shard"), [(1, 81), (1, 36), (2, 10_000), (2, 36), (3, 81)]
)
def test_the_bytes_depend_on_no_plan(
    config: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    num_workers: int,
    rows_per_shard: int,
) -> None:
    found = prepared(config, tmp_path / "run", Plan(num_workers, rows_per_shard))
    assert found == expected
    assert not (tmp_path / "run/data/work").exists()


def test_the_bytes_of_one_corpus_depend_on_no_number_of_shards(
    config: Path, tmp_path: Path
) -> None:
    # 323 rows in 1, 7 and 16 shards.
    found = [
        prepared(config, tmp_path / f"run{rows}" / "run", Plan(2, rows), overrides=[])
        for rows in (323, 47, 21)
    ]
    assert found[0] == found[1] == found[2]


def kill_once(marker: Path, write: Callable[..., int], *arguments: object) -> int:
    """Die as a process does that the system kills, but only the first time."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return write(*arguments)
    # What was half written lies there when it dies.
    if isinstance(arguments[-1], Path):
        arguments[-1].write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


@pytest.mark.parametrize(
    "stage", ["write_corpus", "clean_shard", "find_duplicates", "encode_shard"]
)
def test_a_killed_worker_loses_nothing(
    config: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    real = getattr(chain, stage)
    monkeypatch.setattr(chain, stage, partial(kill_once, tmp_path / "killed", real))
    plan = Plan(num_workers=2, rows_per_shard=81)
    with pytest.raises(UserError, match="a worker process was killed"):
        prepared(config, tmp_path / "run", plan)
    assert not (tmp_path / "run/data/statistics.json").exists()
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "run/data/work").glob("*.done")}
    kept = tmp_path / "kept"
    monkeypatch.setattr(
        chain.Chain,
        "clear",
        lambda self: shutil.copytree(self._work, kept) and shutil.rmtree(self._work),
    )
    assert prepared(config, tmp_path / "run", plan) == expected
    # What was done before is not done again.
    for path, time in done.items():
        assert (kept / path.name).stat().st_mtime_ns == time


def prepare_until_killed(stage: str, config: Path, run: Path) -> None:
    setattr(chain, stage, partial(kill_once, run.parent / "killed", getattr(chain, stage)))
    prepared(config, run, Plan(num_workers=1, rows_per_shard=81))


# What the main process does alone.
@pytest.mark.parametrize("stage", ["alarms", "train_vocab", "join", "write_examples"])
def test_a_killed_preparation_loses_nothing(
    config: Path, expected: dict[str, bytes], tmp_path: Path, stage: str
) -> None:
    arguments = (stage, config, tmp_path / "run")
    process = get_context("spawn").Process(target=prepare_until_killed, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "run/data/statistics.json").exists()
    assert prepared(config, tmp_path / "run", Plan(num_workers=1, rows_per_shard=81)) == expected


def test_the_file_of_a_stage_made_from_other_text_is_made_again(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpora"
    shutil.copytree(config.parent, folder)
    monkeypatch.setattr(chain.Chain, "clear", lambda _: None)
    plan = Plan(num_workers=1, rows_per_shard=81)
    before = prepared(folder / config.name, tmp_path / "run", plan)
    (tmp_path / "run/data/statistics.json").unlink()
    write_corpus(folder, "more", some_pairs(233, seed=77))
    after = prepared(folder / config.name, tmp_path / "run", plan)
    fresh = prepared(folder / config.name, tmp_path / "fresh", plan)
    for name in ("data/train.arrow", "data/ledger.tsv", "data/statistics.json"):
        assert after[name] == fresh[name] != before[name]
