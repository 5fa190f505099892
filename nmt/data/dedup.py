"""Finds duplicates by their 128-bit keys, a bucket of keys at a time; the first row stays."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nmt.data.cleaning import SCHEMA
from nmt.data.shards import Ints, read_batches

_ROWS = pa.schema([("row", pa.int64())])

Keys = npt.NDArray[np.uint64]


def find_duplicates(files: Sequence[Path], bucket: int, num_buckets: int, path: Path) -> int:
    """Write the rows, counted over all files, whose key stands in an earlier row; return how many.

    Rows without a key were dropped before. Only the keys of the bucket are held in memory.
    """
    keys, rows = [np.zeros((0, 2), np.uint64)], [np.zeros(0, np.int64)]
    first = 0
    for batch in (batch for file in files for batch in read_batches(file)):
        places, found = _keys(batch.column("key"))
        is_here = found[:, 0] % num_buckets == bucket
        keys.append(found[is_here])
        rows.append(places[is_here] + first)
        first += batch.num_rows
    duplicates = _later_ones(np.concatenate(keys), np.concatenate(rows))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _ROWS) as sink:
        sink.write_batch(pa.record_batch([pa.array(duplicates)], schema=_ROWS))
    return len(duplicates)


def read_duplicates(files: Sequence[Path]) -> Ints:
    """Return the rows of all buckets, in order."""
    parts = [batch.column("row").to_numpy() for file in files for batch in read_batches(file)]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))


def read_unique(file: Path, duplicates: Ints, first: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a cleaned shard with duplicates marked as dropped.

    `first` is the number of the shard's first row as `duplicates` counts.
    """
    for batch in read_batches(file):
        is_duplicate = np.zeros(batch.num_rows, bool)
        lowest, end = np.searchsorted(duplicates, [first, first + batch.num_rows])
        is_duplicate[duplicates[lowest:end] - first] = True
        yield _mark(batch, pa.array(is_duplicate)) if is_duplicate.any() else batch
        first += batch.num_rows


def _mark(batch: pa.RecordBatch, is_duplicate: pa.Array) -> pa.RecordBatch:
    told = {"line": batch.column("line"), "action": "dropped", "reason": "duplicate"}
    columns = [
        pc.if_else(is_duplicate, told.get(field.name, pa.scalar(None, field.type)), column)
        for field, column in zip(SCHEMA, batch.columns, strict=True)
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def _keys(column: pa.Array) -> tuple[Ints, Keys]:
    """Return the places of the keys in a column, and each key as two numbers."""
    places = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.drop_null()
    if not len(values):
        return places, np.zeros((0, 2), np.uint64)
    data = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
    return places, data[values.offset : values.offset + len(values)]


def _later_ones(keys: Keys, rows: Ints) -> Ints:
    """Return the rows whose key an earlier row has."""
    order = np.lexsort((rows, keys[:, 1], keys[:, 0]))
    is_same = (keys[order][1:] == keys[order][:-1]).all(axis=1)
    return np.sort(rows[order][1:][is_same])
