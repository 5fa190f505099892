"""Shards cover each corpus once, in order, whatever their number."""

from functools import partial
from pathlib import Path

import pytest

from nmt.data import shards
from nmt.data.shards import Shard, cut, write_corpus
from nmt.data.sources.corpora import Corpus, _batches


def numbered(count: int) -> Corpus:
    rows = [(line, f"s{line}", f"t{line}") for line in range(1, count + 1)]
    return Corpus("numbered", 1.0, (), "", partial(_batches, partial(iter, rows)))


@pytest.mark.parametrize("rows_per_shard", [1, 3, 7, 10, 24, 25, 1000])
def test_every_row_is_in_one_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_shard: int
) -> None:
    monkeypatch.setattr(shards, "ROWS_PER_BATCH", 4)
    files = [tmp_path / "one", tmp_path / "two"]
    counts = [25, 3]
    for file, count in zip(files, counts, strict=True):
        assert write_corpus(numbered(count), file) == count
    parts = cut(files, counts, rows_per_shard)
    assert max(part.last - part.first for part in parts) <= rows_per_shard
    lines = [
        (part.corpus, line)
        for part in parts
        for batch in part.batches()
        for line in batch.column("line").to_pylist()
    ]
    assert lines == [(0, line) for line in range(1, 26)] + [(1, line) for line in range(1, 4)]


def test_an_empty_corpus_is_one_empty_shard(tmp_path: Path) -> None:
    assert write_corpus(numbered(0), tmp_path / "none") == 0
    [part] = cut([tmp_path / "none"], [0], 10)
    assert part == Shard(0, tmp_path / "none", 0, 0)
    assert list(part.batches()) == []
