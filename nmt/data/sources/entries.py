"""What the catalogue says of a corpus, and the kinds of place that one comes from."""

from collections.abc import Mapping
from dataclasses import dataclass


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
    """A part of a corpus; `num_pairs` where a source states it (for de-en where pairs differ)."""

    name: str
    num_pairs: int | None = None
    languages: tuple[str, ...] = ()
    """Where it has fewer languages than the corpus."""


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
    """Bytes to fetch, about, where known; of a hub set for de-en alone."""
    counted: str = ""
    """What the numbers of pairs hold for, where not for every copy and pair."""

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({language for pair in self.pairs for language in pair.split("-")}))
