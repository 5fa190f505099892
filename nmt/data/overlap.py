"""Keeps dev and test sentences out of the training data, and counts those that are left in."""

from collections.abc import Iterable

import pyarrow as pa

from nmt.data.entities import unescape
from nmt.data.filters import sides
from nmt.lines import normalise


def fold(text: str) -> str:
    """Return the text by which sentences are compared: entities, case and blanks folded."""
    return normalise(unescape(text)).casefold()


class HeldOut:
    """The folded sentences of all dev and test sets, by side."""

    def __init__(self) -> None:
        self._sets: dict[str, tuple[list[str], list[str]]] = {}
        self._all: tuple[set[str], set[str]] = (set(), set())
        self._seen: tuple[set[str], set[str]] = (set(), set())

    def add(self, name: str, src: Iterable[str], tgt: Iterable[str]) -> None:
        """Add a set; blank sentences are nothing that could be known beforehand."""
        sides = ([fold(text) for text in src], [fold(text) for text in tgt])
        self._sets[name] = sides
        for known, sentences in zip(self._all, sides, strict=True):
            known.update(filter(None, sentences))

    def find(self, batch: pa.RecordBatch) -> list[tuple[str | None, str | None]]:
        """Return for each clean pair its folded sides, each where it is a held-out sentence."""
        src_known, tgt_known = self._all
        return [
            (src if src in src_known else None, tgt if tgt in tgt_known else None)
            for src, tgt in zip(*(map(_fold_clean, texts) for texts in sides(batch)), strict=True)
        ]

    def see(self, batch: pa.RecordBatch) -> None:
        """Take note of the held-out sides, known_src and known_tgt, that training pairs hold."""
        for seen, name in zip(self._seen, ("known_src", "known_tgt"), strict=True):
            seen.update(batch.column(name).drop_null().to_pylist())

    def overlap(self) -> dict[str, int]:
        """Return for each set how many of its pairs have a side that training pairs hold."""
        return {
            name: sum(
                src in self._seen[0] or tgt in self._seen[1]
                for src, tgt in zip(*sides, strict=True)
            )
            for name, sides in self._sets.items()
        }


def _fold_clean(text: str) -> str:
    """Fold a text that is normalised already: quickly, unless entities may stand in it."""
    return fold(text) if "&" in text else text.casefold()
