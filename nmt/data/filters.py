"""What cleaning drops and repairs, as functions of Arrow batches."""

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from nmt.config import CleanConfig
from nmt.data.ledger import Entry
from nmt.lines import normalise, repair


def clean(batch: pa.RecordBatch, rules: CleanConfig) -> tuple[pa.RecordBatch, list[Entry]]:
    """Return the normalised pairs that stay, and an entry for each that went or was repaired.

    A batch has the columns line, src, tgt. What is judged here needs one pair alone and no
    vocabulary: empty sides and copies.
    """
    kept: list[tuple[int, str, str]] = []
    entries: list[Entry] = []
    columns = (batch.column(name).to_pylist() for name in ("line", "src", "tgt"))
    for line, raw_src, raw_tgt in zip(*columns, strict=True):
        src, tgt = normalise(raw_src or ""), normalise(raw_tgt or "")
        reason = _why_dropped(src, tgt, rules)
        if reason:
            entries.append(Entry(line, "dropped", reason))
            continue
        kept.append((line, src, tgt))
        repaired = [
            side for side, raw in (("source", raw_src), ("target", raw_tgt)) if repair(raw) != raw
        ]
        if repaired:
            entries.append(Entry(line, "repaired", " and ".join(repaired)))
        elif (src, tgt) != (raw_src, raw_tgt):
            entries.append(Entry(line, "trimmed", "blanks or line ends"))
    return _batch(kept, batch.schema), entries


def drop_duplicates(
    batch: pa.RecordBatch, seen: set[bytes], key: str
) -> tuple[pa.RecordBatch, list[Entry]]:
    """Drop pairs whose key (pair, source or target) is in `seen`, and add the others to it."""
    reasons = []
    for src, tgt in zip(*sides(batch), strict=True):
        text = {"pair": f"{src}\n{tgt}", "source": src, "target": tgt}[key]
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        reasons.append("duplicate" if digest in seen else "")
        seen.add(digest)
    return keep_rows(batch, reasons)


def why_length(src_ids: Sequence[int], tgt_ids: Sequence[int], rules: CleanConfig) -> str:
    """Return "too long", "length ratio" or ""; the stop token that ends the ids is not counted."""
    shorter, longer = sorted((len(src_ids) - 1, len(tgt_ids) - 1))
    if longer > rules.max_tokens:
        return "too long"
    return "length ratio" if longer > rules.max_ratio * shorter else ""


def keep_rows(batch: pa.RecordBatch, reasons: Sequence[str]) -> tuple[pa.RecordBatch, list[Entry]]:
    """Return the rows without a reason to drop them, and an entry for each of the others."""
    lines = batch.column("line").to_pylist()
    dropped = [
        Entry(line, "dropped", reason)
        for line, reason in zip(lines, reasons, strict=True)
        if reason
    ]
    return batch.filter(pa.array([not reason for reason in reasons], pa.bool_())), dropped


def sides(batch: pa.RecordBatch) -> tuple[list[str], list[str]]:
    """Return the source and the target column."""
    return batch.column("src").to_pylist(), batch.column("tgt").to_pylist()


def _why_dropped(src: str, tgt: str, rules: CleanConfig) -> str:
    if not src:
        return "empty source"
    if not tgt:
        return "empty target"
    return "copy" if rules.drop_copies and src == tgt else ""


def _batch(rows: list[tuple[int, str, str]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.record_batch([pa.array(column) for column in columns], schema=schema)
