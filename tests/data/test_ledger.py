"""The ledger is a TSV with a row for each pair that went or was mended, and its counts."""

import io

import pytest

from nmt.data.ledger import HEADER, Entry, Ledger


@pytest.fixture
def stream() -> io.BytesIO:
    return io.BytesIO()


def test_a_row_an_entry_under_a_header(stream: io.BytesIO) -> None:
    ledger = Ledger(stream, ["captions/train", "/größe.en /größe.de"])
    ledger.write(0, [Entry(3, "dropped", "copy"), Entry(5, "repaired", "source and target")])
    ledger.write(1, [])
    ledger.write(1, [Entry(1, "dropped", "too long")])
    assert HEADER.rstrip("\n").split("\t") == ["corpus", "line", "action", "reason"]
    assert stream.getvalue().decode() == HEADER + (
        "captions/train\t3\tdropped\tcopy\n"
        "captions/train\t5\trepaired\tsource and target\n"
        "/größe.en /größe.de\t1\tdropped\ttoo long\n"
    )


def test_counts_by_corpus_and_action_most_frequent_first(stream: io.BytesIO) -> None:
    # One corpus may stand twice in a config: it is counted by its place, not by its name.
    ledger = Ledger(stream, ["a", "a"])
    ledger.write(0, [Entry(1, "dropped", "copy"), Entry(2, "repaired", "source")])
    ledger.write(0, [Entry(line, "dropped", "duplicate") for line in (3, 4)])
    ledger.write(1, [Entry(1, "dropped", "copy")])
    assert list(ledger.counts(0, "dropped").items()) == [("duplicate", 2), ("copy", 1)]
    assert ledger.counts(0, "repaired") == {"source": 1}
    assert ledger.counts(1, "dropped") == {"copy": 1}
    assert ledger.counts(1, "repaired") == {}
