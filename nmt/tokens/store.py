"""The token store: Arrow files of ids, memory-mapped, read without a Python object per sentence."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.shards import Ints
from nmt.errors import UserError
from nmt.lines import write_whole

ROWS_PER_CHUNK = 65_536
SCHEMA = pa.schema(
    [
        ("src", pa.list_(pa.int32())),
        ("tgt", pa.list_(pa.int32())),
        ("corpus", pa.int32()),
        ("line", pa.int64()),
    ]
)


class _Chunk(NamedTuple):
    offsets: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]


class TokenStore:
    """The training pairs as ids; both sides end with the stop token."""

    def __init__(self, path: Path) -> None:
        try:
            self._table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise UserError(f"{path}: cannot read the token store ({error}).") from None
        if self._table.schema != SCHEMA:
            raise UserError(f"{path}: this is not a token store of nmt; run nmt prepare again.")
        self._chunks = {side: _chunks(self._table[side]) for side in ("src", "tgt")}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def lengths(self, side: str) -> Ints:
        """Return the number of ids of each row, stop token counted, shape (rows,)."""
        parts = [np.diff(chunk.offsets).astype(np.int64) for chunk in self._chunks[side]]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def corpora(self) -> Ints:
        """Return for each row the index of its corpus in data.train."""
        return np.asarray(self._table["corpus"].to_numpy(), np.int64)

    def origin(self, row: int) -> tuple[int, int]:
        """Return (index of the corpus, 1-based line) of a row."""
        return self._table["corpus"][row].as_py(), self._table["line"][row].as_py()

    def lists(self, side: str, rows: Ints) -> list[list[int]]:
        """Return the ids of the rows, one list each."""
        found: list[list[int]] = []
        for row in rows.tolist():
            chunk, place = self._chunks[side][row // ROWS_PER_CHUNK], row % ROWS_PER_CHUNK
            start, end = chunk.offsets[place : place + 2]
            found.append(chunk.values[start:end].tolist())
        return found

    def gather(self, side: str, rows: Ints, fill: int) -> Ints:
        """Return the ids of the rows, filled up to the longest, shape (rows, longest).

        `[[5, 2], [7, 8, 2]]` with fill 3 is `[[5, 2, 3], [7, 8, 2]]`.
        """
        chunk_of = rows // ROWS_PER_CHUNK
        parts = [(chunk_of == index, self._chunks[side][index]) for index in np.unique(chunk_of)]
        starts, lengths = np.zeros_like(rows), np.zeros_like(rows)
        for here, chunk in parts:
            local = rows[here] % ROWS_PER_CHUNK
            starts[here] = chunk.offsets[local]
            lengths[here] = chunk.offsets[local + 1] - chunk.offsets[local]
        columns = np.arange(lengths.max())
        is_real = columns < lengths[:, None]
        ids = np.full(is_real.shape, fill, np.int64)
        for here, chunk in parts:
            places = (starts[:, None] + columns)[is_real & here[:, None]]
            ids[is_real & here[:, None]] = chunk.values[places]
        return ids


@contextmanager
def write_store(path: Path) -> Iterator["StoreWriter"]:
    """Write a store that appears under `path` only when the block ends well."""
    with write_whole(path) as stream, pa.ipc.new_file(stream, SCHEMA) as sink:
        writer = StoreWriter(sink)
        yield writer
        writer.finish()


class StoreWriter:
    """Takes rows in any portion and writes chunks of ROWS_PER_CHUNK."""

    def __init__(self, sink: pa.ipc.RecordBatchFileWriter) -> None:
        self._sink = sink
        self._pending: list[pa.RecordBatch] = []
        self._num_pending = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch of SCHEMA."""
        self._pending.append(batch)
        self._num_pending += batch.num_rows
        while self._num_pending >= ROWS_PER_CHUNK:
            self._flush(ROWS_PER_CHUNK)

    def finish(self) -> None:
        if self._num_pending:
            self._flush(self._num_pending)

    def _flush(self, num_rows: int) -> None:
        whole = pa.concat_batches(self._pending)
        self._sink.write_batch(pa.concat_batches([whole.slice(0, num_rows)]))
        self._pending = [whole.slice(num_rows)]
        self._num_pending -= num_rows


def make_rows(
    src: Sequence[Sequence[int]] | pa.Array,
    tgt: Sequence[Sequence[int]] | pa.Array,
    corpus: int,
    line: pa.Array,
) -> pa.RecordBatch:
    """Return rows of SCHEMA, all of one corpus, from lists of ids."""
    sides = [pa.array(ids, pa.list_(pa.int32())) for ids in (src, tgt)]
    numbers = pa.array(np.full(len(line), corpus, np.int32))
    return pa.record_batch([*sides, numbers, line], schema=SCHEMA)


def _chunks(column: pa.ChunkedArray) -> list[_Chunk]:
    """Return each chunk as arrays over the mapped file; nothing is copied."""
    return [
        _Chunk(chunk.offsets.to_numpy(), chunk.values.to_numpy(zero_copy_only=True))
        for chunk in column.chunks
    ]
