"""Brings one file from a URL or a folder into the cache: whole and checked, or not at all."""

import gzip
import hashlib
import http.client
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import platformdirs
from tqdm import tqdm

from nmt.errors import UserError
from nmt.lines import write_whole

TIMEOUT_S = 20
"""How long a server may be silent."""

_BLOCK = 1 << 20


class Unreachable(UserError):
    """A place that does not have a file, or does not answer: another one may."""


@dataclass(frozen=True)
class Sources:
    """Where corpora are kept, and a copy of their origins (folder or URL) where there is one."""

    cache: Path
    mirror: str | None = None

    @classmethod
    def from_environment(cls, mirror: str | None = None) -> "Sources":
        """Read NMT_CACHE (else the user's cache folder) and NMT_MIRROR; `mirror` wins over it."""
        cache = os.environ.get("NMT_CACHE")
        return cls(
            cache=Path(cache).expanduser() if cache else platformdirs.user_cache_path("nmt"),
            mirror=mirror or os.environ.get("NMT_MIRROR") or None,
        )


def obtain(
    sources: Sources,
    file: str,
    make: Callable[[Path], None],
    *,
    sha256: str = "",
    num_lines: int | None = None,
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
        ways.insert(0, partial(fetch, place, sha256=sha256, num_lines=num_lines))
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


def fetch(url: str, target: Path, *, sha256: str = "", num_lines: int | None = None) -> None:
    """Copy a URL or a local file to `target`, unless that is there already.

    A sum that is not given is recorded beside the target, and holds when it is fetched again.
    Raises Unreachable where there is no such file or no answer; UserError where the body is cut
    or has another sum or another number of lines. Then nothing stands under the final name.
    """
    if target.exists():
        return
    record = target.with_name(f"{target.name}.sha256")
    expected = sha256 or (record.read_text().split()[0] if record.exists() else "")
    body, length = _connect(url)
    with body, write_whole(target) as out:
        found = _copy(body, out, url, length)
        if expected and found != expected:
            raise UserError(
                f"{url}: its SHA-256 is {found}, expected {expected}; fetch it again, or if this "
                f"file is right, {'name it as src or tgt' if sha256 else f'delete {record}'}."
            )
        if num_lines is not None:
            out.flush()
            _check_lines(Path(out.name), target.suffix == ".gz", num_lines, url)
    if not expected:
        with write_whole(record) as out:
            out.write(f"{found}  {target.name}\n".encode())


def _connect(url: str) -> tuple[BinaryIO, int | None]:
    """Open a URL or a path; the length is what the server or the disk says of it."""
    try:
        if "://" not in url:
            file = open(url, "rb")
            return file, os.stat(file.fileno()).st_size
        request = urllib.request.Request(url, headers={"User-Agent": "nmt"})
        response = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise Unreachable(f"{url}: the server says {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise Unreachable(f"{url}: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{url}: {error}") from None
    length = response.headers["Content-Length"]
    return response, None if length is None else int(length)


def _copy(body: BinaryIO, out: BinaryIO, url: str, length: int | None) -> str:
    """Copy the body, see that it is whole, and return its SHA-256."""
    digest = hashlib.sha256()
    size = 0
    # disable=None: no bar where standard error is not a terminal.
    with tqdm(total=length, unit="B", unit_scale=True, desc=Path(url).name, disable=None) as bar:
        while block := _read(body, url):
            out.write(block)
            digest.update(block)
            size += len(block)
            bar.update(len(block))
    if length is not None and size != length:
        raise UserError(f"{url}: the body was cut at byte {size:,} of {length:,}; fetch it again.")
    return digest.hexdigest()


def _read(body: BinaryIO, url: str) -> bytes:
    try:
        return body.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"{url}: the body was cut ({error}); fetch it again.") from None


def _check_lines(path: Path, is_gzip: bool, expected: int, url: str) -> None:
    try:
        with gzip.open(path, "rb") if is_gzip else path.open("rb") as stream:
            found = sum(1 for _ in stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{url}: is not a whole gzip file ({error}).") from None
    if found != expected:
        raise UserError(f"{url}: has {found:,} lines, expected {expected:,}.")
