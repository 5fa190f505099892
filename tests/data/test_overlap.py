"""No held-out sentence is trained on, and what is kept of them is counted."""

import pyarrow as pa
import pytest

from nmt.data.overlap import HeldOut, fold
from nmt.data.sources.corpora import SCHEMA


def batch(*pairs: tuple[str, str]) -> pa.RecordBatch:
    rows = [{"line": n, "src": src, "tgt": tgt} for n, (src, tgt) in enumerate(pairs, 1)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def held_out() -> HeldOut:
    held_out = HeldOut()
    held_out.add("dev", ["A cat.", ""], ["Eine Katze.", "Nur Ziel."])
    held_out.add("test", ["A dog.", "STRASSE"], ["Ein Hund.", "street"])
    return held_out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A  cat. ", "a CAT."),
        ("a\u00a0cat", "a cat"),
        ("Straße", "STRASSE"),
        ("cafe\u0301", "CAFÉ"),
        ("\ufeffa\u2028b", "A b"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_case_and_blanks_are_folded(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("a cat.", "a cat"), ("ab", "a b"), ("cafe", "café")])
def test_other_differences_are_not_folded(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("src", "tgt", "found"),
    [
        ("A cat.", "anders", ("a cat.", None)),
        ("other", "Eine Katze.", (None, "eine katze.")),
        ("a CAT.", "EINE katze.", ("a cat.", "eine katze.")),
        ("Straße", "anders", ("strasse", None)),
        ("other", "NUR ZIEL.", (None, "nur ziel.")),
        ("other", "anders", (None, None)),
        ("Eine Katze.", "A cat.", (None, None)),  # a side is compared with its own side
        ("A cat. And more.", "anders", (None, None)),
        ("", "anders", (None, None)),  # a blank sentence is nothing one could know
    ],
)
def test_a_side_that_is_held_out_is_found(
    held_out: HeldOut, src: str, tgt: str, found: tuple[str | None, str | None]
) -> None:
    assert held_out.find(batch(("first", "erster"), (src, tgt))) == [(None, None), found]


def see(held_out: HeldOut, *pairs: tuple[str, str]) -> None:
    """Tell what training holds as the last stage does, by the sides that were found."""
    src, tgt = zip(*held_out.find(batch(*pairs)), strict=True)
    columns = [pa.array(side, pa.string()) for side in (src, tgt)]
    held_out.see(pa.record_batch(columns, names=["known_src", "known_tgt"]))


def test_overlap_counts_sentences_by_set(held_out: HeldOut) -> None:
    see(held_out, ("x", "y"))
    assert held_out.overlap() == {"dev": 0, "test": 0}
    see(held_out, ("A CAT.", "x"), ("a cat.", "y"))
    assert held_out.overlap() == {"dev": 1, "test": 0}
    see(held_out, ("z", "nur ziel."), ("Straße", "Street"), ("A dog.", "Ein Hund."))
    assert held_out.overlap() == {"dev": 2, "test": 2}


def test_a_sentence_counts_as_often_as_it_stands_in_the_set() -> None:
    held_out = HeldOut()
    held_out.add("test", ["a", "a", "b"], ["x", "y", "z"])
    see(held_out, ("A", "q"))
    assert held_out.overlap() == {"test": 2}


@pytest.mark.parametrize("in_training", ["a &amp; b", "A & b"])
@pytest.mark.parametrize("held_out_text", ["a &amp; b", "a & B", "a&nbsp;&amp;amp; b"])
def test_entities_hide_no_sentence(in_training: str, held_out_text: str) -> None:
    held_out = HeldOut()
    held_out.add("test", [held_out_text], [""])
    batch = pa.record_batch({"line": [1], "src": [in_training], "tgt": ["x"]})
    assert held_out.find(batch) == [("a & b", None)]
