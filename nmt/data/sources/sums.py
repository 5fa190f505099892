"""SHA256SUMS: the list of a mirror's files, as `sha256sum` writes and checks it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from nmt.lines import read_lines, write_lines

SUMS = "SHA256SUMS"


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_sums(path: Path) -> dict[str, str]:
    """Return the sum of each file, by its name in the mirror."""
    rows = (line.split(maxsplit=1) for line in read_lines(path) if line.strip())
    # A star before the name says that the file was read as bytes.
    return {name.removeprefix("*").removeprefix("./"): sha256 for sha256, name in rows}


def write_sums(path: Path, sums: Mapping[str, str]) -> None:
    write_lines(path, (f"{sha256}  {name}" for name, sha256 in sorted(sums.items())))
