"""Finds runs of rows whose translation stands some rows off, by lengths, numbers and end marks."""

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

OFFSETS = (-2, -1, 0, 1, 2)
_ALIGNED = OFFSETS.index(0)
_MARGIN = max(OFFSETS)

_SIDE = [("length", np.uint8), ("numbers", np.uint16), ("end", np.uint8)]
ROW = np.dtype([("src", _SIDE), ("tgt", _SIDE)])
"""What is kept of a row: 8 bytes, however long its text."""

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.void]
_Categories = dict[str, npt.NDArray[np.intp]]

# Rows of one block are taken to have one offset, until the ends of a run are found to the row.
_BLOCK = 8
_ROWS_AT_ONCE = 8_192 * _BLOCK
# In nats: a change of offset must make the rows this much likelier. Half of it finds no run in any
# aligned corpus that we tried.
_CHANGE = 12.0
_MAX_EVIDENCE = 4.0
# What a row pays for standing off its place, so that neighbours that say nearly the same do not
# drift into a run by chance: a share of what its evidence varies by, a tenth of what it would gain.
_OFF = 0.05

_DIGITS = re.compile(r"\d+")
_ENDS = (".。।", "?？؟", "!！", ":：")
_CLOSING = "\"'»«”“„’)）」』 \t\r\n"

# Categories of a source and a target, from like to unlike; the bounds are of differences of roots.
_LENGTH_BOUNDS = np.array([0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 20])
_NUM_CATEGORIES = {"length": len(_LENGTH_BOUNDS) + 1, "numbers": 3, "end": 3}


class _Evidence(NamedTuple):
    scale: float
    """Root of a target's length over that of its source."""
    weights: dict[str, Floats]
    """By cue: the nats by which a category is likelier of a pair than by chance."""
    penalty: float


class Run(NamedTuple):
    """Rows first to last, counted from 0, whose target stands `offset` rows further down."""

    first: int
    last: int
    offset: int


def features(batch: pa.RecordBatch) -> Rows:
    """Return what `misaligned` needs of each row, an array of ROW."""
    rows = np.zeros(batch.num_rows, ROW)
    for side in ("src", "tgt"):
        texts = pc.fill_null(batch.column(side), "")
        rows[side]["length"] = _root(pc.utf8_length(texts).to_numpy())
        has_digits = pc.match_substring_regex(texts, r"\p{Nd}").to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(has_digits):
            rows[side]["numbers"][row] = _number_hash(texts[row].as_py())
        rows[side]["end"] = _ends(texts)
    return rows


def misaligned(rows: Rows) -> list[Run]:
    """Return the runs of rows that another offset explains clearly better, in order.

    How much lengths, numbers and end marks tell is learned from the rows themselves.
    """
    if len(rows) <= 2 * _MARGIN:
        return []
    evidence = _learn(rows)
    blocks = [
        np.add.reduceat(scores, range(0, len(scores), _BLOCK)) for scores in _score(rows, evidence)
    ]
    return list(_runs(rows, evidence, _best_path(np.concatenate(blocks))))


def _root(num_chars: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return 4 times the square root: then lengths differ about as much in short as in long rows.

    The variance of a translation's length grows with the length (Gale and Church 1993, 3.1).
    """
    return np.minimum(np.rint(4 * np.sqrt(num_chars)), 255).astype(np.uint8)


def _number_hash(text: str) -> int:
    """Return a hash of the digit groups in any order; 0 where there are none.

    Groups, as 1,000.5 is 1.000,5 elsewhere.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    groups = sorted(_DIGITS.findall(text))
    return zlib.crc32(" ".join(groups).encode()) % 0xFFFF + 1 if groups else 0


def _ends(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the kind of mark that ends each text: its place in _ENDS from 1, 0 for others."""
    kinds = np.array([kind for kind, marks in enumerate(_ENDS, start=1) for _ in marks])
    last = pc.utf8_slice_codeunits(pc.utf8_rtrim(texts, _CLOSING), -1, None)
    found = pc.index_in(last, value_set=pa.array(list("".join(_ENDS)))).fill_null(-1).to_numpy()
    return np.append(kinds, 0)[found].astype(np.uint8)


def _compare(src: Rows, tgt: Rows, scale: float) -> _Categories:
    is_same_number = src["numbers"] == tgt["numbers"]
    is_same_end = src["end"] == tgt["end"]
    return {
        "length": np.searchsorted(_LENGTH_BOUNDS, np.abs(tgt["length"] - scale * src["length"])),
        "numbers": np.where(is_same_number, src["numbers"] == 0, 2),
        "end": np.where(is_same_end, src["end"] <= 1, 2),
    }


def _categories(rows: Rows, scale: float) -> Iterator[list[_Categories]]:
    """Yield for each stretch of rows, by offset, the categories of its rows.

    Where the target would lie beyond the ends, they are those of the row's own target.
    """
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        here = np.arange(start, min(start + _ROWS_AT_ONCE, len(rows)))
        there = [here + offset for offset in OFFSETS]
        places = [np.where((row < 0) | (row >= len(rows)), here, row) for row in there]
        yield [_compare(rows["src"][here], rows["tgt"][place], scale) for place in places]


def _learn(rows: Rows) -> _Evidence:
    """Return what the categories tell: of pairs, where a cue agrees most; by chance, least."""
    scale = float(rows["tgt"]["length"].sum() / max(1, rows["src"]["length"].sum()))
    counts = {cue: np.ones((len(OFFSETS), number)) for cue, number in _NUM_CATEGORIES.items()}
    for by_offset in _categories(rows, scale):
        for offset, found in enumerate(by_offset):
            for cue, categories in found.items():
                counts[cue][offset] += np.bincount(categories, minlength=_NUM_CATEGORIES[cue])
    weights, variance = {}, 0.0
    for cue, count in counts.items():
        shares = count / count.sum(axis=1, keepdims=True)
        unlike = shares @ np.arange(count.shape[1])
        pair, chance = shares[unlike.argmin()], shares[unlike.argmax()]
        weight = np.clip(np.log(pair / chance), -_MAX_EVIDENCE, _MAX_EVIDENCE)
        variance += sum(share @ weight**2 - (share @ weight) ** 2 for share in (pair, chance))
        weights[cue] = weight
    # The second part is for what the weights learn from chance, about two nats a category.
    penalty = _OFF * variance + 2 * sum(_NUM_CATEGORIES.values()) / len(rows)
    return _Evidence(scale, weights, penalty)


def _score(rows: Rows, evidence: _Evidence) -> Iterator[Floats]:
    """Yield for each stretch of rows the evidence for each offset, shape (rows, offsets)."""
    for by_offset in _categories(rows, evidence.scale):
        scores = np.zeros((len(by_offset[0]["length"]), len(OFFSETS)))
        for offset, found in enumerate(by_offset):
            for cue, weight in evidence.weights.items():
                scores[:, offset] += weight[found[cue]]
            if offset != _ALIGNED:
                scores[:, offset] -= evidence.penalty
        yield scores


def _best_path(blocks: Floats) -> list[int]:
    """Return the offset (its index) of each block: the most evidence, less _CHANGE a change.

    The recursion of Viterbi with one cost for all changes; it begins aligned.
    """
    indices = range(len(OFFSETS))
    totals = [0.0 if index == _ALIGNED else -_CHANGE for index in indices]
    origins = []
    for scores in blocks.tolist():
        best = max(indices, key=totals.__getitem__)
        jump = totals[best] - _CHANGE
        origins.append([index if totals[index] >= jump else best for index in indices])
        totals = [max(total, jump) + score for total, score in zip(totals, scores, strict=True)]
    path = [max(indices, key=totals.__getitem__)]
    for origin in reversed(origins[1:]):
        path.append(origin[path[-1]])
    return path[::-1]


def _runs(rows: Rows, evidence: _Evidence, path: list[int]) -> Iterator[Run]:
    changes = [block for block in range(1, len(path)) if path[block] != path[block - 1]]
    edges = [_edge(rows, evidence, block, (path[block - 1], path[block])) for block in changes]
    for block, first, end in zip([0, *changes], [0, *edges], [*edges, len(rows)], strict=True):
        if path[block] != _ALIGNED:
            yield Run(first, end - 1, OFFSETS[path[block]])


def _edge(rows: Rows, evidence: _Evidence, block: int, change: tuple[int, int]) -> int:
    """Return the row from which on the second offset of a change tells more than the first.

    It lies less than a block from the first row of `block`.
    """
    start = max(0, (block - 1) * _BLOCK - _MARGIN)
    near = rows[start : (block + 1) * _BLOCK + _MARGIN]
    scores = np.concatenate(list(_score(near, evidence)))
    before, after = change
    first = (block - 1) * _BLOCK - start
    gains = scores[first : first + 2 * _BLOCK, before] - scores[first : first + 2 * _BLOCK, after]
    return start + first + int(np.argmax(np.cumsum([0.0, *gains])))
