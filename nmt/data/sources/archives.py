"""Takes text out of archives and compressed files; nothing is ever written outside its folder."""

import bz2
import gzip
import hashlib
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from nmt.errors import UserError
from nmt.lines import write_whole

_ZIP = (".zip",)
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
# RuntimeError is zipfile's word for a password that it needs.
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    RuntimeError,
    NotImplementedError,
)
_OPENERS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    ".gz": lambda stream: cast(IO[bytes], gzip.GzipFile(fileobj=stream)),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}


def split_member(place: str) -> tuple[str, str]:
    """Return archive and member: `split_member("a.zip#b/c.txt") == ("a.zip", "b/c.txt")`.

    A `#` counts only after the name of an archive; the member is "" where none is named.
    """
    head, _, member = place.partition("#")
    return (head, member) if head.endswith(_ZIP + _TAR) else (place, "")


def text_file(path: Path, member: str, cache: Path) -> Path:
    """Return a file that `nmt.lines` can read: `path` itself, or what was taken out of it.

    A member need not be named where the archive has only one. It is unpacked once, into the
    cache, under a name of ours; an archive that changes is unpacked again.
    """
    if not path.name.endswith(_ZIP + _TAR + (".xz", ".bz2")):
        return path
    try:
        stat = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    identity = f"{path.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}\n{member}"
    folder = cache / "unpacked" / hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = folder / (re.sub(r"[^\w.-]", "_", PurePosixPath(member or path.stem).name) + ".txt")
    if not target.exists():
        with open_member(path, member) as stream, write_whole(target) as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    return target


@contextmanager
def open_member(path: Path, member: str) -> Iterator[IO[bytes]]:
    """Open a member of an archive, or a compressed file, as the text that it holds."""
    name = f"{path}#{member}" if member else str(path)
    try:
        if path.name.endswith(_ZIP):
            with zipfile.ZipFile(path) as archive:
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
                member = _choose(member, names, path)
                with archive.open(member) as stream:
                    yield _plain(stream, member)
        elif path.name.endswith(_TAR):
            with tarfile.open(path) as tar, _tar_stream(tar, member, path) as stream:
                yield _plain(stream, member)
        else:
            with path.open("rb") as stream:
                yield _plain(stream, path.name)
    except _BROKEN as error:
        raise UserError(f"{name}: cannot be read ({error}); fetch it again.") from None
    except OSError as error:
        if error.errno is not None:  # not of the archive but of a disk
            raise
        raise UserError(f"{name}: cannot be read ({error}); fetch it again.") from None


def unpack(path: Path, folder: Path) -> None:
    """Unpack a whole archive, or refuse it where a member would land outside the folder."""
    try:
        if path.name.endswith(_ZIP):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if ".." in name.split("/") or name.startswith("/"):
                        raise UserError(f"{path}: its member {name} would land outside {folder}.")
                archive.extractall(folder)
        elif path.name.endswith(_TAR):
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
    except (*_BROKEN, OSError) as error:
        raise UserError(f"{path}: cannot be unpacked ({error}); delete it.") from None


def _tar_stream(tar: tarfile.TarFile, member: str, path: Path) -> IO[bytes]:
    """Open the member as soon as it comes by: to go back means to unpack twice."""
    names = []
    for info in tar:
        if member and info.name.removeprefix("./") == member.removeprefix("./"):
            break
        if info.isfile():
            names.append(info.name)
    else:
        info = tar.getmember(_choose(member, names, path))
    stream = tar.extractfile(info)
    if stream is None:
        raise UserError(f"{path}#{info.name}: is not a file.")
    return stream


def _choose(member: str, names: list[str], path: Path) -> str:
    if member in names:
        return member
    if not member and len(names) == 1:
        return names[0]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
    found = f"no member {member}" if member else "several members, of which one must be named"
    raise UserError(f"{path}: has {found} ({path.name}#MEMBER); it holds {shown or 'no file'}.")


def _plain(stream: IO[bytes], name: str) -> IO[bytes]:
    opener = _OPENERS.get(PurePosixPath(name).suffix)
    return opener(stream) if opener else stream
