"""Cleans a shard: every row is judged, and what stays is normalised and hashed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from nmt.config import CleanConfig
from nmt.data.filters import clean, sides
from nmt.data.ledger import Entry
from nmt.data.overlap import HeldOut
from nmt.data.shards import Shard

# A row for each row of the shard, in order. What was dropped has no text and no key.
SCHEMA = pa.schema(
    [
        ("line", pa.int64()),
        ("src", pa.string()),
        ("tgt", pa.string()),
        ("key", pa.binary(16)),  # equal for duplicates
        ("known_src", pa.string()),  # the folded side, where dev or test hold it
        ("known_tgt", pa.string()),
        ("action", pa.string()),  # as in the ledger; empty where nothing is to be told
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class Cleaner:
    """What cleaning goes by; it can be sent to another process."""

    rules: CleanConfig
    held_out: HeldOut
    src_lang: str
    tgt_lang: str


def clean_shard(shard: Shard, cleaner: Cleaner, path: Path) -> int:
    """Write the rows of SCHEMA and return their number."""
    num_rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink:
        for raw in shard.batches():
            sink.write_batch(judge(raw, cleaner))
            num_rows += raw.num_rows
    return num_rows


def judge(raw: pa.RecordBatch, cleaner: Cleaner) -> pa.RecordBatch:
    """Return the rows of SCHEMA for raw rows; a pure function of the batch."""
    rules, held_out = cleaner.rules, cleaner.held_out
    kept, entries = clean(raw, rules, cleaner.src_lang, cleaner.tgt_lang)
    known = dict(zip(kept.column("line").to_pylist(), held_out.find(kept), strict=True))
    known = {line: found for line, found in known.items() if any(found)}
    if not rules.keep_test_overlap:
        entries += [Entry(line, "dropped", "in dev or test") for line in known]
    told = _one_a_line(entries)
    rows = {
        line: (src, tgt, _key(src, tgt, rules.dedup), *known.get(line, (None, None)))
        for line, src, tgt in zip(kept.column("line").to_pylist(), *sides(kept), strict=True)
        if line not in told or told[line].action != "dropped"
    }
    nothing = (None,) * 5
    columns = [
        (line, *rows.get(line, nothing), *(told[line][1:] if line in told else ("", "")))
        for line in raw.column("line").to_pylist()
    ]
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*columns, strict=True), SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=SCHEMA)


def _one_a_line(entries: list[Entry]) -> dict[int, Entry]:
    """Return one entry a line: of a pair that was dropped, nothing else needs telling."""
    told = {entry.line: entry for entry in entries if entry.action != "dropped"}
    told.update((entry.line, entry) for entry in entries if entry.action == "dropped")
    return told


def _key(src: str, tgt: str, dedup: str) -> bytes | None:
    """Return what duplicates have in common: 128 bits of a hash of the pair or of a side."""
    if dedup == "none":
        return None
    text = {"pair": f"{src}\n{tgt}", "source": src, "target": tgt}[dedup]
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
