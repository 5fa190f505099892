"""Gets the files of a catalogue corpus into the cache, a function for each kind of origin."""

import gzip
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from nmt.data.sources.archives import open_member
from nmt.data.sources.download import Expected, Sources, fetch, obtain
from nmt.data.sources.entries import Files, SacrebleuSets, TarMembers, ZippedTsv
from nmt.data.sources.names import Choice
from nmt.data.sources.sacrebleu_sets import write_side
from nmt.errors import UserError
from nmt.lines import decode_lines, write_whole

Row = tuple[int, str, str]
"""Line (from 1), source, target."""

# Of 1,000 parts; of the 169,813 English-German pairs of 2018, 1,491 and 1,551 fall in nine each.
_DEV_PARTS = 9
_TEST_PARTS = 9


def side_file(choice: Choice, language: str, sources: Sources) -> tuple[str, Path]:
    """Return the name and the cached file of one side of a corpus that has a file a side."""
    origin = choice.entry.origin
    assert isinstance(origin, Files | TarMembers | SacrebleuSets)
    file = origin.file.format(split=choice.split.name, language=language)
    expected = Expected(num_lines=choice.split.num_pairs)
    match origin:
        case Files():
            expected = replace(expected, sha256=origin.sha256[file])
            make = partial(fetch, sources, origin.url.format(file=file), expected=expected)
        case TarMembers():
            archive = sources.cache / choice.entry.name / Path(origin.url).name
            member = origin.members[choice.split.name].format(code=origin.codes[language])
            make = partial(_write_member, sources, origin.url, archive, member)
        case SacrebleuSets():
            test_set, pair = origin.sets[choice.split.name]
            make = partial(write_side, sources, test_set, pair, language, expected.num_lines)
    name = f"{choice.entry.name}/{file}"
    return name, obtain(sources, name, make, expected)


def tsv_archive(choice: Choice, sources: Sources) -> tuple[str, Path]:
    """Return the name and the cached archive of a pair."""
    origin = choice.entry.origin
    assert isinstance(origin, ZippedTsv)
    file, _ = origin.files[choice.pair]
    name = f"{choice.entry.name}/{file}"
    return name, obtain(sources, name, partial(fetch, sources, origin.url.format(file=file)))


def archive_rows(archive: Path, member: str, split: str) -> Iterator[Row]:
    """Yield the rows of one split of a zipped TSV; lines are those of the whole member."""
    with open_member(archive, member) as stream:
        name = f"{archive}#{member}"
        for row in tsv_rows(decode_lines(stream, name), name):
            if split_of(row[1]) == split:
                yield row


def tsv_rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    """Yield the first two columns of each line; further ones are ignored."""
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t", maxsplit=2)
        if len(columns) < 2:
            raise UserError(
                f"{name}, line {number}: has one column, expected source, TAB, target; "
                f"mend or delete the line."
            )
        yield number, columns[0], columns[1]


def split_of(sentence: str) -> str:
    """Return train, dev or test, the same for all spellings in case and blanks of a sentence.

    `split_of("Hi there.") == split_of("hi  there.")`: a sentence stands in many lines, which
    must not lie on both sides of a cut.
    """
    folded = " ".join(sentence.casefold().split())
    digest = hashlib.blake2b(folded.encode(), digest_size=8).digest()
    part = int.from_bytes(digest, "big") % 1000
    if part < _DEV_PARTS:
        return "dev"
    return "test" if part < _DEV_PARTS + _TEST_PARTS else "train"


def _write_member(sources: Sources, url: str, archive: Path, member: str, target: Path) -> None:
    """Write a .gz file whose bytes depend on the member alone."""
    fetch(sources, url, archive)
    with (
        open_member(archive, member) as stream,
        write_whole(target) as out,
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
    ):
        shutil.copyfileobj(stream, packed)
