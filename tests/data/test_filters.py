"""What is dropped, what is mended, and why: pair by pair."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from nmt.config import CleanConfig
from nmt.data.filters import clean, keep_rows, sides, why_length
from nmt.data.ledger import Entry
from nmt.data.sources.corpora import SCHEMA
from nmt.lines import read_lines

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
    kept, entries = clean(batch((src, tgt), ("stays", "bleibt"), first=8), RULES, "en", "de")
    assert pairs(kept) == [("stays", "bleibt")]
    assert kept.column("line").to_pylist() == [9]
    assert entries == [Entry(8, "dropped", reason)]


def test_copies_stay_where_they_are_wanted() -> None:
    kept, entries = clean(batch(("a", "a"), ("A", "a")), CleanConfig(drop_copies=False), "en", "de")
    assert pairs(kept) == [("a", "a"), ("A", "a")]
    assert entries == []


def test_another_case_is_no_copy() -> None:
    assert pairs(clean(batch(("Berlin", "berlin")), RULES, "en", "de")[0]) == [("Berlin", "berlin")]


@pytest.mark.parametrize(
    ("src", "tgt", "repaired"),
    [
        ("a\u2028b", "c", "line separators in source"),
        ("a", "c\x85d", "line separators in target"),
        ("a\0", "\ufeffb", "controls in source and byte order marks in target"),
        ("a\x0cb", "c", "controls in source"),
        ("cafe\u0301", "c ", "decomposed letters in source"),
        ("a\u2581b", "c", "U+2581 in source"),
        ("a&amp;b", "c", "entities in source"),
        ("a", "e&#x300;", "entities in target and decomposed letters in target"),
        ("a", "c&nbsp;d", "entities in target"),
    ],
)
def test_a_repair_says_what_was_mended_and_where(src: str, tgt: str, repaired: str) -> None:
    kept, entries = clean(batch((src, tgt)), RULES, "en", "de")
    assert kept.num_rows == 1
    assert entries == [Entry(1, "repaired", repaired)]


@pytest.mark.parametrize(("src", "tgt"), [("a  b ", "c"), ("a", "c\u00a0d\r")])
def test_a_trim_is_no_repair(src: str, tgt: str) -> None:
    _, entries = clean(batch((src, tgt)), RULES, "en", "de")
    assert entries == [Entry(1, "trimmed", "blanks or line ends")]


def test_entities_are_judged_as_what_they_stand_for() -> None:
    kept, entries = clean(
        batch(("&nbsp;", "a"), ("Q&amp;A", "Q&A"), ("&#1078;&#1077;", "b"), ("&lt;b&gt;", "c")),
        RULES,
        "en",
        "de",
    )
    assert pairs(kept) == [("<b>", "c")]
    assert entries == [
        Entry(1, "dropped", "empty source"),
        Entry(2, "dropped", "copy"),
        Entry(3, "dropped", "other script in source"),
        Entry(4, "repaired", "entities in source"),
    ]


def test_entities_stay_where_they_are_wanted() -> None:
    rules = CleanConfig(unescape=False)
    kept, entries = clean(batch(("Q&amp;A", "&auml;\0")), rules, "en", "de")
    assert pairs(kept) == [("Q&amp;A", "&auml;")]
    assert entries == [Entry(1, "repaired", "controls in target")]


GREEK = "καλημέρα"


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("so\ufffd", "x", "broken character in source"),
        ("x", "a" * 101, "long word in target"),
        ("o" * 30, "a" * 101, "repeated character in source"),
        ("word " * 401, "x", "too many characters in source"),
        ("x", "1 2 3 4 5", "few letters in target"),
        (GREEK, "x", "other script in source"),
        ("x", GREEK, "other script in target"),
        (GREEK, GREEK, "copy"),
        (GREEK + "\ufffd", "x", "broken character in source"),
    ],
)
def test_a_defect_is_told_with_its_side(src: str, tgt: str, reason: str) -> None:
    kept, entries = clean(batch((src, tgt), ("stays", "bleibt")), RULES, "en", "de")
    assert pairs(kept) == [("stays", "bleibt")]
    assert entries == [Entry(1, "dropped", reason)]


def test_each_side_has_the_script_of_its_language() -> None:
    assert clean(batch((GREEK, "x")), RULES, "el", "de")[0].num_rows == 1
    assert clean(batch((GREEK, "x")), RULES, "xx", "de")[0].num_rows == 1


def test_other_numbers_go_on_demand_alone() -> None:
    rows = batch(("on 3 May 1999", "am 3. Mai 1999"), ("in 1999", "im Jahr 99"))
    assert clean(rows, RULES, "en", "de")[0].num_rows == 2
    kept, entries = clean(rows, CleanConfig(drop_other_numbers=True), "en", "de")
    assert kept.column("line").to_pylist() == [1]
    assert entries == [Entry(2, "dropped", "other numbers")]


def test_one_entry_a_line_in_their_order() -> None:
    rows = batch(("a\0", "b"), ("a\0", ""), ("a", "b"), ("", "b"), ("a ", "b"))
    _, entries = clean(rows, RULES, "en", "de")
    assert [(entry.line, entry.action) for entry in entries] == [
        (1, "repaired"),
        (2, "dropped"),
        (4, "dropped"),
        (5, "trimmed"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_becomes_of_a_pair_does_not_depend_on_its_neighbours(size: int) -> None:
    rows = batch(("a\0", "b"), (GREEK, "b"), ("", "b"), ("größer", "b"), ("a", "日本"), ("ж", "ж"))
    kept, entries = clean(rows, RULES, "en", "de")
    parts = [
        clean(rows.slice(start, size), RULES, "en", "de") for start in range(0, rows.num_rows, size)
    ]
    assert pa.Table.from_batches([part for part, _ in parts]).equals(pa.table(kept))
    assert [entry for _, part in parts for entry in part] == entries


def test_text_is_normalised() -> None:
    kept, _ = clean(batch(("\ufeffa\u2028 b\r", " cafe\u0301  c\0d ")), RULES, "en", "de")
    assert pairs(kept) == [("a b", "café c d")]


def test_nothing_in_nothing_out() -> None:
    kept, entries = clean(batch(), RULES, "en", "de")
    assert (kept.num_rows, kept.schema, entries) == (0, SCHEMA, [])
    kept, _ = clean(batch(("", "")), RULES, "en", "de")
    assert (kept.num_rows, kept.schema) == (0, SCHEMA)


PAIRS = (("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("b", "y"))


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


@pytest.mark.parametrize(
    ("corpus", "tgt_lang"),
    [
        *(("multi30k/train.{}.gz", language) for language in ("de", "fr", "cs")),
        *((f"wmt-newstest/newstest{year}.{{}}.gz", "de") for year in range(2008, 2019)),
        *(("flores/flores-test.{}.gz", language) for language in "de fr ja ru tr zh".split()),
    ],
)
def test_clean_corpora_lose_next_to_nothing(mirror: Path, corpus: str, tgt_lang: str) -> None:
    texts = [read_lines(mirror / corpus.format(language)) for language in ("en", tgt_lang)]
    rows = batch(*zip(*texts, strict=True))
    _, entries = clean(rows, RULES, "en", tgt_lang)
    lost = [entry for entry in entries if entry.action == "dropped" and entry.reason != "copy"]
    assert len(lost) <= 0.001 * rows.num_rows, lost


def test_what_is_wrong_with_a_dirty_corpus(mirror: Path) -> None:
    folder = mirror / "dirty/onmt10k"
    texts = [read_lines(folder / f"{side}-train.txt.gz") for side in ("src", "tgt")]
    kept, entries = clean(batch(*zip(*texts, strict=True)), RULES, "en", "de")
    dropped = Counter(entry.reason for entry in entries if entry.action == "dropped")
    assert dropped == {
        "broken character in target": 23,
        "copy": 14,
        "broken character in source": 11,
        "few letters in source": 10,
        "empty source": 1,
        "other script in source": 1,
        "other script in target": 1,
        "repeated character in source": 1,
    }
    assert kept.num_rows == 10_000 - dropped.total()
    mended = [entry for entry in entries if "entities" in entry.reason]
    assert len(mended) == 1129
    left = [text for side in sides(kept) for text in side if "&quot;" in text or "&amp;" in text]
    assert left == []
