"""Turns the clean pairs of a shard into ids, and drops those of a length no training can use."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from nmt.config import CleanConfig
from nmt.data.dedup import read_unique
from nmt.data.filters import why_length
from nmt.data.shards import Ints
from nmt.tokens.vocab import Vocabs

# A row for each row of the shard, in order. What was dropped has no ids.
SCHEMA = pa.schema(
    [
        ("line", pa.int64()),
        ("src", pa.list_(pa.int32())),
        ("tgt", pa.list_(pa.int32())),
        ("known_src", pa.string()),
        ("known_tgt", pa.string()),
        ("action", pa.string()),
        ("reason", pa.string()),
    ]
)


def encode_shard(
    clean_file: Path, duplicates: Ints, vocabs: Vocabs, rules: CleanConfig, path: Path
) -> int:
    """Write the rows of SCHEMA for a cleaned shard, and return their number.

    `duplicates` are rows of the shard, counted from 0.
    """
    num_rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink:
        for batch in read_unique(clean_file, duplicates):
            sink.write_batch(encode(batch, vocabs, rules))
            num_rows += batch.num_rows
    return num_rows


def encode(batch: pa.RecordBatch, vocabs: Vocabs, rules: CleanConfig) -> pa.RecordBatch:
    """Return the rows of SCHEMA for clean rows; a pure function of the batch."""
    rows = np.flatnonzero(batch.column("src").is_valid().to_numpy(zero_copy_only=False))
    left = batch.take(pa.array(rows))
    src_ids = vocabs.src.encode(left.column("src").to_pylist())
    tgt_ids = vocabs.tgt.encode(left.column("tgt").to_pylist())
    columns = {name: batch.column(name).to_pylist() for name in SCHEMA.names}
    for row, src, tgt in zip(rows.tolist(), src_ids, tgt_ids, strict=True):
        if reason := why_length(src, tgt, rules):
            for name in ("src", "tgt", "known_src", "known_tgt"):
                columns[name][row] = None
            columns["action"][row], columns["reason"][row] = "dropped", reason
        else:
            columns["src"][row], columns["tgt"][row] = src, tgt
    arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    return pa.record_batch(arrays, schema=SCHEMA)
