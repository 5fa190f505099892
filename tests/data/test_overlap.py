"""No held-out sentence is trained on, and what is kept of them is counted."""

import pyarrow as pa
import pytest

from nmt.data.corpora import SCHEMA
from nmt.data.ledger import Entry
from nmt.data.overlap import HeldOut, fold


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
    ("src", "tgt", "goes"),
    [
        ("A cat.", "anders", True),
        ("other", "Eine Katze.", True),
        ("a  CAT.", "anders", True),
        ("Straße", "anders", True),
        ("other", "NUR ZIEL.", True),
        ("other", "anders", False),
        ("Eine Katze.", "A cat.", False),  # a side is compared with its own side
        ("A cat. And more.", "anders", False),
    ],
)
def test_a_pair_goes_when_either_side_is_held_out(
    held_out: HeldOut, src: str, tgt: str, goes: bool
) -> None:
    kept, entries = held_out.drop(batch(("first", "erster"), (src, tgt)))
    assert kept.column("line").to_pylist() == ([1] if goes else [1, 2])
    assert entries == [Entry(2, "dropped", "in dev or test")] * goes


def test_blank_sentences_are_nothing_one_could_know(held_out: HeldOut) -> None:
    kept, _ = held_out.drop(batch(("", "anders"), (" ", "mehr")))
    assert kept.num_rows == 2
    held_out.see(kept)
    assert held_out.overlap() == {"dev": 0, "test": 0}


def test_overlap_counts_sentences_by_set(held_out: HeldOut) -> None:
    held_out.see(batch(("A CAT.", "x"), ("a  cat.", "y")))
    assert held_out.overlap() == {"dev": 1, "test": 0}
    held_out.see(batch(("z", "nur ziel."), ("Straße", "Street"), ("A dog.", "Ein Hund.")))
    assert held_out.overlap() == {"dev": 2, "test": 2}


def test_a_sentence_counts_as_often_as_it_stands_in_the_set() -> None:
    held_out = HeldOut()
    held_out.add("dev", ["Hi.", "Hi.", "Bye."], ["Hallo.", "Hey.", "Tschüss."])
    held_out.see(batch(("hi.", "x")))
    assert held_out.overlap() == {"dev": 2}


def test_a_sentence_of_two_sets_counts_in_both() -> None:
    held_out = HeldOut()
    held_out.add("dev", ["Hi."], ["Hallo."])
    held_out.add("test", ["Hi."], ["Hey."])
    held_out.see(batch(("Hi.", "x")))
    assert held_out.overlap() == {"dev": 1, "test": 1}
