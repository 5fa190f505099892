"""Preparation of a run that begins with another one takes that one's vocabulary."""

import shutil
from pathlib import Path

import pytest
from prepared import prepare_small, some_pairs, stored_rows, write_corpus, write_small

from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import load_vocabs

TRAIN = some_pairs(60, seed=5)
SEPARATE = ("vocab={separate: true, size: 64}", "model.tie=none")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config whose corpora are not those of the run that it begins with."""
    return write_small(tmp_path, TRAIN)


def other_run(folder: Path, *overrides: str) -> RunFolder:
    folder.mkdir()
    run, _ = prepare_small(write_small(folder), *overrides)
    return run


@pytest.mark.parametrize("overrides", [(), SEPARATE], ids=["joint", "separate"])
def test_the_vocabulary_is_that_of_the_other_run(config: Path, overrides: tuple[str, ...]) -> None:
    other = other_run(config.parent / "other", *overrides)
    sets = [*overrides, f"training.init_from={other.path}"]
    run, _ = prepare_small(config, *sets)
    record = run.read_record()
    assert record["vocab"] == other.read_record()["vocab"]
    assert {str(other.path / name) for name in record["vocab"]} < record["inputs"].keys()
    ours, theirs = (load_vocabs(each.load_config(), each) for each in (run, other))
    assert [vocab.model for vocab in ours] == [vocab.model for vocab in theirs]
    alone, _ = prepare_small(config, *overrides)
    assert alone.read_record()["vocab"] != record["vocab"]


def test_the_text_survives_the_vocabulary(config: Path) -> None:
    other = other_run(config.parent / "other")
    run, statistics = prepare_small(config, f"training.init_from={other.path}")
    assert statistics.num_pairs == len(TRAIN)
    assert [row[2:] for row in stored_rows(run)] == TRAIN


def test_another_run_to_begin_with_means_other_data(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = other_run(config.parent / "other")
    prepare_small(config)
    init_from = f"training.init_from={other.path}"
    run, _ = prepare_small(config, init_from)
    assert f"preparing again: training.init_from was , is {other.path}" in capsys.readouterr().err
    run.checkpoints.mkdir()
    with pytest.raises(UserError, match="was trained on other data .training.init_from was /"):
        prepare_small(config)


def test_the_other_run_may_be_deleted_later(config: Path) -> None:
    other = other_run(config.parent / "other")
    init_from = f"training.init_from={other.path}"
    run, first = prepare_small(config, init_from)
    run.checkpoints.mkdir()
    shutil.rmtree(other.path)
    assert prepare_small(config, init_from)[1] == first
    assert len(load_vocabs(run.load_config(), run).src) == first.vocab_sizes[0]


def test_another_vocabulary_in_the_other_run_is_noticed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = other_run(config.parent / "other")
    init_from = f"training.init_from={other.path}"
    prepare_small(config, init_from)
    write_corpus(config.parent / "other", "train", some_pairs(70, seed=8))
    prepare_small(config.parent / "other/small.yaml", "vocab.size=90")
    run, _ = prepare_small(config, init_from)
    assert f"{other.path}/vocab.model has other content" in capsys.readouterr().err
    assert run.read_record()["vocab"] == other.read_record()["vocab"]


def test_what_is_no_run_to_begin_with_is_said_before_anything_is_read(config: Path) -> None:
    with pytest.raises(UserError, match="init_from: .*/none: this is no run folder"):
        prepare_small(config, f"training.init_from={config.parent / 'none'}")
    separate = other_run(config.parent / "separate", *SEPARATE)
    with pytest.raises(UserError, match="/separate/run was made with vocab.separate: true"):
        prepare_small(config, f"training.init_from={separate.path}")
    other = other_run(config.parent / "other")
    shutil.copy(separate.path / "vocab.src.model", other.path / "vocab.model")
    with pytest.raises(UserError, match="init_from: .*this vocabulary has sha256"):
        prepare_small(config, f"training.init_from={other.path}")
    (other.path / "run.json").unlink()
    with pytest.raises(UserError, match="init_from: .*/other/run: is not prepared to its end"):
        prepare_small(config, f"training.init_from={other.path}")
    assert not (config.parent / "run").exists()
