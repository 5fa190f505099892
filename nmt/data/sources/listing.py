"""nmt corpora NAME: all that is known of one corpus."""

from collections.abc import Iterator

from nmt.data.sources.catalogue import source_of
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
    yield f"pairs: {', '.join(entry.pairs)}, in either direction"
    yield f"licence: {entry.licence}"
    yield f"citation: {entry.citation}"
    yield f"source: {source_of(entry.origin)}"
    if isinstance(entry.origin, Hub):
        yield f"revision: {entry.origin.revision or 'that of the first fetch, which is recorded'}"
    if entry.size is not None:
        yield f"size: {entry.size / 1e6:,.1f} MB{f' ({entry.counted})' if entry.counted else ''}"
    yield f"splits{f' (numbers of pairs: {entry.counted})' if entry.counted else ''}:"
    for split in entry.splits:
        facts = [f"{split.num_pairs:,} pairs"] if split.num_pairs is not None else []
        if split.languages:
            facts.append(f"in {', '.join(split.languages)} alone")
        if isinstance(entry.origin, SacrebleuSets):
            facts.append("sacreBLEU's {} {}".format(*entry.origin.sets[split.name]))
        yield f"  {entry.name}/{split.name}: {', '.join(facts)}"
    if isinstance(entry.origin, Files):
        yield "SHA-256:"
        yield from (f"  {sha256}  {file}" for file, sha256 in entry.origin.sha256.items())
    elif isinstance(entry.origin, TarMembers | ZippedTsv):
        yield "SHA-256: that of the first fetch, which is recorded"
