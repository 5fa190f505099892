"""When preparation fails, nothing is left that looks whole, and the next try makes it good."""

import shutil
from pathlib import Path

import pytest
from prepared import (
    ledger_rows,
    prepare_small,
    some_pairs,
    write_corpus,
    write_small,
    write_vocab,
)

from nmt.errors import UserError
from nmt.run_folder import RunFolder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def write_latin1(folder: Path, name: str, side: str) -> None:
    (folder / f"{name}.{side}").write_bytes("gut\nschön\n".encode("latin-1") * 30)


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_a_failure_leaves_nothing_that_looks_whole(config: Path, name: str) -> None:
    write_corpus(config.parent, name, [("gut", "good")] * 60)
    write_latin1(config.parent, name, "de")
    with pytest.raises(UserError, match=rf"{name}\.de, line 2: byte 0xf6 at position 4"):
        prepare_small(config)
    run = RunFolder(config.parent / "run")
    held_out = {"data/dev.src", "data/dev.tgt", "data/test.test.de.src", "data/test.test.de.tgt"}
    assert files(run.path) <= held_out | {"data/ledger.tsv"}
    assert not list(run.path.rglob(".*"))
    write_small(config.parent)
    assert prepare_small(config)[1].num_pairs == 60


def test_a_failure_while_preparing_again_is_made_good(config: Path) -> None:
    run, _ = prepare_small(config)
    write_latin1(config.parent, "train", "de")
    with pytest.raises(UserError):
        prepare_small(config)
    assert not (run.data / "statistics.json").exists()
    write_corpus(config.parent, "train", some_pairs(61, seed=9))
    _, statistics = prepare_small(config)
    assert statistics.num_pairs == 61
    assert not list(run.path.rglob(".*"))


def test_a_ledger_tells_why_nothing_was_left(config: Path) -> None:
    write_corpus(config.parent, "train", [("ant", ""), ("bat", "bat")])
    with pytest.raises(UserError, match="ledger"):
        prepare_small(config)
    rows = ledger_rows(RunFolder(config.parent / "run"))
    assert [row[1:] for row in rows[1:]] == [
        ["1", "dropped", "empty target"],
        ["2", "dropped", "copy"],
    ]


def test_a_changed_vocabulary_file_is_noticed(config: Path) -> None:
    model = write_vocab(config.parent / "other.model")
    prepare_small(config, f"vocab.model={model}")
    write_vocab(Path(model), size=340)
    _, statistics = prepare_small(config, f"vocab.model={model}")
    assert statistics.vocab_sizes == [340]


def test_checkpoints_without_their_data_are_not_given_other_data(config: Path) -> None:
    run, _ = prepare_small(config)
    run.checkpoints.mkdir()
    shutil.rmtree(run.data)
    write_corpus(config.parent, "train", some_pairs(61, seed=9))
    with pytest.raises(UserError):
        prepare_small(config)
