"""Brings one file from a URL or a folder into the cache: whole and checked, or not at all."""

import errno
import fcntl
import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import platformdirs

from nmt.data.sources.sums import sha256_of
from nmt.data.sources.transfer import Patience, Unreachable, marker_of, transfer
from nmt.errors import UserError
from nmt.lines import write_whole


@dataclass(frozen=True)
class Sources:
    """Where corpora are kept, and a copy of their origins (folder or URL) where there is one."""

    cache: Path
    mirror: str | None = None
    offline: bool = False
    """Never ask the network; what neither the cache nor a mirror folder has is an error."""
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def from_environment(cls, mirror: str | None = None, *, offline: bool = False) -> "Sources":
        """Read NMT_CACHE (else the user's cache folder) and NMT_MIRROR; `mirror` wins over it."""
        cache = os.environ.get("NMT_CACHE")
        return cls(
            cache=Path(cache).expanduser() if cache else platformdirs.user_cache_path("nmt"),
            mirror=mirror or os.environ.get("NMT_MIRROR") or None,
            offline=offline,
        )

    def mirror_folder(self) -> Path | None:
        return None if self.mirror is None or is_url(self.mirror) else Path(self.mirror)


@dataclass(frozen=True)
class Expected:
    """What a source states of a file; empty where it states nothing."""

    size: int | None = None
    sha256: str = ""
    md5: str = ""
    num_lines: int | None = None


def is_url(place: str) -> bool:
    return "://" in place


def url_file(url: str) -> str:
    """Return the name of a URL's file in cache and mirror.

    `url_file("https://a.org/b/c.zip") == "urls/a.org/b/c.zip"`; a query becomes a hash.
    """
    parts = urlsplit(url)
    steps = [step.replace("\\", "_") for step in f"{parts.netloc}{parts.path}".split("/")]
    folders = [step for step in steps if step not in ("", ".", "..")]
    if parts.query:
        folders.insert(-1, hashlib.sha256(parts.query.encode()).hexdigest()[:12])
    return "/".join(["urls", *folders])


def obtain(
    sources: Sources, file: str, make: Callable[[Path], None], expected: Expected | None = None
) -> Path:
    """Return the cached copy of a corpus file such as multi30k/train.en.gz.

    What the cache lacks comes from the mirror, or else from `make(target)`, which writes it.
    Raises UserError where neither can be reached, or what came is wrong.
    """
    target = sources.cache / file
    if target.exists():
        return target
    ways = [make]
    if sources.mirror is not None:
        place = f"{sources.mirror.rstrip('/')}/{file}"
        ways.insert(0, partial(fetch, sources, place, expected=expected))
    tried = []
    for bring in ways:
        try:
            bring(target)
            return target
        except Unreachable as error:
            tried.append(str(error))
        except OSError as error:
            raise UserError(
                f"{target.parent}: cannot be written ({error.strerror}); make room there, or name "
                f"another cache folder by NMT_CACHE."
            ) from None
    raise UserError(
        f"{file}: could not be had ({'; '.join(tried)}): name a folder or URL that holds it by "
        f"--mirror or NMT_MIRROR, or put the file at {target}."
    )


def obtain_url(sources: Sources, url: str, expected: Expected | None = None) -> Path:
    """Return the cached copy of a URL that no catalogue names."""
    make = partial(fetch, sources, url, expected=expected)
    return obtain(sources, url_file(url), make, expected)


def fetch(
    sources: Sources,
    place: str,
    target: Path,
    expected: Expected | None = None,
    token: str = "",
) -> None:
    """Copy a URL or a local file to `target`, unless that is there already.

    A sum that is not given is recorded beside the target, and holds when it is fetched again. A
    transfer that breaks off is gone on with by the next call. Raises Unreachable where there is no
    such file or no answer; UserError where the file has another size, sum or number of lines.
    Then nothing stands under the final name.
    """
    if target.exists():
        return
    if sources.offline and is_url(place):
        raise Unreachable(f"{place}: not asked, as the network is not to be used")
    expected = expected or Expected()
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.with_name(f".{target.name}.partial")) as coming:
        if target.exists():  # another process has brought it meanwhile
            return
        for is_last in (False, True):
            is_pieced = _bring(sources, place, coming, token)
            try:
                _check(coming, target, expected, place)
                break
            except UserError:
                os.truncate(coming, 0)
                # Pieces that do not fit are the likelier cause: once more in one go.
                if is_last or not is_pieced:
                    raise
        coming.replace(target)


def _bring(sources: Sources, place: str, coming: Path, token: str) -> bool:
    """Fill the partial file; True where it was put together from pieces."""
    if is_url(place):
        is_pieced = transfer(place, coming, sources.patience, token)
    else:
        is_pieced = False
        try:
            stream = open(place, "rb")
        except OSError as error:
            raise Unreachable(f"{place}: {error.strerror}") from None
        with stream, coming.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    with coming.open("rb") as written:
        os.fsync(written.fileno())
    return is_pieced


@contextmanager
def _alone(coming: Path) -> Iterator[Path]:
    """Hold the partial file: a second process would write into it as well."""
    while True:
        with coming.open("ab") as held:
            _lock(held)
            # Whoever held it before may have put it in place or thrown it away.
            if not _is_at(coming, held):
                continue
            try:
                yield coming
            finally:
                if not coming.exists() or coming.stat().st_size == 0:
                    coming.unlink(missing_ok=True)
                    marker_of(coming).unlink(missing_ok=True)
            return


def _lock(held: IO[bytes]) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
    except OSError as error:
        # The file systems of some clusters have no locks; two fetches at once are a risk there.
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


def _is_at(path: Path, held: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(held.fileno()))
    except FileNotFoundError:
        return False


def _check(path: Path, target: Path, expected: Expected, place: str) -> None:
    """Compare a file with what is known of it, and record its sum where none was."""
    record = target.with_name(f"{target.name}.sha256")
    size = path.stat().st_size
    if expected.size is not None and size != expected.size:
        raise UserError(f"{place}: has {size:,} bytes, expected {expected.size:,}.")
    if expected.md5 and (found := _md5(path)) != expected.md5:
        raise UserError(f"{place}: its MD5 is {found}, expected {expected.md5}.")
    wanted = expected.sha256 or (record.read_text().split()[0] if record.exists() else "")
    found = sha256_of(path)
    if wanted and found != wanted:
        way = "name it as src or tgt" if expected.sha256 else f"delete {record}"
        raise UserError(
            f"{place}: its SHA-256 is {found}, expected {wanted}; fetch it again, or if this "
            f"file is right, {way}."
        )
    if target.suffix == ".gz" or expected.num_lines is not None:
        _check_lines(path, target.suffix == ".gz", expected.num_lines, place)
    if not wanted:
        with write_whole(record) as out:
            out.write(f"{found}  {target.name}\n".encode())


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


def _check_lines(path: Path, is_gzip: bool, expected: int | None, place: str) -> None:
    """See that a gzip file is whole, and count its lines where their number is known."""
    try:
        with gzip.open(path, "rb") if is_gzip else path.open("rb") as stream:
            found = sum(1 for _ in stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{place}: is not a whole gzip file ({error}).") from None
    if expected is not None and found != expected:
        raise UserError(f"{place}: has {found:,} lines, expected {expected:,}.")
