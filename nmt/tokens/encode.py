"""Turns clean pairs into the token store, and drops those of a length that training cannot use."""

from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from nmt.config import CleanConfig
from nmt.data.cleaning import read_clean
from nmt.data.filters import keep_rows, why_length
from nmt.data.ledger import Entry, Ledger
from nmt.data.overlap import HeldOut
from nmt.tokens.store import make_rows, write_store
from nmt.tokens.vocab import Vocabs


def encode(
    batch: pa.RecordBatch, vocabs: Vocabs, rules: CleanConfig
) -> tuple[pa.RecordBatch, pa.RecordBatch, list[Entry]]:
    """Return the ids of the pairs that stay, their text, and an entry for each of the others."""
    src = vocabs.src.encode(batch.column("src").to_pylist())
    tgt = vocabs.tgt.encode(batch.column("tgt").to_pylist())
    reasons = [why_length(*ids, rules) for ids in zip(src, tgt, strict=True)]
    text, dropped = keep_rows(batch, reasons)
    stays = [not reason for reason in reasons]
    rows = make_rows(
        [ids for ids, keep in zip(src, stays, strict=True) if keep],
        [ids for ids, keep in zip(tgt, stays, strict=True) if keep],
        text.column("corpus"),
        text.column("line"),
    )
    return rows, text, dropped


def encode_pairs(
    clean_file: Path,
    store_file: Path,
    vocabs: Vocabs,
    *,
    rules: CleanConfig,
    held_out: HeldOut,
    ledger: Ledger,
) -> None:
    """Write the token store; what stays and what goes is told to held_out and the ledger."""
    bar = tqdm(desc="encoding", unit=" pairs", unit_scale=True, disable=None)
    with write_store(store_file) as store, bar:
        for batch in read_clean(clean_file):
            rows, text, dropped = encode(batch, vocabs, rules)
            store.write(rows)
            held_out.see(text)
            ledger.write(batch.column("corpus")[0].as_py(), dropped)
            bar.update(batch.num_rows)
