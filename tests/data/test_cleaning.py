"""Every row of a shard is judged once, and what stays keeps its line and order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nmt.config import CleanConfig
from nmt.data.cleaning import SCHEMA as CLEAN
from nmt.data.cleaning import Cleaner, judge
from nmt.data.dedup import find_duplicates, read_duplicates, read_unique
from nmt.data.overlap import HeldOut
from nmt.data.sample import sample_pairs
from nmt.data.sources.corpora import SCHEMA

Pairs = list[tuple[str, str]]
NUM_BUCKETS = 3


@pytest.fixture
def held_out() -> HeldOut:
    held_out = HeldOut()
    held_out.add("dev", ["Known."], ["Bekannt."])
    return held_out


def judged(pairs: Pairs, rules: CleanConfig, held_out: HeldOut) -> pa.RecordBatch:
    rows = [{"line": n, "src": src, "tgt": tgt} for n, (src, tgt) in enumerate(pairs, 1)]
    raw = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    return judge(raw, Cleaner(rules, held_out, "en", "de"))


def unique(
    folder: Path, shards: list[Pairs], rules: CleanConfig, held_out: HeldOut
) -> list[pa.RecordBatch]:
    """Clean shards, find their duplicates and return all rows."""
    files = [folder / f"clean-{n}.arrow" for n in range(len(shards))]
    for file, pairs in zip(files, shards, strict=True):
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, CLEAN) as writer:
            writer.write_batch(judged(pairs, rules, held_out))
    found = [folder / f"duplicates-{bucket}" for bucket in range(NUM_BUCKETS)]
    for bucket, path in enumerate(found):
        find_duplicates(files, bucket, NUM_BUCKETS, path)
    duplicates = read_duplicates(found)
    firsts = np.cumsum([0, *map(len, shards)])
    return [
        batch
        for file, first in zip(files, firsts, strict=False)
        for batch in read_unique(file, duplicates, int(first))
    ]


def texts(batch: pa.RecordBatch) -> list[tuple[int, str, str]]:
    rows = batch.filter(batch.column("src").is_valid()).to_pylist()
    return [(row["line"], row["src"], row["tgt"]) for row in rows]


def told(batch: pa.RecordBatch) -> list[tuple[int, str, str]]:
    return [
        (row["line"], row["action"], row["reason"]) for row in batch.to_pylist() if row["action"]
    ]


ONE = [("a", "A1"), ("b", "b"), ("c\u2028c", "C1"), ("known.", "x"), ("a", "A1")]
TWO = [("", "y"), ("d", "D1"), ("a", "A1")]


def test_rows_keep_their_line_and_order(tmp_path: Path, held_out: HeldOut) -> None:
    one, two = unique(tmp_path, [ONE, TWO], CleanConfig(), held_out)
    assert texts(one) == [(1, "a", "A1"), (3, "c c", "C1")]
    assert texts(two) == [(2, "d", "D1")]
    assert told(one) == [
        (2, "dropped", "copy"),
        (3, "repaired", "line separators in source"),
        (4, "dropped", "in dev or test"),
        (5, "dropped", "duplicate"),
    ]
    assert told(two) == [(1, "dropped", "empty source"), (3, "dropped", "duplicate")]


def test_a_line_that_was_mended_and_then_dropped_has_one_entry(
    tmp_path: Path, held_out: HeldOut
) -> None:
    pairs = [("known.\0", "x"), ("a", "b"), ("\ufeffa", "b")]
    [batch] = unique(tmp_path, [pairs], CleanConfig(), held_out)
    assert told(batch) == [(1, "dropped", "in dev or test"), (3, "dropped", "duplicate")]


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
    [batch] = unique(tmp_path, [ONE], rules, held_out)
    assert [line for line, _, _ in texts(batch)] == lines


@pytest.mark.parametrize(
    ("dedup", "lines"), [("pair", [1, 2, 3, 5]), ("source", [1, 3, 5]), ("target", [1, 2, 5])]
)
def test_the_first_of_what_is_equal_stays(tmp_path: Path, dedup: str, lines: list[int]) -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("c", "z")]
    rules = CleanConfig(dedup=dedup)  # type: ignore[arg-type]
    for shards in ([pairs], [[pair] for pair in pairs]):
        batches = unique(tmp_path, shards, rules, HeldOut())
        kept = [len(texts(batch)) for batch in batches]
        if len(shards) == 1:
            assert [line for line, _, _ in texts(batches[0])] == lines
        else:
            assert [n for n, count in enumerate(kept, 1) if count] == lines


def test_a_border_between_the_sides_is_seen(tmp_path: Path) -> None:
    pairs = [("a b", "c"), ("a", "b c")]
    [batch] = unique(tmp_path, [pairs], CleanConfig(), HeldOut())
    assert len(texts(batch)) == 2


def test_a_pair_that_went_takes_no_other_with_it(tmp_path: Path, held_out: HeldOut) -> None:
    pairs = [("a", "Bekannt."), ("a", "gut")]
    [batch] = unique(tmp_path, [pairs], CleanConfig(dedup="source"), held_out)
    assert [line for line, _, _ in texts(batch)] == [2]


def test_duplicates_are_found_as_a_set_would_find_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = [(f"s{n}", f"t{n}") for n in rng.integers(0, 300, 1000)]
    shards = [pairs[:1], pairs[1:400], pairs[400:]]
    batches = unique(tmp_path, shards, CleanConfig(), HeldOut())
    found = [(src, tgt) for batch in batches for _, src, tgt in texts(batch)]
    assert found == list(dict.fromkeys(pairs))


def hundred(sizes: list[int]) -> list[pa.RecordBatch]:
    """A hundred clean pairs, each followed by a dropped one, in batches of these sizes."""
    pairs = [pair for n in range(100) for pair in ((f"a{n}", f"b{n}"), ("", ""))]
    batch = judged(pairs, CleanConfig(), HeldOut())
    borders = np.cumsum([0, *sizes])
    return [batch.slice(a, b - a) for a, b in zip(borders, borders[1:], strict=False)]


def test_a_sample_holds_whole_pairs_in_order_however_they_are_cut() -> None:
    src, tgt = sample_pairs(lambda: iter(hundred([200])), 20)
    numbers = [int(text[1:]) for text in src]
    assert len(numbers) == 20
    assert numbers == sorted(set(numbers))
    assert tgt == [f"b{n}" for n in numbers]
    # Of all parts of the file, not of its beginning.
    assert len({n // 25 for n in numbers}) == 4
    assert sample_pairs(lambda: iter(hundred([1, 70, 2, 127])), 20) == (src, tgt)


@pytest.mark.parametrize("size", [100, 101, 10**9])
def test_a_sample_may_be_all(size: int) -> None:
    assert sample_pairs(lambda: iter(hundred([200])), size)[0] == [f"a{n}" for n in range(100)]


def test_a_sample_of_nothing() -> None:
    batch = judged([("", "")], CleanConfig(), HeldOut())
    assert sample_pairs(lambda: iter([batch]), 5) == ([], [])
