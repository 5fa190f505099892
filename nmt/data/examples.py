"""Keeps some pairs as they were written for each thing that the ledger tells of a corpus."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nmt.data.ledger import HEADER
from nmt.data.shards import read_batches
from nmt.lines import read_lines, write_lines
from nmt.run_folder import RunFolder

_PER_REASON = 3
_MAX_CHARS = 200


class Row(NamedTuple):
    """A row of the ledger."""

    corpus: str
    line: int
    action: str
    reason: str


def read_ledger(path: Path) -> Iterator[Row]:
    """Yield the rows of a ledger file."""
    lines = read_lines(path)
    assert f"{next(lines)}\n" == HEADER, f"{path} is no ledger"
    for line in lines:
        corpus, number, action, reason = line.split("\t")
        yield Row(corpus, int(number), action, reason)


def pick(rows: Iterable[Row], per_reason: int = _PER_REASON) -> list[Row]:
    """Return the first rows of each corpus, action and reason."""
    seen: Counter[tuple[str, str, str]] = Counter()
    picked = []
    for row in rows:
        kind = (row.corpus, row.action, row.reason)
        seen[kind] += 1
        if seen[kind] <= per_reason:
            picked.append(row)
    return picked


def find_texts(file: Path, lines: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return source and target of some lines from a raw Arrow file: columns line, src, tgt."""
    wanted = pa.array(sorted(set(lines)), pa.int64())
    texts = {}
    for batch in read_batches(file):
        found = batch.filter(pc.is_in(batch.column("line"), value_set=wanted)).to_pydict()
        for line, src, tgt in zip(found["line"], found["src"], found["tgt"], strict=True):
            texts[line] = (src or "", tgt or "")
    return texts


def write_examples(run: RunFolder, raw_files: Mapping[str, Path]) -> None:
    """Write data/examples.tsv from the ledger and the raw Arrow file of each corpus."""
    picked = pick(read_ledger(run.ledger))
    texts = {
        corpus: find_texts(file, (row.line for row in picked if row.corpus == corpus))
        for corpus, file in raw_files.items()
    }
    write_lines(
        examples_file(run),
        ("\t".join([*map(str, row), *map(visible, texts[row.corpus][row.line])]) for row in picked),
    )


def read_examples(run: RunFolder) -> Iterator[tuple[Row, str, str]]:
    """Yield ledger row, source and target as `visible` shows them."""
    for line in read_lines(examples_file(run)):
        corpus, number, action, reason, src, tgt = line.split("\t")
        yield Row(corpus, int(number), action, reason), src, tgt


def examples_file(run: RunFolder) -> Path:
    return run.data / "examples.tsv"


def visible(text: str) -> str:
    r"""Return a text for the eye: what cannot be seen is written out, what is long is cut.

    `visible("a\u2028b") == "a\\u2028b"`
    """
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text[:_MAX_CHARS]
    )
    return shown + " …" * (len(text) > _MAX_CHARS)
