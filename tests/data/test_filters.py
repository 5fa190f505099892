"""What is dropped, what is mended, and why: pair by pair."""

import pyarrow as pa
import pytest

from nmt.config import CleanConfig
from nmt.data.corpora import SCHEMA
from nmt.data.filters import clean, drop_duplicates, keep_rows, sides, why_length
from nmt.data.ledger import Entry

RULES = CleanConfig()


def batch(*pairs: tuple[str | None, str | None], first: int = 1) -> pa.RecordBatch:
    rows = [{"line": n, "src": src, "tgt": tgt} for n, (src, tgt) in enumerate(pairs, first)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def pairs(found: pa.RecordBatch) -> list[tuple[str, str]]:
    assert found.schema == SCHEMA
    return list(zip(*sides(found), strict=True))


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("", "b", "empty source"),
        ("a", "", "empty target"),
        ("", "", "empty source"),
        (None, "b", "empty source"),
        ("a", None, "empty target"),
        ("\u00a0 \u3000", "b", "empty source"),
        ("a", "\u2028\x85\r", "empty target"),
        ("\ufeff", "b", "empty source"),
        ("a b", "a b", "copy"),
        ("a b", " a\u00a0b\r", "copy"),
        ("cafe\u0301", "café", "copy"),
    ],
)
def test_a_pair_that_goes_has_one_reason(src: str | None, tgt: str | None, reason: str) -> None:
    kept, entries = clean(batch((src, tgt), ("stays", "bleibt"), first=8), RULES)
    assert pairs(kept) == [("stays", "bleibt")]
    assert kept.column("line").to_pylist() == [9]
    assert entries == [Entry(8, "dropped", reason)]


def test_copies_stay_where_they_are_wanted() -> None:
    kept, entries = clean(batch(("a", "a"), ("A", "a")), CleanConfig(drop_copies=False))
    assert pairs(kept) == [("a", "a"), ("A", "a")]
    assert entries == []


def test_another_case_is_no_copy() -> None:
    assert pairs(clean(batch(("Berlin", "berlin")), RULES)[0]) == [("Berlin", "berlin")]


@pytest.mark.parametrize(
    ("src", "tgt", "repaired"),
    [
        ("a\u2028b", "c", Entry(1, "repaired", "source")),
        ("a", "c\x85d", Entry(1, "repaired", "target")),
        ("a\0", "\ufeffb", Entry(1, "repaired", "source and target")),
        ("a\x0cb", "c", Entry(1, "repaired", "source")),
        ("cafe\u0301", "c ", Entry(1, "repaired", "source")),
        ("a\u2581b", "c", Entry(1, "repaired", "source")),
        ("a  b ", "c", Entry(1, "trimmed", "blanks or line ends")),
        ("a", "c\u00a0d\r", Entry(1, "trimmed", "blanks or line ends")),
    ],
)
def test_a_repair_is_one_and_a_trim_another(src: str, tgt: str, repaired: Entry) -> None:
    kept, entries = clean(batch((src, tgt)), RULES)
    assert kept.num_rows == 1
    assert entries == [repaired]


def test_text_is_normalised() -> None:
    kept, _ = clean(batch(("\ufeffa\u2028 b\r", " cafe\u0301  c\0d ")), RULES)
    assert pairs(kept) == [("a b", "café c d")]


def test_nothing_in_nothing_out() -> None:
    kept, entries = clean(batch(), RULES)
    assert (kept.num_rows, kept.schema, entries) == (0, SCHEMA, [])
    kept, _ = clean(batch(("", "")), RULES)
    assert (kept.num_rows, kept.schema) == (0, SCHEMA)


PAIRS = (("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("b", "y"))


@pytest.mark.parametrize(
    ("key", "kept_lines"), [("pair", [1, 2, 3, 5]), ("source", [1, 3]), ("target", [1, 2])]
)
def test_the_first_of_its_kind_stays(key: str, kept_lines: list[int]) -> None:
    kept, entries = drop_duplicates(batch(*PAIRS), set(), key)
    assert kept.column("line").to_pylist() == kept_lines
    dropped = sorted(set(range(1, 6)) - set(kept_lines))
    assert entries == [Entry(line, "dropped", "duplicate") for line in dropped]


def test_what_was_seen_in_an_earlier_batch_is_a_duplicate() -> None:
    seen: set[bytes] = set()
    assert drop_duplicates(batch(("a", "x")), seen, "pair")[0].num_rows == 1
    kept, entries = drop_duplicates(batch(("a", "x"), ("c", "z"), first=2), seen, "pair")
    assert pairs(kept) == [("c", "z")]
    assert entries == [Entry(2, "dropped", "duplicate")]


def test_a_pair_is_not_its_two_sides_run_together() -> None:
    kept, _ = drop_duplicates(batch(("a b", "c"), ("a", "b c")), set(), "pair")
    assert kept.num_rows == 2


@pytest.mark.parametrize(
    ("num_src", "num_tgt", "reason"),
    [
        (10, 10, ""),
        (10, 11, "too long"),
        (11, 10, "too long"),
        (9, 3, ""),
        (3, 9, ""),
        (10, 3, "length ratio"),
        (3, 10, "length ratio"),
        (11, 1, "too long"),
        (1, 0, "length ratio"),
    ],
)
def test_length_is_counted_without_the_stop_token(num_src: int, num_tgt: int, reason: str) -> None:
    rules = CleanConfig(max_tokens=10, max_ratio=3.0)
    assert why_length([7] * num_src + [2], [7] * num_tgt + [2], rules) == reason


def test_rows_with_a_reason_go() -> None:
    kept, entries = keep_rows(batch(("a", "x"), ("b", "y"), ("c", "z")), ["", "bad", ""])
    assert pairs(kept) == [("a", "x"), ("c", "z")]
    assert entries == [Entry(2, "dropped", "bad")]
