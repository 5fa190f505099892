"""Joins encoded shards into the token store, and tells the ledger what happened to each row."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from nmt.data.ledger import Entry, Ledger
from nmt.data.overlap import HeldOut
from nmt.data.shards import read_batches
from nmt.tokens.store import StoreWriter, make_rows


def join(
    files: Iterable[tuple[int, Path]], store: StoreWriter, ledger: Ledger, held_out: HeldOut
) -> None:
    """Add shards, each with the index of its corpus, in order."""
    for corpus, file in files:
        for batch in read_batches(file):
            stays = batch.filter(batch.column("src").is_valid())
            sides = (stays.column("src"), stays.column("tgt"))
            store.write(make_rows(*sides, corpus, stays.column("line")))
            held_out.see(stays)
            ledger.write(corpus, entries_of(batch))


def entries_of(batch: pa.RecordBatch) -> Iterator[Entry]:
    """Yield the entries of rows that have something to tell."""
    told = batch.filter(pc.not_equal(batch.column("action"), ""))
    columns = (told.column(name).to_pylist() for name in ("line", "action", "reason"))
    return map(Entry, *columns)
