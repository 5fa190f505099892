"""Preparation fills a run folder once, notices what changed, and leaves no half of anything."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from prepared import (
    ledger_rows,
    prepare_small,
    some_pairs,
    stored_ids,
    stored_rows,
    write_corpus,
    write_small,
    write_vocab,
)

from nmt.config import load_config
from nmt.errors import UserError
from nmt.lines import read_lines
from nmt.prepare import Statistics
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import load_vocabs

TRAIN = some_pairs(60, seed=1)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_small(tmp_path)


def files(run: RunFolder) -> dict[str, tuple[int, bytes]]:
    """Return when each file of a run was last changed, and what it holds."""
    return {
        str(path.relative_to(run.path)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in run.path.rglob("*")
        if path.is_file()
    }


def test_a_run_folder_holds_what_was_made_and_nothing_else(config: Path) -> None:
    run, _ = prepare_small(config)
    assert set(files(run)) == {
        "config.yaml",
        "vocab.model",
        "run.json",
        *(
            f"data/{name}"
            for name in "train.arrow dev.arrow ledger.tsv examples.tsv statistics.json".split()
        ),
        *(f"data/{name}.{side}" for name in ("dev", "test.test.de") for side in ("src", "tgt")),
    }
    assert run.load_config() == load_config(config)


def test_statistics_say_what_came_in_and_what_stayed(config: Path) -> None:
    mended = [("ant\u2028bat cat", "lo mi na"), ("den eel fan", "rus\0sal tor")]
    bad = [("", "lo"), ("ant", ""), ("ant", "ant"), TRAIN[0], some_pairs(5, seed=2)[0]]
    write_corpus(config.parent, "train", [*TRAIN, *mended, *bad])
    run, statistics = prepare_small(config)
    name = f"{config.parent / 'train.en'} {config.parent / 'train.de'}"
    assert dataclasses.asdict(statistics) == {
        "corpora": [
            {
                "name": name,
                "weight": 1.0,
                "pairs": 67,
                "kept": 62,
                "dropped": dict.fromkeys(
                    ["empty source", "empty target", "copy", "in dev or test", "duplicate"], 1
                ),
                "repaired": {"line separators in source": 1, "controls in target": 1},
                "trimmed": {},
                "alarms": ANY,  # the words are made up and read like no language
            }
        ],
        "num_pairs": 62,
        "vocab_sizes": [100],
        "held_out": {"dev": 5, "test.test.de": 4},
        "overlap": {"dev": 0, "test.test.de": 0},
    }
    written = json.loads((run.data / "statistics.json").read_text(encoding="utf-8"))
    assert written == dataclasses.asdict(statistics)
    assert Statistics.load(run) == statistics
    assert ledger_rows(run) == [
        ["corpus", "line", "action", "reason"],
        [name, "61", "repaired", "line separators in source"],
        [name, "62", "repaired", "controls in target"],
        [name, "63", "dropped", "empty source"],
        [name, "64", "dropped", "empty target"],
        [name, "65", "dropped", "copy"],
        [name, "66", "dropped", "duplicate"],
        [name, "67", "dropped", "in dev or test"],
    ]
    expected = [(0, line, *pair) for line, pair in enumerate(TRAIN, 1)]
    expected += [(0, 61, "ant bat cat", "lo mi na"), (0, 62, "den eel fan", "rus sal tor")]
    assert stored_rows(run) == expected


def test_statistics_can_be_read_aloud(config: Path) -> None:
    write_corpus(config.parent, "train", [*TRAIN, ("ant\0bat", "lo mi"), ("ant", "")])
    _, statistics = prepare_small(config)
    said = [line for line in statistics.describe() if "ALARM" not in line]
    assert said == [
        f"{config.parent / 'train.en'} {config.parent / 'train.de'}: 62 pairs, 61 kept",
        "  dropped, empty target: 1",
        "  repaired, controls in source: 1",
        "vocabulary: 100 pieces",
        "dev: 5 sentences, 0 with a side in training",
        "test.test.de: 4 sentences, 0 with a side in training",
    ]


def test_the_record_says_what_all_was_made_from(config: Path) -> None:
    run, _ = prepare_small(config)
    record = json.loads(run.run_json.read_text(encoding="utf-8"))
    inputs = {
        str(config.parent / f"{name}.{side}")
        for name in ("train", "dev", "test")
        for side in ("en", "de")
    }
    assert set(record["inputs"]) == inputs
    for path in inputs:
        sha256 = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert record["inputs"][path]["sha256"] == sha256
    vocab = run.vocab_file("src", is_separate=False).read_bytes()
    assert record["vocab"] == {"vocab.model": hashlib.sha256(vocab).hexdigest()}
    assert record["scores"] == []
    assert {"command", "commit", "hardware", "python", "versions"} <= set(record["prepared"])


@pytest.mark.parametrize("keep", [False, True])
def test_overlap_is_removed_or_counted(config: Path, keep: bool) -> None:
    dev, test = some_pairs(5, seed=2), some_pairs(4, seed=3)
    src, tgt = "ant bat cat den eel", "lo mi na ota pel"
    known = [(f" {dev[0][0].capitalize()}", tgt), (src, test[1][1]), (src, dev[2][1])]
    write_corpus(config.parent, "train", [*TRAIN, *known])
    model = f"vocab.model={write_vocab(config.parent / 'other.model')}"
    run, statistics = prepare_small(config, model, f"clean.keep_test_overlap={str(keep).lower()}")
    assert statistics.overlap == (
        {"dev": 2, "test.test.de": 1} if keep else dict.fromkeys(["dev", "test.test.de"], 0)
    )
    assert statistics.corpora[0]["dropped"] == ({} if keep else {"in dev or test": 3})
    assert len(TokenStore(run.store)) == (63 if keep else 60)


def test_preparing_twice_does_nothing(config: Path) -> None:
    run, statistics = prepare_small(config)
    before = files(run)
    assert prepare_small(config)[1] == statistics
    assert prepare_small(config, "training.lr=0.1", "model.dropout=0.3")[1] == statistics
    assert files(run) == before


def test_a_touched_input_with_equal_content_changes_nothing(config: Path) -> None:
    run, _ = prepare_small(config)
    before = files(run)
    os.utime(config.parent / "train.en", ns=(1, 1))
    prepare_small(config)
    assert files(run) == before


def test_inputs_that_went_away_change_nothing(config: Path) -> None:
    run, _ = prepare_small(config)
    before = files(run)
    for path in config.parent.glob("*.en"):
        path.unlink()
    prepare_small(config)
    assert files(run) == before


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_an_input_with_other_content_is_noticed(
    config: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, old = prepare_small(config)
    write_corpus(config.parent, name, some_pairs(61, seed=9))
    _, new = prepare_small(config)
    sizes = [statistics.held_out | {"train": statistics.num_pairs} for statistics in (old, new)]
    assert [key for key in sizes[0] if sizes[0][key] != sizes[1][key]][0].startswith(
        {"train": "train", "dev": "dev", "test": "test.test.de"}[name]
    )
    assert f"preparing again: {config.parent / name}.en has other content;" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("override", "change"),
    [
        ("clean.max_tokens=30", "clean.max_tokens was 250, is 30"),
        ("vocab.size=110", "vocab.size was 100, is 110"),
        ("tgt=fr", "tgt was de, is fr"),
        ("data.test=[]", "data.test was [{"),
    ],
)
def test_a_changed_key_is_noticed(
    config: Path, override: str, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = prepare_small(config)
    prepare_small(config, override)
    assert f"{run.path}: preparing again: {change}" in capsys.readouterr().err
    assert run.load_config() == load_config(config, [override])


@pytest.mark.parametrize("change", ["input", "key"])
def test_data_that_a_model_was_trained_on_is_not_replaced(config: Path, change: str) -> None:
    run, _ = prepare_small(config)
    run.checkpoints.mkdir()
    before = files(run)
    if change == "input":
        write_corpus(config.parent, "train", some_pairs(61, seed=9))
    overrides = ["clean.max_tokens=30"] if change == "key" else []
    with pytest.raises(UserError) as caught:
        prepare_small(config, *overrides)
    assert str(caught.value).startswith(f"{run.path}: was trained on other data (")
    assert "give another folder with --run, or delete this one" in str(caught.value)
    assert files(run) == before


def test_several_corpora_keep_their_place_and_weight(config: Path) -> None:
    tsv = config.parent / "more.tsv"
    tsv.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in some_pairs(7, seed=5)))
    here = config.parent
    files = f"{{src: {here}/train.en, tgt: {here}/train.de, weight: 2}}"
    run, statistics = prepare_small(config, f"data.train=[{files}, {{tsv: {tsv}, weight: 0.5}}]")
    assert [(row["weight"], row["kept"]) for row in statistics.corpora] == [(2.0, 60), (0.5, 7)]
    assert statistics.num_pairs == 67
    assert stored_rows(run)[60:] == [
        (1, line, *pair) for line, pair in enumerate(some_pairs(7, seed=5), 1)
    ]


def test_a_side_of_its_own_vocabulary(config: Path) -> None:
    run, statistics = prepare_small(config, "vocab={separate: true, size: 64}", "model.tie=none")
    assert statistics.vocab_sizes == [64, 64]
    vocabs = load_vocabs(run.load_config(), run)
    assert vocabs.src.model != vocabs.tgt.model
    assert set(json.loads(run.run_json.read_text())["vocab"]) == {
        "vocab.src.model",
        "vocab.tgt.model",
    }
    ids = stored_ids(TokenStore(run.store), "tgt", 0)
    assert vocabs.tgt.decode([ids[:-1]]) == [TRAIN[0][1]]


def test_a_trained_vocabulary_is_taken_as_it_is(config: Path) -> None:
    model = write_vocab(config.parent / "other.model")
    run, statistics = prepare_small(config, f"vocab.model={model}")
    assert run.vocab_file("src", is_separate=False).read_bytes() == Path(model).read_bytes()
    assert statistics.vocab_sizes == [350]
    assert [row[2:] for row in stored_rows(run)] == TRAIN


def test_a_vocabulary_that_is_none_is_refused(config: Path) -> None:
    with pytest.raises(UserError, match="train.en: this is not a SentencePiece model"):
        prepare_small(config, f"vocab.model={config.parent / 'train.en'}")
    with pytest.raises(UserError, match="none.model: cannot read the vocabulary"):
        prepare_small(config, f"vocab.model={config.parent / 'none.model'}")


def test_blank_dev_lines_are_kept_as_lines_but_not_validated(config: Path) -> None:
    pairs = some_pairs(3, seed=2)
    write_corpus(config.parent, "dev", [pairs[0], ("", "lo"), (" ", ""), pairs[1], ("ant", "")])
    run, statistics = prepare_small(config)
    assert statistics.held_out["dev"] == 5
    assert list(read_lines(run.lines_file("dev", "src"))) == [
        pairs[0][0],
        "",
        " ",
        pairs[1][0],
        "ant",
    ]
    dev = TokenStore(run.dev_store)
    assert [dev.origin(row) for row in range(len(dev))] == [(0, 1), (0, 4)]
    vocab = load_vocabs(run.load_config(), run).src
    assert vocab.decode([stored_ids(dev, "src", 1)[:-1]]) == [pairs[1][0]]
    assert np.all(dev.lengths("src") > 1)


def test_the_same_input_gives_the_same_files(config: Path) -> None:
    run, _ = prepare_small(config)
    shutil.move(run.path, config.parent / "first")
    prepare_small(config)
    first = files(RunFolder(config.parent / "first"))
    again = files(run)
    assert first.keys() == again.keys()
    for name in first.keys() - {"run.json"}:
        assert first[name][1] == again[name][1], name
