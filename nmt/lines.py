"""The only reader and writer of text lines: UTF-8, ended by LF and nothing else."""

import gzip
import os
import re
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nmt.errors import UserError

BOM = "\ufeff"
# SentencePiece writes a blank as U+2581, so a typed one would come back as a blank.
META_BLANK = "\u2581"
_LINE_SEPARATORS = frozenset("\x85\u2028\u2029")
_CONTROLS = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) - set("\t\n\r\x85")
_REPAIRS = {
    **{ord(char): " " for char in _CONTROLS | _LINE_SEPARATORS},
    ord(META_BLANK): "_",
}
_MENDED = re.compile("[" + re.escape("".join(map(chr, [ord(BOM), *_REPAIRS]))) + "]")


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file (or .gz, or `-` for standard input) without their LF.

    A line ends at LF alone; a last line without LF counts, a CR before the LF stays in the line.
    Raises UserError where the file is missing or a line is not UTF-8.
    """
    with _open_for_reading(path) as stream:
        yield from decode_lines(stream, str(path))


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Decode raw lines that end at LF; `name` is what an error calls the stream."""
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}, line {number}: byte {raw[error.start]:#04x} at position "
                f"{error.start + 1} is not UTF-8; convert the file to UTF-8 "
                f"(for example: iconv -f latin1 -t utf-8)."
            ) from None
        yield line.removesuffix("\n")


def count_lines(path: str | Path) -> int:
    """Return the number of lines `read_lines` yields; what is not UTF-8 is an error here too."""
    return sum(1 for _ in read_lines(path))


def normalise(text: str) -> str:
    """Return the text as the model sees it; "" for a blank line.

    BOM off, NFC, controls and Unicode line ends to a space, runs of blanks to one, ends stripped.
    `normalise("\ufeffa\u2028b\u00a0\u00a0c ") == "a b c"`
    """
    return " ".join(repair(text).split())


def repair(text: str) -> str:
    """Return the text without what no sentence should hold; blanks and line ends stay as they are.

    `repair(text) != text` says that a line was mended, not merely trimmed.
    """
    if _MENDED.search(text):  # seldom, and slow: translate looks up each character
        text = text.replace(BOM, "").translate(_REPAIRS)
    return unicodedata.normalize("NFC", text)


def name_repairs(text: str) -> list[str]:
    """Say what `repair` mends in a text; nothing where it gives the text back.

    `name_repairs("cafe\u0301\0") == ["decomposed letters", "controls"]`
    """
    if repair(text) == text:
        return []
    without_bom = text.replace(BOM, "")
    found = {
        "byte order marks": without_bom != text,
        "decomposed letters": not unicodedata.is_normalized("NFC", without_bom),
        "controls": not _CONTROLS.isdisjoint(text),
        "line separators": not _LINE_SEPARATORS.isdisjoint(text),
        "U+2581": META_BLANK in text,
    }
    return [name for name, is_found in found.items() if is_found]


@contextmanager
def write_whole(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary file that appears under `path` only when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write each text and an LF; the file appears only when all are written."""
    with write_whole(path) as stream:
        for line in lines:
            assert "\n" not in line, "a text to write holds a line end"
            stream.write(f"{line}\n".encode())


@contextmanager
def _open_for_reading(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "rb") as stream:
            yield stream  # type: ignore[misc]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: is not a whole gzip file ({error}); fetch it again.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
