"""What the catalogue says of a corpus, and the kinds of place that one comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hub:
    """Parquet files of a Hugging Face hub repository; an empty revision is its main branch."""

    repo: str
    revision: str = ""


@dataclass(frozen=True)
class Files:
    """One file a side, each under its own URL; `sha256` by file name, where a source states it."""

    file: str
    url: str
    sha256: Mapping[str, str]


@dataclass(frozen=True)
class TarMembers:
    """One member a side of a tar archive."""

    file: str
    url: str
    members: Mapping[str, str]
    """The member of a split, with a place for the code of the language."""
    codes: Mapping[str, str]


@dataclass(frozen=True)
class SacrebleuSets:
    """Test sets of sacreBLEU: its name of the set and the pair, by split."""

    file: str
    sets: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class ZippedTsv:
    """A zip archive a pair, with one TSV member: English, the other language, attribution.

    Its splits are cut from the one member, see `nmt.data.sources.origins.split_of`.
    """

    url: str
    files: Mapping[str, tuple[str, str]]
    """Archive and member, by pair."""


@dataclass(frozen=True)
class Generated:
    """Sentences that our own code makes, `nmt.data.captions`."""


Origin = Hub | Files | TarMembers | SacrebleuSets | ZippedTsv | Generated


@dataclass(frozen=True)
class Split:
    """A part of a corpus."""

    name: str
    num_pairs: int | None = None
    """Where a source states it; of each pair of languages, unless `Entry.counted` says of which."""
    languages: tuple[str, ...] = ()
    """Where it has fewer languages than the corpus."""
    by_pair: Mapping[str, int] = field(default_factory=dict)
    """The number of each pair of languages, where they differ; the split has no other pair."""

    def count(self, pair: str) -> int | None:
        """Return how many pairs of sentences it has of a pair of languages, where that is known."""
        return self.by_pair[pair] if self.by_pair else self.num_pairs


@dataclass(frozen=True)
class Entry:
    """A corpus; its name is its folder in a mirror."""

    name: str
    title: str
    pairs: tuple[str, ...]
    splits: tuple[Split, ...]
    licence: str
    citation: str
    origin: Origin
    size: int | None = None
    """Bytes to fetch, about, where known."""
    counted: str = ""
    """What `size` and each `num_pairs` hold for, where not for every copy and pair."""

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({language for pair in self.pairs for language in pair.split("-")}))

    def pairs_in(self, split: Split) -> tuple[str, ...]:
        """Return the pairs that a split has."""
        if split.by_pair:
            return tuple(split.by_pair)
        spoken = set(split.languages or self.languages)
        return tuple(pair for pair in self.pairs if set(pair.split("-")) <= spoken)
