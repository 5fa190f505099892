"""nmt prepare on text as users have it: odd line ends, blanks, encodings, copies, leaks."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli
from prepared import (
    Pairs,
    corpora,
    ledger_rows,
    prepare_small,
    some_pairs,
    stored_ids,
    stored_rows,
    write_corpus,
    write_small,
    write_vocab,
)

from nmt.errors import UserError
from nmt.prepare import Statistics
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import load_vocab

CLEAN = [("ant bat cat", "lo mi na"), ("den eel fan", "ota pel rus"), ("gnat hat", "sal tor")]


@pytest.fixture(scope="module")
def vocab_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"vocab.model={write_vocab(tmp_path_factory.mktemp('vocab') / 'bytes.model')}"


def prepared(cli: Cli, config: Path, *overrides: str) -> tuple[RunFolder, str]:
    """Run `nmt prepare` and return the run folder and what it said."""
    run = config.parent / "run"
    options = [word for override in overrides for word in ("--set", override)]
    return RunFolder(run), cli("prepare", config, "--run", run, "--workers", 1, *options).stdout


def ids_by_corpus(run: RunFolder) -> dict[int, list[tuple[list[int], list[int]]]]:
    store = TokenStore(run.store)
    found: dict[int, list[tuple[list[int], list[int]]]] = {}
    for row in range(len(store)):
        ids = (stored_ids(store, "src", row), stored_ids(store, "tgt", row))
        found.setdefault(store.origin(row)[0], []).append(ids)
    return found


def test_unicode_line_ends_shift_no_pair(cli: Cli, tmp_path: Path, vocab_model: str) -> None:
    odd = ["ant bat\u2028cat", "den eel\x85fan", "gnat hat"]
    config = write_small(tmp_path, [(src, tgt) for src, (_, tgt) in zip(odd, CLEAN, strict=True)])
    run, said = prepared(cli, config, vocab_model)
    assert [row[2:] for row in stored_rows(run)] == CLEAN
    assert "3 pairs, 3 kept" in said
    assert "repaired, line separators in source: 2" in said
    assert [row[1:] for row in ledger_rows(run)[1:]] == [
        ["1", "repaired", "line separators in source"],
        ["2", "repaired", "line separators in source"],
    ]


# What str.splitlines takes for the end of a line, and what else stands where a blank should.
ODD_BLANKS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0\x1f\x9f\t\xa0\u3000"


def twins(pairs: Pairs) -> dict[str, Pairs]:
    """Return pairs that should be read as the ones that are given, by the name of their oddity."""
    return {
        "crlf": [(f"{src}\r", f"{tgt}\r") for src, tgt in pairs],
        "crlf_source": [(f"{src}\r", tgt) for src, tgt in pairs],
        # As where files with a BOM each were joined.
        "bom": [(f"\ufeff{src}", f"\ufeff{tgt}" if src < "f" else tgt) for src, tgt in pairs],
        **{
            f"u{ord(odd):04x}": [
                (src.replace(" ", f" {odd}"), f"{tgt.replace(' ', odd)}{odd}") for src, tgt in pairs
            ]
            for odd in ODD_BLANKS
        },
    }


def test_twins_with_other_blanks_and_line_ends_are_the_same_ids(cli: Cli, tmp_path: Path) -> None:
    pairs = some_pairs(60, seed=1)
    config = write_small(tmp_path, pairs)
    odd = twins(pairs)
    for name, twin in odd.items():
        write_corpus(tmp_path, name, twin)
    run, _ = prepared(
        cli,
        config,
        corpora(tmp_path, "train", *odd),
        "clean.dedup=none",
        "vocab={size: 330, byte_fallback: true}",
    )
    ids = ids_by_corpus(run)
    assert len(ids[0]) == 60
    for number, name in enumerate(odd, start=1):
        assert ids[number] == ids[0], name
    vocab = load_vocab(run.vocab_file("src", is_separate=False))
    pieces = vocab.pieces(range(len(vocab)))
    assert [piece for piece in pieces if set(piece) & set(f"{ODD_BLANKS}\n\ufeff")] == []


def write_unequal(folder: Path, num_src: int, num_tgt: int, name: str) -> tuple[Path, str]:
    """Write a corpus of so many lines a side; return the config and how the error begins."""
    config = write_small(folder)
    src, tgt = folder / f"{name}.en", folder / f"{name}.de"
    src.write_text("ant\n" * num_src)
    tgt.write_text("lo\n" * num_tgt)
    return config, f"{src} has {num_src} lines and {tgt} has {num_tgt}, but line k"


def test_sides_of_unequal_length_end_the_command(cli: Cli, tmp_path: Path) -> None:
    config, message = write_unequal(tmp_path, 5, 4, "train")
    done = cli("prepare", config, "--run", tmp_path / "run", status=2)
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["train", "dev", "test"])
@pytest.mark.parametrize(("num_src", "num_tgt"), [(5, 4), (4, 5), (5, 0)])
def test_sides_of_unequal_length_are_refused(
    tmp_path: Path, num_src: int, num_tgt: int, name: str
) -> None:
    config, message = write_unequal(tmp_path, num_src, num_tgt, name)
    with pytest.raises(UserError, match=message):
        prepare_small(config)
    assert not (tmp_path / "run").exists()


def test_a_last_line_needs_no_line_end(tmp_path: Path, vocab_model: str) -> None:
    pairs = some_pairs(5, seed=4)
    config = write_small(tmp_path, pairs)
    path = tmp_path / "train.de"
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    run, _ = prepare_small(config, vocab_model)
    assert [row[2:] for row in stored_rows(run)] == pairs


LEAKS = [0, 4, 7]


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """Ten pairs, of which three have a source of the test set, one in other case and blanks."""
    pairs = some_pairs(10, seed=4)
    config = write_small(tmp_path, pairs)
    test = [(pairs[line][0], some_pairs(10, seed=6)[line][1]) for line in LEAKS]
    test[1] = (test[1][0].upper().replace(" ", "  "), test[1][1])
    write_corpus(tmp_path, "test", test)
    return config


def test_held_out_sentences_are_not_trained_on(cli: Cli, leaky: Path, vocab_model: str) -> None:
    run, said = prepared(cli, leaky, vocab_model)
    assert "10 pairs, 7 kept" in said
    assert "dropped, in dev or test: 3" in said
    assert "test.test.de: 3 sentences, 0 with a side in training" in said
    kept = [row[1] for row in stored_rows(run)]
    assert kept == [line for line in range(1, 11) if line - 1 not in LEAKS]


def test_held_out_sentences_stay_when_asked_and_are_counted(leaky: Path, vocab_model: str) -> None:
    _, statistics = prepare_small(leaky, vocab_model, "clean.keep_test_overlap=true")
    assert statistics.num_pairs == 10
    assert statistics.overlap == {"dev": 0, "test.test.de": 3}


def test_a_pair_too_long_to_train_on_is_no_overlap(leaky: Path, vocab_model: str) -> None:
    keep = "clean.keep_test_overlap=true"
    pairs = some_pairs(10, seed=4)
    src, _ = pairs[LEAKS[0]]
    write_corpus(leaky.parent, "train", [(src, "lo"), *(pairs[line] for line in (1, 2))])
    _, statistics = prepare_small(leaky, vocab_model, keep)
    assert statistics.corpora[0]["dropped"] == {"length ratio": 1}
    assert statistics.overlap == {"dev": 0, "test.test.de": 0}


LONG = " ".join(["ant"] * 21)
TEN: Pairs = [
    ("", "lo mi"),
    ("ant bat", ""),
    ("\u00a0 \u3000", "lo mi"),
    (LONG, " ".join(["lo"] * 20)),
    (" ".join(["bat"] * 20), " ".join(["mi"] * 21)),
    (" ".join(["cat"] * 10), "na"),
    ("den eel", "den eel"),
    *CLEAN,
]
REASONS = [
    "empty source",
    "empty target",
    "empty source",
    "too long",
    "too long",
    "length ratio",
    "copy",
]


def test_each_pair_that_goes_has_one_reason(cli: Cli, tmp_path: Path, vocab_model: str) -> None:
    config = write_small(tmp_path, TEN)
    rules = [vocab_model, "clean.max_tokens=20"]
    run, said = prepared(cli, config, *rules, "clean.max_drop=0.7")
    assert "10 pairs, 3 kept" in said
    assert [row[2:] for row in stored_rows(run)] == CLEAN
    dropped = sorted((int(row[1]), row[3]) for row in ledger_rows(run)[1:])
    assert dropped == list(enumerate(REASONS, start=1))
    counts = Statistics.load(run).corpora[0]["dropped"]
    assert counts == {reason: REASONS.count(reason) for reason in REASONS}


def test_too_much_dropped_is_an_error(cli: Cli, tmp_path: Path, vocab_model: str) -> None:
    config = write_small(tmp_path, TEN)
    run = tmp_path / "run"
    sets = ["--set", vocab_model, "--set", "clean.max_tokens=20", "--set", "clean.max_drop=0.69"]
    done = cli("prepare", config, "--run", run, *sets, status=2)
    assert done.stderr == (
        "error: 7 of 10 training pairs (70.0%) were dropped, more than clean.max_drop allows "
        f"(69.0%); the ledger, {run}/data/ledger.tsv, tells which and why.\n"
    )
    assert len(ledger_rows(RunFolder(run))) == 8
    assert not (run / "data/statistics.json").exists()


def test_a_vocabulary_shrinks_to_what_the_text_can_fill(cli: Cli, tmp_path: Path) -> None:
    config = write_small(tmp_path, some_pairs(12, seed=4))
    done = cli("prepare", config, "--run", tmp_path / "run", "--set", "vocab.size=8000")
    size = len(load_vocab(tmp_path / "run/vocab.model"))
    assert size < 200
    assert done.stderr == (
        f"warning: vocab.size 8000 is more than the text can fill: it has {size} pieces now.\n"
    )
    assert f"vocabulary: {size} pieces" in done.stdout


def test_the_locale_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    pairs = [(src, tgt.replace("o", "ö")) for src, tgt in some_pairs(60, seed=1)]
    config = write_small(tmp_path, [*pairs, ("ant\u2028bat", "lö mi"), ("ñ", "ñ")])
    write_corpus(tmp_path, "dev", [("größe", "größe"), ("ant", "日本")])
    said = {}
    for name, locale in (("utf8", {}), ("c", {"PYTHONUTF8": "0", "LC_ALL": "C"})):
        run = tmp_path / name
        done = cli("prepare", config, "--run", run, env=os.environ | locale)
        said[name] = done.stdout
    assert said["c"] == said["utf8"]
    for path in (tmp_path / "utf8").rglob("*"):
        if path.is_file() and path.name != "run.json":
            other = tmp_path / "c" / path.relative_to(tmp_path / "utf8")
            assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("bad.txt", "{src: bad.txt, tgt: train.de}"),
        ("bad.txt", "{src: train.en, tgt: bad.txt}"),
        ("bad.gz", "{src: train.en, tgt: bad.gz}"),
        ("bad.tsv", "{tsv: bad.tsv}"),
    ],
)
def test_a_file_that_is_not_utf8_is_named(
    tmp_path: Path, name: str, form: str, vocab_model: str
) -> None:
    config = write_small(tmp_path)
    config.write_text(config.read_text().replace("{src: train.en, tgt: train.de}", form))
    raw = b"ant\tbat\n" * 41 + "größe\tbat\n".encode("latin-1") + b"bat\tant\n" * 18
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    with pytest.raises(UserError, match=rf"/{name}, line 42: byte 0xf6 at position 3 is not UTF"):
        prepare_small(config, vocab_model)


def test_utf_16_is_not_taken_for_lines_that_are_missing(tmp_path: Path, vocab_model: str) -> None:
    config = write_small(tmp_path)
    text = (tmp_path / "train.de").read_text(encoding="utf-8")
    (tmp_path / "train.de").write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match="train.de, line 1: byte 0xff at position 1 is not UTF-8"):
        prepare_small(config, vocab_model)


def test_a_file_that_is_not_utf8_ends_the_command(cli: Cli, tmp_path: Path) -> None:
    config = write_small(tmp_path)
    (tmp_path / "train.de").write_bytes("schön\n".encode("latin-1") * 60)
    done = cli("prepare", config, "--run", tmp_path / "run", status=2)
    assert done.stderr == (
        f"error: {tmp_path}/train.de, line 1: byte 0xf6 at position 4 is not UTF-8; convert the "
        "file to UTF-8 (for example: iconv -f latin1 -t utf-8).\n"
    )
    assert not (tmp_path / "run/data/train.arrow").exists()


def test_lengths_in_the_store_count_the_stop_token(tmp_path: Path, vocab_model: str) -> None:
    run, _ = prepare_small(write_small(tmp_path, CLEAN), vocab_model)
    ids = ids_by_corpus(run)[0]
    store = TokenStore(run.store)
    assert np.array_equal(store.lengths("src"), [len(src) for src, _ in ids])
