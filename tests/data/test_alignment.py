"""What is kept of a row to compare it, and the search for runs of rows off their place."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from nmt.data import alignment
from nmt.data.alignment import OFFSETS, Run, features, misaligned


def rows_of(src: list[str | None], tgt: list[str | None]) -> alignment.Rows:
    columns = {"src": pa.array(src, pa.string()), "tgt": pa.array(tgt, pa.string())}
    return features(pa.record_batch(columns))


@pytest.mark.parametrize(
    ("src", "tgt", "same"),
    [
        ("1,000.5 m", "1.000,5 m", True),
        ("3 of 10", "10, davon 3", True),
        ("in 1992", "１９９２年", True),
        ("no number", "keine Zahl", True),
        ("in 1992", "damals", False),
        ("3 of 10", "3 von 11", False),
        ("2 2", "2", False),
    ],
)
def test_numbers_agree_in_any_order_and_script(src: str, tgt: str, same: bool) -> None:
    row = rows_of([src], [tgt])[0]
    assert (row["src"]["numbers"] == row["tgt"]["numbers"]) is np.bool(same)


@pytest.mark.parametrize(
    ("src", "tgt", "same"),
    [
        ("Who?", "誰？", True),
        ('He said: "Who?"', "Er sagte: „Wer?“ ", True),
        ("So.", "そう。」", True),
        ("So.", "So!", False),
        ("A title", "Ein Titel", True),
        ("", "", True),
        ("", ".", False),
    ],
)
def test_marks_at_the_end_agree_across_scripts(src: str, tgt: str, same: bool) -> None:
    row = rows_of([src], [tgt])[0]
    assert (row["src"]["end"] == row["tgt"]["end"]) is np.bool(same)


def test_any_text_has_features() -> None:
    rows = rows_of(["x" * 100_000, "", None, "9" * 10_000], [None, "\n", "ß" * 9, "٣"])
    assert rows["src"]["length"].tolist() == [255, 0, 0, 255]
    assert rows["tgt"]["length"].tolist() == [0, 4, 12, 4]
    assert rows["src"]["numbers"][3] and rows["tgt"]["numbers"][3]


def test_the_best_path_is_that_of_an_exhaustive_search() -> None:
    rng = np.random.default_rng(4)
    found = set()
    for _ in range(20):
        blocks = rng.normal(0, 12, (5, len(OFFSETS)))

        def worth(path: tuple[int, ...], blocks: alignment.Floats = blocks) -> float:
            changes = sum(a != b for a, b in zip((OFFSETS.index(0), *path), path, strict=False))
            evidence = sum(blocks[row, offset] for row, offset in enumerate(path))
            return float(evidence - alignment._CHANGE * changes)

        best = max(product(range(len(OFFSETS)), repeat=5), key=worth)
        assert alignment._best_path(blocks) == list(best)
        found.add(best)
    assert len(found) > 10


@pytest.mark.parametrize("num_rows", [0, 1, 4, 5, 7, 8, 9, 17])
def test_a_corpus_may_be_short(num_rows: int) -> None:
    texts: list[str | None] = [f"row {number}" for number in range(num_rows)]
    assert misaligned(rows_of(texts, texts)) == []


def test_runs_of_several_offsets_end_where_they_end() -> None:
    src = [f"number {number}" for number in range(400)]
    rows = rows_of(list(src), list(src))
    places = np.arange(400)
    places[50:90] += 2  # the targets of rows 50 and 51 are lost, that of row 52 stands in row 50
    places[200:240] -= 1  # the target of row 239 is lost
    rows["tgt"] = rows["tgt"][places]
    assert misaligned(rows) == [Run(52, 89, -2), Run(200, 238, 1)]
