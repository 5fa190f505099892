"""nmt data report and nmt data explain: what preparation did to the corpora, and to one line."""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nmt.data.examples import read_examples, read_ledger
from nmt.data.shards import Ints
from nmt.errors import UserError
from nmt.prepare import Statistics
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import PAD, Vocab, load_vocabs

_NUM_BARS = 12
_BAR_WIDTH = 40


def report(run: RunFolder) -> Iterator[str]:
    """Yield counts by corpus and reason, each with examples, and how long the kept pairs are."""
    _check_prepared(run)
    examples = list(read_examples(run))
    for corpus in Statistics.load(run).corpora:
        yield f"{corpus['name']}: {corpus['pairs']:,} pairs, {corpus['kept']:,} kept"
        for action in ("dropped", "repaired", "trimmed"):
            for reason, count in corpus[action].items():
                yield f"  {action}, {reason}: {count:,}"
                for row, src, tgt in examples:
                    if (row.corpus, row.action, row.reason) == (corpus["name"], action, reason):
                        yield f"    line {row.line}: {src} ||| {tgt}"
        yield from (f"  ALARM: {alarm}" for alarm in corpus["alarms"])
    store = TokenStore(run.store)
    for side, name in (("src", "source"), ("tgt", "target")):
        yield ""
        yield from _histogram(name, store.lengths(side) - 1)


def explain(run: RunFolder, place: str) -> Iterator[str]:
    """Yield what happened to a training pair; a place is CORPUS:LINE, such as multi30k/train:17.

    Raises UserError where the place names no corpus of the run or no line.
    """
    _check_prepared(run)
    names = [corpus["name"] for corpus in Statistics.load(run).corpora]
    name, line = _parse(place, names)
    told = [entry for entry in read_ledger(run.ledger) if entry[:2] == (name, line)]
    for entry in told:
        yield f"{name}, line {line}: {entry.action}, {entry.reason}"
    store = TokenStore(run.store)
    # A corpus may be named twice in data.train.
    rows = [_find(store, index, line) for index, known in enumerate(names) if known == name]
    kept = [row for row in rows if row is not None]
    if not told and not kept:
        yield f"{name}, line {line}: the corpus has no such line."
    for row in kept:
        yield f"{name}, line {line}: kept, row {row} of the token store"
        for side, vocab in zip(("src", "tgt"), load_vocabs(run.load_config(), run), strict=True):
            yield from _describe(side, vocab, store.gather(side, np.array([row]), PAD)[0].tolist())


def _check_prepared(run: RunFolder) -> None:
    run.load_config()
    if not (run.data / "statistics.json").exists():
        raise UserError(f"{run.path}: is not prepared; run nmt prepare first.")


def _parse(place: str, names: list[str]) -> tuple[str, int]:
    """Return corpus and line; a corpus of two files may be called by either."""
    given, _, number = place.rpartition(":")
    if not number.isdecimal():
        raise UserError(f"{place}: expected CORPUS:LINE, such as {names[0]}:17.")
    calls = {
        name: {name, *name.split(" "), *(Path(file).name for file in name.split(" "))}
        for name in names
    }
    found = [name for name in calls if name == given] or [
        name for name, others in calls.items() if given in others
    ]
    if len(found) != 1:
        raise UserError(
            f"{place}: {given!r} names {len(found)} corpora of this run; expected one of: "
            f"{'; '.join(calls)}."
        )
    return found[0], int(number)


def _find(store: TokenStore, corpus: int, line: int) -> int | None:
    """Return the row of a line; rows are in the order of corpora and lines."""
    row = bisect_left(range(len(store)), (corpus, line), key=store.origin)
    return row if row < len(store) and store.origin(row) == (corpus, line) else None


def _describe(side: str, vocab: Vocab, ids: list[int]) -> Iterator[str]:
    yield f"  {side}: {vocab.decode([ids])[0]}"
    yield f"    pieces: {' '.join(vocab.pieces(ids))}"
    yield f"    ids: {' '.join(map(str, ids))}"


def _histogram(name: str, lengths: Ints) -> Iterator[str]:
    """Yield a bar for each range of lengths; the last one holds all that are longer."""
    yield (
        f"{name} length in tokens, without the stop token: median {np.median(lengths):.0f}, "
        f"mean {lengths.mean():.1f}, longest {lengths.max()}"
    )
    width = max(1, -(-int(np.quantile(lengths, 0.99)) // (_NUM_BARS - 1)))
    counts = np.bincount(np.minimum((lengths - 1) // width, _NUM_BARS - 1), minlength=_NUM_BARS)
    for number in range(int(np.flatnonzero(counts)[-1]) + 1):
        first, last = number * width + 1, (number + 1) * width
        label = str(first) if width == 1 else f"{first}-{last}"
        if number == _NUM_BARS - 1:
            label = f"{first}+"
        bar = "#" * -(-_BAR_WIDTH * int(counts[number]) // int(counts.max()))
        yield f"  {label:>9} {counts[number]:>10,} {bar}".rstrip()
