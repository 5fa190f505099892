"""The token store against plain lists, across chunk borders, and what is refused."""

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from nmt.errors import UserError
from nmt.tokens import store as store_module
from nmt.tokens.store import TokenStore, make_rows, write_store

CHUNK = 7
PAD = 3
SIDES = ("src", "tgt")


class Row(NamedTuple):
    src: list[int]
    tgt: list[int]
    corpus: int
    line: int


def random_rows(num: int) -> list[Row]:
    rng = random.Random(num)

    def ids() -> list[int]:
        return [*(rng.randrange(4, 30_000) for _ in range(rng.randint(0, 12))), 2]

    return [Row(ids(), ids(), rng.randrange(3), rng.randrange(1, 1 << 40)) for _ in range(num)]


def as_batch(rows: list[Row]) -> pa.RecordBatch:
    corpora = pa.array([row.corpus for row in rows], pa.int32())
    lines = pa.array([row.line for row in rows], pa.int64())
    return make_rows([row.src for row in rows], [row.tgt for row in rows], corpora, lines)


def write(path: Path, rows: list[Row], portions: list[int]) -> TokenStore:
    """Write rows in portions of these sizes, which are used in turn, and open the store."""
    with write_store(path) as writer:
        start = 0
        while start < len(rows):
            for portion in portions:
                writer.write(as_batch(rows[start : start + portion]))
                start += portion
    return TokenStore(path)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_CHUNK", CHUNK)


def padded(rows: list[list[int]], fill: int) -> list[list[int]]:
    longest = max(len(row) for row in rows)
    return [row + [fill] * (longest - len(row)) for row in rows]


@pytest.mark.parametrize("num", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 40])
@pytest.mark.parametrize("portions", [[1], [CHUNK], [3, 5, 0, 11], [100]])
def test_what_was_written_comes_back(num: int, portions: list[int], tmp_path: Path) -> None:
    rows = random_rows(num)
    store = write(tmp_path / "train.arrow", rows, portions)
    assert len(store) == num
    assert [store.origin(index) for index in range(num)] == [(row.corpus, row.line) for row in rows]
    assert store.corpora().tolist() == [row.corpus for row in rows]
    for side in SIDES:
        ids = [getattr(row, side) for row in rows]
        assert store.lengths(side).tolist() == [len(row) for row in ids]
        assert store.gather(side, np.arange(num), PAD).tolist() == padded(ids, PAD)
        assert store.lists(side, np.arange(num)[::-1]) == ids[::-1]


@pytest.mark.parametrize("seed", range(20))
def test_gather_equals_its_twin_on_random_rows(seed: int, tmp_path: Path) -> None:
    rows = random_rows(40)
    store = write(tmp_path / "train.arrow", rows, [9])
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 40, size=int(rng.integers(1, 25)))
    for side in SIDES:
        ids = store.gather(side, chosen, fill=-1)
        assert ids.dtype == np.int64
        assert ids.tolist() == padded([getattr(rows[index], side) for index in chosen], -1)


def test_bytes_do_not_depend_on_the_portions(tmp_path: Path) -> None:
    rows = random_rows(40)
    write(tmp_path / "a", rows, [1])
    write(tmp_path / "b", rows, [100])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_ids_are_mapped_and_not_copied(tmp_path: Path) -> None:
    write(tmp_path / "train.arrow", random_rows(5000), [1000])
    before = pa.total_allocated_bytes()
    store = TokenStore(tmp_path / "train.arrow")
    assert len(store) == 5000
    assert pa.total_allocated_bytes() - before < (tmp_path / "train.arrow").stat().st_size / 10


def test_no_rows_make_an_empty_store(tmp_path: Path) -> None:
    store = write(tmp_path / "train.arrow", [], [1])
    assert len(store) == 0
    assert store.lengths("src").tolist() == []
    assert store.corpora().tolist() == []


def test_a_store_that_failed_half_way_never_appears(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    with pytest.raises(KeyboardInterrupt), write_store(path) as writer:
        writer.write(as_batch(random_rows(20)))
        assert not path.exists()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_store(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    write(path, random_rows(10), [10])
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt), write_store(path) as writer:
        writer.write(as_batch(random_rows(20)))
        raise KeyboardInterrupt
    assert path.read_bytes() == before


def test_rows_of_another_shape_are_refused_when_made() -> None:
    with pytest.raises((TypeError, ValueError)):
        make_rows([[5, 2]], [[6, 2], [7, 2]], pa.array([0], pa.int32()), pa.array([1], pa.int64()))


@pytest.mark.parametrize("raw", [b"", b"hello\n" * 50, b"ARROW1\x00\x00"])
def test_a_file_that_is_no_store_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"train\.arrow: cannot read the token store"):
        TokenStore(path)


def test_a_store_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    write(path, random_rows(40), [10])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"train\.arrow: cannot read the token store"):
        TokenStore(path)


def test_a_missing_store_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.arrow", tmp_path):
        with pytest.raises(UserError, match="cannot read the token store"):
            TokenStore(path)


def test_an_arrow_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.arrow"
    other = pa.record_batch([pa.array(["a"])], names=["text"])
    with pa.ipc.new_file(str(path), other.schema) as sink:
        sink.write_batch(other)
    with pytest.raises(UserError, match=r"train\.arrow: "):
        TokenStore(path)
