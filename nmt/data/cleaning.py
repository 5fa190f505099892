"""Turns the training corpora into one Arrow file of clean pairs, and samples it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from nmt.config import CleanConfig
from nmt.data.corpora import Corpus
from nmt.data.filters import clean, drop_duplicates
from nmt.data.ledger import Entry, Ledger
from nmt.data.overlap import HeldOut

SCHEMA = pa.schema(
    [("corpus", pa.int32()), ("line", pa.int64()), ("src", pa.string()), ("tgt", pa.string())]
)


def clean_corpora(
    corpora: list[Corpus], rules: CleanConfig, held_out: HeldOut, ledger: Ledger, path: Path
) -> list[int]:
    """Write the pairs that stay, in order, and return the number of pairs read of each corpus."""
    seen: set[bytes] = set()
    num_read = [0] * len(corpora)
    bar = tqdm(desc="cleaning", unit=" pairs", unit_scale=True, disable=None)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink, bar:
        for index, corpus in enumerate(corpora):
            for raw in corpus.batches():
                batch, entries = clean(raw, rules)
                if not rules.keep_test_overlap:
                    batch, dropped = held_out.drop(batch)
                    entries += dropped
                if rules.dedup != "none":  # last: what goes otherwise is no original
                    batch, dropped = drop_duplicates(batch, seen, rules.dedup)
                    entries += dropped
                ledger.write(index, _one_a_line(entries))
                numbers = pa.array(np.full(batch.num_rows, index, np.int32))
                sink.write_batch(pa.record_batch([numbers, *batch.columns], schema=SCHEMA))
                num_read[index] += raw.num_rows
                bar.update(raw.num_rows)
    return num_read


def read_clean(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches of clean pairs; each is of one corpus."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            if batch.num_rows:
                yield batch


def sample_pairs(path: Path, size: int) -> tuple[list[str], list[str]]:
    """Return the two sides of a uniform sample of clean pairs, in their order."""
    num_rows = sum(batch.num_rows for batch in read_clean(path))
    is_drawn = np.zeros(num_rows, bool)
    is_drawn[np.random.default_rng(0).permutation(num_rows)[:size]] = True
    src: list[str] = []
    tgt: list[str] = []
    start = 0
    for batch in read_clean(path):
        rows = batch.filter(pa.array(is_drawn[start : start + batch.num_rows]))
        src += rows.column("src").to_pylist()
        tgt += rows.column("tgt").to_pylist()
        start += batch.num_rows
    return src, tgt


def _one_a_line(entries: list[Entry]) -> list[Entry]:
    """Return one entry a line, in order: of a pair that was dropped, nothing else needs telling."""
    by_line = {entry.line: entry for entry in entries if entry.action != "dropped"}
    by_line.update({entry.line: entry for entry in entries if entry.action == "dropped"})
    return [by_line[line] for line in sorted(by_line)]
