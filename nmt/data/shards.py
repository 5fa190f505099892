"""Corpora as one Arrow file each, and the ranges of rows that tasks share out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.sources.corpora import SCHEMA, Corpus

ROWS_PER_BATCH = 10_000

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Rows first to last (excluded) of the file of a corpus; shards of a corpus lie in order."""

    corpus: int
    file: Path
    first: int
    last: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the shard, memory-mapped."""
        with pa.memory_map(str(self.file)) as source:
            reader = pa.ipc.open_file(source)
            start = self.first // ROWS_PER_BATCH
            for index in range(start, reader.num_record_batches):
                offset = index * ROWS_PER_BATCH
                if offset >= self.last:
                    return
                batch = reader.get_batch(index)
                begin = max(0, self.first - offset)
                yield batch.slice(begin, min(self.last - offset, batch.num_rows) - begin)


def write_corpus(corpus: Corpus, path: Path) -> int:
    """Write a corpus as batches of ROWS_PER_BATCH rows, text as it came, and count the rows."""
    num_rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink:
        for batch in corpus.batches(ROWS_PER_BATCH):
            assert num_rows % ROWS_PER_BATCH == 0, "only the last batch may be short"
            sink.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def cut(files: Sequence[Path], num_rows: Sequence[int], rows_per_shard: int) -> list[Shard]:
    """Cut each corpus into contiguous shards of about equal size, at least one a corpus.

    `cut([file], [25], 10)` gives rows 0 to 9, 9 to 17 and 17 to 25.
    """
    shards = []
    for corpus, (file, rows) in enumerate(zip(files, num_rows, strict=True)):
        count = max(1, -(-rows // rows_per_shard))
        borders = [-(-rows * part // count) for part in range(count + 1)]
        pairs = zip(borders, borders[1:], strict=False)
        shards += [Shard(corpus, file, first, last) for first, last in pairs]
    return shards


def read_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow file, memory-mapped."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
