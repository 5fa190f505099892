"""Examples of what the ledger tells."""

from pathlib import Path

import pyarrow as pa
import pytest

from nmt.data.examples import Row, pick, read_examples, visible, write_examples
from nmt.data.ledger import Entry, Ledger
from nmt.data.sources.corpora import SCHEMA
from nmt.run_folder import RunFolder


def test_the_first_rows_of_each_kind_are_picked() -> None:
    rows = [
        Row("a", 1, "dropped", "copy"),
        Row("a", 2, "dropped", "copy"),
        Row("a", 3, "repaired", "copy"),
        Row("a", 4, "dropped", "copy"),
        Row("b", 1, "dropped", "copy"),
    ]
    assert pick(rows, per_reason=2) == [rows[0], rows[1], rows[2], rows[4]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Straße 東京", "plain Straße 東京"),
        ("a\u2028b\x85c\td\re\n", "a\\u2028b\\x85c\\td\\re\\n"),
        ("\ufeffa\u00a0b", "\\ufeffa\\xa0b"),
        ("x" * 201, "x" * 200 + " …"),
    ],
)
def test_a_text_is_shown_on_one_line_with_all_that_is_in_it(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_examples_hold_the_text_as_it_was_written(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.data.mkdir()
    with run.ledger.open("wb") as stream:
        ledger = Ledger(stream, ["one", "two"])
        ledger.write(0, [Entry(2, "dropped", "empty source"), Entry(3, "repaired", "source")])
        ledger.write(1, [Entry(line, "dropped", "empty source") for line in range(1, 9)])
    for name, rows in {
        "one": [(1, "a", "b"), (2, None, "b"), (3, "a\u2028\tc", "b")],
        "two": [(line, "", f"t{line}") for line in range(1, 9)],
    }.items():
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        batch = pa.record_batch(columns, schema=SCHEMA)
        path = str(tmp_path / f"{name}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink:
            sink.write_batch(batch)
    write_examples(run, {name: tmp_path / f"{name}.arrow" for name in ("one", "two")})
    assert list(read_examples(run)) == [
        (Row("one", 2, "dropped", "empty source"), "", "b"),
        (Row("one", 3, "repaired", "source"), "a\\u2028\\tc", "b"),
        *((Row("two", line, "dropped", "empty source"), "", f"t{line}") for line in (1, 2, 3)),
    ]
