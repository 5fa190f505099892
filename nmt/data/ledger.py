"""The ledger: one row for each pair that was dropped or repaired, and the counts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Literal, NamedTuple

HEADER = "corpus\tline\taction\treason\n"

Action = Literal["dropped", "repaired", "trimmed"]


class Entry(NamedTuple):
    """What happened to a pair; line is 1-based."""

    line: int
    action: Action
    reason: str


class Ledger:
    """Writes entries as they come and counts them by corpus, action and reason.

    A corpus is given by its index among the names.
    """

    def __init__(self, stream: BinaryIO, names: Sequence[str]) -> None:
        self._stream = stream
        self._stream.write(HEADER.encode())
        self._names = names
        self._counts: Counter[tuple[int, Action, str]] = Counter()

    def write(self, corpus: int, entries: Iterable[Entry]) -> None:
        name = self._names[corpus]
        for line, action, reason in entries:
            self._counts[corpus, action, reason] += 1
            if action == "trimmed":  # blanks and line ends are only counted
                continue
            self._stream.write(f"{name}\t{line}\t{action}\t{reason}\n".encode())

    def counts(self, corpus: int, action: Action) -> dict[str, int]:
        """Return the counts by reason of one corpus, most frequent first."""
        return {
            reason: count
            for (index, did, reason), count in self._counts.most_common()
            if index == corpus and did == action
        }
