"""nmt corpora NAME: all that is known of one corpus."""

from collections.abc import Iterator, Sequence

from nmt.data.sources.catalogue import size_of, source_of
from nmt.data.sources.entries import Entry, Files, Hub, SacrebleuSets, TarMembers, ZippedTsv
from nmt.data.sources.names import find_entry
from nmt.data.sources.sacrebleu_sets import (
    citation_of,
    files_of,
    find_test_set,
    pairs_of,
    set_names,
)


def describe(name: str) -> Iterator[str]:
    """Yield the lines on a corpus of the catalogue, on `sacrebleu`, or on `sacrebleu/SET`.

    Raises UserError where there is no such corpus.
    """
    if name == "sacrebleu":
        yield "sacrebleu: test sets that sacreBLEU knows; nmt corpora sacrebleu/SET tells of one"
        yield from (f"  sacrebleu/{test_set}" for test_set in set_names())
    elif name.startswith("sacrebleu/"):
        yield from _test_set(find_test_set(name.removeprefix("sacrebleu/")))
    else:
        yield from _entry(find_entry(name))


def _test_set(test_set: str) -> Iterator[str]:
    yield f"sacrebleu/{test_set}"
    yield f"pairs: {', '.join(pairs_of(test_set))} (original first)"
    yield "licence: for research; its publisher says more"
    yield f"citation: {' '.join(citation_of(test_set).split())}"
    for url, md5 in files_of(test_set):
        yield f"source: {url}" + (f" (MD5 {md5})" if md5 else "")


def _entry(entry: Entry) -> Iterator[str]:
    yield f"{entry.name}: {entry.title}"
    yield f"licence: {entry.licence}"
    yield f"citation: {entry.citation}"
    yield f"source: {source_of(entry.origin)}"
    if isinstance(entry.origin, Hub):
        yield f"revision: {entry.origin.revision or 'that of the first fetch, which is recorded'}"
    if size := size_of(entry):
        yield f"size: {size}"
    if isinstance(entry.origin, Hub):
        yield from _splits_by_pair(entry)
    else:
        yield from _splits(entry)
    if isinstance(entry.origin, Files):
        yield "SHA-256:"
        yield from (f"  {sha256}  {file}" for file, sha256 in entry.origin.sha256.items())
    elif isinstance(entry.origin, TarMembers | ZippedTsv):
        yield "SHA-256: that of the first fetch, which is recorded"


def _splits(entry: Entry) -> Iterator[str]:
    yield f"pairs: {', '.join(entry.pairs)}, in either direction"
    yield f"splits{f' (numbers of pairs: {entry.counted})' if entry.counted else ''}:"
    for split in entry.splits:
        facts = [f"{split.num_pairs:,} pairs"] if split.num_pairs is not None else []
        if split.languages:
            facts.append(f"in {', '.join(split.languages)} alone")
        if isinstance(entry.origin, SacrebleuSets):
            facts.append("sacreBLEU's {} {}".format(*entry.origin.sets[split.name]))
        yield f"  {entry.name}/{split.name}: {', '.join(facts)}"


def _splits_by_pair(entry: Entry) -> Iterator[str]:
    """Yield a row for each pair of languages, with a dash for a split that it lacks."""
    yield f"numbers of pairs, either direction; one is named {entry.name}/PAIR/SPLIT:"
    yield _row("", [split.name for split in entry.splits])
    for pair in entry.pairs:
        counts = [
            f"{split.by_pair[pair]:,}" if pair in split.by_pair else "-" for split in entry.splits
        ]
        yield _row(pair, counts)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"  {name:5}" + "".join(f"{cell:>12}" for cell in cells)
