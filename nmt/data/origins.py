"""Gets the files of a catalogue corpus into the cache, a function for each kind of origin."""

import gzip
import hashlib
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import sacrebleu

from nmt.data.catalogue import Files, SacrebleuSets, TarMembers, ZippedTsv
from nmt.data.download import TIMEOUT_S, Sources, Unreachable, fetch, obtain
from nmt.data.names import Choice
from nmt.errors import UserError
from nmt.lines import count_lines, decode_lines, write_whole

Row = tuple[int, str, str]
"""Line (from 1), source, target."""

# Of 1,000 parts; of the 169,813 English-German pairs of 2018, 1,491 and 1,551 fall in nine each.
_DEV_PARTS = 9
_TEST_PARTS = 9


def side_file(choice: Choice, language: str, sources: Sources) -> Path:
    """Return the cached file of one side of a corpus that has a file a side."""
    origin = choice.entry.origin
    assert isinstance(origin, Files | TarMembers | SacrebleuSets)
    file = origin.file.format(split=choice.split.name, language=language)
    sha256, num_lines = "", choice.split.num_pairs
    match origin:
        case Files():
            sha256 = origin.sha256[file]
            url = origin.url.format(file=file)
            make = partial(fetch, url, sha256=sha256, num_lines=num_lines)
        case TarMembers():
            archive = sources.cache / choice.entry.name / Path(origin.url).name
            member = origin.members[choice.split.name].format(code=origin.codes[language])
            make = partial(_write_member, origin.url, archive, member)
        case SacrebleuSets():
            make = partial(_write_test_set, *origin.sets[choice.split.name], language, num_lines)
    name = f"{choice.entry.name}/{file}"
    return obtain(sources, name, make, sha256=sha256, num_lines=num_lines)


def tsv_archive(choice: Choice, sources: Sources) -> Path:
    """Return the cached archive of a pair."""
    origin = choice.entry.origin
    assert isinstance(origin, ZippedTsv)
    file, _ = origin.files[choice.pair]
    url = origin.url.format(file=file)
    return obtain(sources, f"{choice.entry.name}/{file}", partial(fetch, url))


def archive_rows(archive: Path, member: str, split: str) -> Iterator[Row]:
    """Yield the rows of one split of a zipped TSV; lines are those of the whole member."""
    name = f"{archive}:{member}"
    try:
        with zipfile.ZipFile(archive) as files, files.open(member) as stream:
            for row in tsv_rows(decode_lines(stream, name), name):
                if split_of(row[1]) == split:
                    yield row
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{name}: cannot be read ({error}); delete the file.") from None


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


def _write_member(url: str, archive: Path, member: str, target: Path) -> None:
    fetch(url, archive)
    try:
        with tarfile.open(archive) as files:
            stream = files.extractfile(member)
            assert stream is not None, f"{member} is not a file"
            with stream:
                _write_gzip(stream, target)
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise UserError(f"{archive}: {member} cannot be read ({error}); delete it.") from None


def _write_test_set(
    test_set: str, pair: str, language: str, num_lines: int | None, target: Path
) -> None:
    try:
        with _limited_wait():
            if language == pair.split("-")[0]:
                file = sacrebleu.get_source_file(test_set, pair)
            else:
                file = sacrebleu.get_reference_files(test_set, pair)[0]
    # sacreBLEU ends the program where a checksum is wrong.
    except (OSError, SystemExit) as error:
        raise Unreachable(f"sacreBLEU's {test_set}: {error}") from None
    # An interrupted sacreBLEU leaves a short file, which it then takes for the whole one.
    if num_lines is not None and count_lines(file) != num_lines:
        raise UserError(
            f"{file}: has not the {num_lines:,} lines of {test_set}; delete its folder."
        )
    with open(file, "rb") as stream:
        _write_gzip(stream, target)


@contextmanager
def _limited_wait() -> Iterator[None]:
    """Bound the time that sacreBLEU, which sets none, waits for a silent server."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _write_gzip(stream: IO[bytes], target: Path) -> None:
    """Write a .gz file whose bytes depend on the content alone."""
    with (
        write_whole(target) as out,
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
    ):
        shutil.copyfileobj(stream, packed)
