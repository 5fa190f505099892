"""Corpora become one file of clean pairs in their order, and a sample of it is drawn evenly."""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from nmt.config import CleanConfig
from nmt.data.cleaning import clean_corpora, read_clean, sample_pairs
from nmt.data.corpora import SCHEMA, Corpus
from nmt.data.ledger import HEADER, Ledger
from nmt.data.overlap import HeldOut

Pairs = list[tuple[str, str]]


def corpus(name: str, pairs: Pairs, rows_per_batch: int = 2) -> Corpus:
    return Corpus(name, 1.0, (), "", partial(batches, pairs, rows_per_batch))


def batches(pairs: Pairs, rows_per_batch: int, max_rows: int) -> Iterator[pa.RecordBatch]:
    assert rows_per_batch <= max_rows
    rows = [{"line": n, "src": src, "tgt": tgt} for n, (src, tgt) in enumerate(pairs, 1)]
    for start in range(0, len(rows), rows_per_batch):
        yield pa.RecordBatch.from_pylist(rows[start : start + rows_per_batch], schema=SCHEMA)


class Cleaned:
    """What cleaning gives: the rows that stay, the numbers read, the ledger."""

    def __init__(
        self, corpora: list[Corpus], rules: CleanConfig, held_out: HeldOut, path: Path
    ) -> None:
        stream = io.BytesIO()
        ledger = Ledger(stream, [corpus.name for corpus in corpora])
        self.num_read = clean_corpora(corpora, rules, held_out, ledger, path)
        self.ledger = stream.getvalue().decode().removeprefix(HEADER).splitlines()
        self.batches = list(read_clean(path))
        self.rows = [tuple(row.values()) for batch in self.batches for row in batch.to_pylist()]


@pytest.fixture
def held_out() -> HeldOut:
    held_out = HeldOut()
    held_out.add("dev", ["Known."], ["Bekannt."])
    return held_out


ONE = [("a", "A1"), ("b", "b"), ("c\u2028c", "C1"), ("known.", "x"), ("a", "A1")]
TWO = [("", "y"), ("d", "D1"), ("a", "A1")]


def test_rows_keep_their_corpus_line_and_order(tmp_path: Path, held_out: HeldOut) -> None:
    corpora = [corpus("one", ONE), corpus("two", TWO)]
    cleaned = Cleaned(corpora, CleanConfig(), held_out, tmp_path / "clean.arrow")
    assert cleaned.rows == [(0, 1, "a", "A1"), (0, 3, "c c", "C1"), (1, 2, "d", "D1")]
    assert cleaned.num_read == [5, 3]
    assert cleaned.ledger == [
        "one\t2\tdropped\tcopy",
        "one\t3\trepaired\tsource",
        "one\t4\tdropped\tin dev or test",
        "one\t5\tdropped\tduplicate",
        "two\t1\tdropped\tempty source",
        "two\t3\tdropped\tduplicate",
    ]


def test_each_batch_is_of_one_corpus_and_none_is_empty(tmp_path: Path, held_out: HeldOut) -> None:
    corpora = [corpus("one", [("", ""), ("", ""), *ONE]), corpus("two", TWO)]
    cleaned = Cleaned(corpora, CleanConfig(), held_out, tmp_path / "clean.arrow")
    assert all(batch.num_rows for batch in cleaned.batches)
    assert all(len(set(batch.column("corpus").to_pylist())) == 1 for batch in cleaned.batches)


def test_a_line_that_was_mended_and_then_dropped_has_one_entry(
    tmp_path: Path, held_out: HeldOut
) -> None:
    pairs = [("known.\0", "x"), ("a", "b"), ("\ufeffa", "b")]
    path = tmp_path / "clean.arrow"
    cleaned = Cleaned([corpus("one", pairs, 3)], CleanConfig(), held_out, path)
    assert cleaned.ledger == ["one\t1\tdropped\tin dev or test", "one\t3\tdropped\tduplicate"]


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        (CleanConfig(keep_test_overlap=True), [1, 3, 4]),
        (CleanConfig(dedup="none"), [1, 3, 5]),
        (CleanConfig(drop_copies=False), [1, 2, 3]),
    ],
)
def test_each_rule_can_be_put_off(
    tmp_path: Path, held_out: HeldOut, rules: CleanConfig, lines: list[int]
) -> None:
    cleaned = Cleaned([corpus("one", ONE)], rules, held_out, tmp_path / "clean.arrow")
    assert [line for _, line, _, _ in cleaned.rows] == lines


def test_what_is_dropped_does_not_depend_on_the_batches(tmp_path: Path, held_out: HeldOut) -> None:
    found = [
        Cleaned([corpus("one", ONE, size)], CleanConfig(), held_out, tmp_path / f"{size}.arrow")
        for size in (1, 2, 3, 100)
    ]
    assert all(cleaned.rows == found[0].rows for cleaned in found)
    assert all(cleaned.ledger == found[0].ledger for cleaned in found)


def test_a_pair_that_went_takes_no_other_with_it(tmp_path: Path, held_out: HeldOut) -> None:
    pairs = [("a", "Bekannt."), ("a", "gut")]
    rules = CleanConfig(dedup="source")
    cleaned = Cleaned([corpus("one", pairs)], rules, held_out, tmp_path / "clean.arrow")
    assert [line for _, line, _, _ in cleaned.rows] == [2]


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    pairs = [(f"a{n}", f"b{n}") for n in range(100)]
    Cleaned([corpus("one", pairs, 7)], CleanConfig(), HeldOut(), tmp_path / "clean.arrow")
    return tmp_path / "clean.arrow"


def test_a_sample_holds_whole_pairs_in_order(hundred: Path) -> None:
    src, tgt = sample_pairs(hundred, 20)
    numbers = [int(text[1:]) for text in src]
    assert len(numbers) == 20
    assert numbers == sorted(set(numbers))
    assert tgt == [f"b{n}" for n in numbers]
    # Of all parts of the file, not of its beginning.
    assert len({n // 25 for n in numbers}) == 4
    assert sample_pairs(hundred, 20) == (src, tgt)


@pytest.mark.parametrize("size", [100, 101, 10**9])
def test_a_sample_may_be_all(hundred: Path, size: int) -> None:
    assert sample_pairs(hundred, size)[0] == [f"a{n}" for n in range(100)]


def test_a_sample_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clean.arrow"
    cleaned = Cleaned([corpus("one", [("", "")])], CleanConfig(), HeldOut(), path)
    assert (cleaned.rows, cleaned.num_read) == ([], [1])
    assert sample_pairs(path, 5) == ([], [])
