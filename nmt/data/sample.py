"""A uniform sample of the clean pairs that does not depend on how they are cut into shards."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.shards import Ints

Hashes = npt.NDArray[np.uint64]


def sample_pairs(
    read: Callable[[], Iterator[pa.RecordBatch]], size: int
) -> tuple[list[str], list[str]]:
    """Return the two sides of the `size` pairs whose row number hashes lowest, in their order.

    `read` yields the rows of all shards, each time from the first; a dropped one has no text.
    """
    limit = _limit((_hash(rows) for rows, _ in _left(read())), size)
    src: list[str] = []
    tgt: list[str] = []
    for rows, batch in _left(read()):
        drawn = batch if limit is None else batch.filter(pa.array(_hash(rows) < limit))
        src += drawn.column("src").to_pylist()
        tgt += drawn.column("tgt").to_pylist()
    return src, tgt


def _limit(hashes: Iterator[Hashes], size: int) -> np.uint64 | None:
    """Return what `size` hashes lie below; None where there are no more than these."""
    lowest = np.zeros(0, np.uint64)
    for some in hashes:
        lowest = np.concatenate([lowest, some])
        if len(lowest) > size + 1:
            lowest = np.partition(lowest, size)[: size + 1]
    return lowest.max() if len(lowest) > size else None


def _left(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Ints, pa.RecordBatch]]:
    """Yield the pairs that are still there, with their row numbers."""
    first = 0
    for batch in batches:
        is_left = batch.column("src").is_valid().to_numpy(zero_copy_only=False)
        yield first + np.flatnonzero(is_left), batch.filter(pa.array(is_left))
        first += batch.num_rows


def _hash(rows: Ints) -> Hashes:
    """Return for each row a number that looks drawn at random: SplitMix64 (Steele 2014)."""
    x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
