"""Says what looks wrong with a whole corpus: misaligned rows, swapped columns, wrong scripts."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nmt.data.alignment import ROW, Rows, features, misaligned
from nmt.data.filters import sides
from nmt.data.languages import Vote, foreign_script, vote
from nmt.data.scripts import SCRIPTS
from nmt.data.shards import Shard

# Languages show in a sample, which is chosen by line so that shards change nothing.
_LINES_READ_ALL = 10_000
_READ_EVERY = 16
# In good corpora that we tried, one pair in 1,000 seems swapped, and up to 4 rows in 100 are in
# another script: names and addresses.
_MIN_SHARE = 0.1
_MIN_ROWS = 3
_MAX_RUNS = 10


@dataclass(frozen=True)
class Summary:
    """What `alarms` needs to know of some rows of a corpus: 8 bytes a row, and counts."""

    stretches: list[tuple[int, Rows]] = field(default_factory=list)
    """The first of some lines that follow each other, and the features of their rows."""
    votes: Counter[Vote] = field(default_factory=Counter)
    src_scripts: Counter[str] = field(default_factory=Counter)
    """Rows by the script that their source should not be in; "" where nothing is wrong."""
    tgt_scripts: Counter[str] = field(default_factory=Counter)


def observe(batch: pa.RecordBatch, src_lang: str, tgt_lang: str) -> Summary:
    """Return the summary of raw rows: columns line (ascending), src, tgt."""
    lines = batch.column("line").to_numpy()
    summary = Summary(_cut_at_gaps(lines, features(batch)))
    is_read = (lines <= _LINES_READ_ALL) | (lines % _READ_EVERY == 0)
    read = batch.filter(pa.array(is_read))
    for src, tgt in zip(*sides(read), strict=True):
        if not src or not tgt:
            continue
        said = vote(src, tgt, src_lang, tgt_lang)
        summary.votes[said] += 1
        if said is not Vote.SWAPPED:  # then its scripts are explained
            summary.src_scripts[foreign_script(src, src_lang)] += 1
            summary.tgt_scripts[foreign_script(tgt, tgt_lang)] += 1
    return summary


def merge(summaries: Iterable[Summary]) -> Summary:
    """Return the summary of all rows; neither the order nor the cuts between them matter."""
    whole = Summary()
    for summary in summaries:
        whole.stretches.extend(summary.stretches)
        whole.votes.update(summary.votes)
        whole.src_scripts.update(summary.src_scripts)
        whole.tgt_scripts.update(summary.tgt_scripts)
    return whole


def alarms(summary: Summary, src_lang: str, tgt_lang: str) -> list[str]:
    """Return a sentence for each thing that looks wrong; none for a clean corpus."""
    num_rows = summary.votes.total()
    return [
        *_swapped(summary.votes, src_lang, tgt_lang),
        *_other_script("source", summary.src_scripts, num_rows, src_lang),
        *_other_script("target", summary.tgt_scripts, num_rows, tgt_lang),
        *_misaligned(summary.stretches),
    ]


def summarise_shard(shard: Shard, src_lang: str, tgt_lang: str, path: Path) -> int:
    """Write the summary of a shard for `read_summary`, and return its number of rows."""
    summary = merge(observe(batch, src_lang, tgt_lang) for batch in shard.batches())
    counts = {
        "votes": {said.value: count for said, count in summary.votes.items()},
        "src_scripts": summary.src_scripts,
        "tgt_scripts": summary.tgt_scripts,
    }
    rows = [rows for _, rows in summary.stretches]
    with path.open("wb") as file:
        np.savez(
            file,
            firsts=np.array([first for first, _ in summary.stretches], np.int64),
            lengths=np.array([len(part) for part in rows], np.int64),
            rows=np.concatenate([np.zeros(0, ROW), *rows]),
            counts=np.array(json.dumps(counts, sort_keys=True)),
        )
    return sum(map(len, rows))


def read_summary(path: Path) -> Summary:
    """Return what `summarise_shard` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        counts = json.loads(str(arrays["counts"]))
        rows = np.split(arrays["rows"], np.cumsum(arrays["lengths"]))[:-1]
        return Summary(
            list(zip(arrays["firsts"].tolist(), rows, strict=True)),
            Counter({Vote(said): count for said, count in counts["votes"].items()}),
            Counter(counts["src_scripts"]),
            Counter(counts["tgt_scripts"]),
        )


def _cut_at_gaps(lines: npt.NDArray[np.int64], rows: Rows) -> list[tuple[int, Rows]]:
    starts = np.flatnonzero(np.diff(lines, prepend=lines[:1]) != 1)
    parts = np.split(rows, starts)[1:]
    return list(zip(lines[starts].tolist(), parts, strict=True))


def _swapped(votes: Counter[Vote], src_lang: str, tgt_lang: str) -> Iterator[str]:
    num_swapped = votes[Vote.SWAPPED]
    num_told = num_swapped + votes[Vote.RIGHT]
    if num_swapped >= _MIN_ROWS and num_swapped >= _MIN_SHARE * num_told:
        yield (
            f"columns look swapped in {num_swapped / num_told:.1%} of the pairs that tell "
            f"({num_swapped:,} of {num_told:,}): source {src_lang} and target {tgt_lang} are "
            f"declared, but they read the other way round."
        )


def _other_script(side: str, scripts: Counter[str], num_rows: int, language: str) -> Iterator[str]:
    for script, count in scripts.most_common():
        if script and count >= _MIN_ROWS and count >= _MIN_SHARE * num_rows:
            yield (
                f"{side}: script {script}, expected {' or '.join(sorted(SCRIPTS[language]))}, in "
                f"{count / num_rows:.1%} of the rows ({count:,} of {num_rows:,})."
            )


def _misaligned(stretches: list[tuple[int, Rows]]) -> Iterator[str]:
    if not stretches:
        return
    stretches = sorted(stretches, key=lambda stretch: stretch[0])
    lines = np.array([line for line, _ in stretches])
    ends = np.cumsum([len(rows) for _, rows in stretches])

    def line_of(row: int) -> int:
        stretch = np.searchsorted(ends, row, side="right")
        return int(lines[stretch] + row - (ends[stretch] - len(stretches[stretch][1])))

    runs = misaligned(np.concatenate([rows for _, rows in stretches]))
    for first, last, offset in runs[:_MAX_RUNS]:
        yield (
            f"rows {line_of(first)}-{line_of(last)} look misaligned, offset {offset:+}: the target "
            f"of row k seems to stand in row k{offset:+}."
        )
    if len(runs) > _MAX_RUNS:
        num_rows = sum(run.last - run.first + 1 for run in runs[_MAX_RUNS:])
        yield f"{len(runs) - _MAX_RUNS:,} more runs look misaligned, of {num_rows:,} rows."
