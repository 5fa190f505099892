"""Moves the body of a URL into a file: resumes, tries again, gives up in time."""

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tqdm import tqdm

from nmt.errors import UserError

_BLOCK = 1 << 20
_PASSING = (408, 429, 500, 502, 503, 504)
"""Answers of a server that may be another one in a moment (RFC 9110, 15.5 and 15.6)."""


class Unreachable(UserError):
    """A place that does not have a file, or does not answer: another one may."""


class _Broken(Exception):
    """Something that may go well at the next try."""


@dataclass(frozen=True)
class Patience:
    """How long a server may be silent, and how often it is asked again."""

    timeout_s: float = 20.0
    tries: int = 4
    """In a row without a new MiB: a large file over a bad line needs many."""
    pause_s: float = 1.0
    """Before the second try; twice as long before each further one."""


def transfer(url: str, partial: Path, patience: Patience, token: str = "") -> bool:
    """Bring the whole body into `partial`, from where an earlier transfer broke off.

    Returns whether it was put together from pieces. Raises Unreachable where there is no such
    file or no answer, or where the body is cut again and again.
    """
    num_tries, furthest, is_pieced = 0, 0, False
    while True:
        try:
            return _try(url, partial, patience.timeout_s, token) or is_pieced
        except _Broken as error:
            size = partial.stat().st_size
            num_tries = 1 if size >= furthest + _BLOCK else num_tries + 1
            furthest = max(furthest, size)
            if num_tries >= patience.tries:
                raise Unreachable(f"{url}: {error}, after {num_tries} tries") from None
            is_pieced = is_pieced or size > 0
        time.sleep(patience.pause_s * 2 ** (num_tries - 1))


def marker_of(partial: Path) -> Path:
    """Return the file that says which version of which URL a partial file is the head of."""
    return partial.with_name(f"{partial.name}.etag")


def _try(url: str, partial: Path, timeout_s: float, token: str) -> bool:
    """Bring what is missing, and return whether something was there before."""
    marker = marker_of(partial)
    known_url, _, validator = (
        marker.read_text().partition("\n") if marker.exists() else ("", "", "")
    )
    there = partial.stat().st_size if validator and known_url == url else 0
    request = urllib.request.Request(
        url, headers={"User-Agent": "nmt", "Accept-Encoding": "identity"}
    )
    if token:  # not for the host that a redirect leads to
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    if there:
        # A file that has changed meanwhile then comes whole, not as a tail of another one.
        request.add_header("Range", f"bytes={there}-")
        request.add_header("If-Range", validator)
    response = _open(request, timeout_s, partial, there)
    if response is None:
        return True
    with response, partial.open("r+b") as out:
        start, total = _extent(response, there)
        out.truncate(start)
        out.seek(start)
        marker.write_text(f"{url}\n{_validator(response)}")
        _copy(response, out, start, total)
    return start > 0


def _open(
    request: urllib.request.Request, timeout_s: float, partial: Path, there: int
) -> http.client.HTTPResponse | None:
    """Return the answer; None where the server says that nothing is missing."""
    url = request.full_url
    try:
        return urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        says = f"the server says {error.code} {error.reason}"
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if there and error.headers["Content-Range"] == f"bytes */{there}":
                return None
            marker_of(partial).unlink()  # it became shorter: begin anew
            raise _Broken(says) from None
        if error.code in _PASSING:
            raise _Broken(says) from None
        raise Unreachable(f"{url}: {says}") from None
    except urllib.error.URLError as error:
        # Who refuses or has no address will not answer in a second either.
        if isinstance(error.reason, TimeoutError | ConnectionResetError):
            raise _Broken(str(error.reason)) from None
        raise Unreachable(f"{url}: {error.reason}") from None
    except (ValueError, http.client.InvalidURL) as error:
        raise Unreachable(f"{url}: {error}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error)) from None


def _extent(response: http.client.HTTPResponse, there: int) -> tuple[int, int | None]:
    """Return where the body begins and where the whole ends, if the server says so."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        extent = response.headers["Content-Range"] or ""
        first, _, rest = extent.removeprefix("bytes ").partition("-")
        total = rest.partition("/")[2]
        if first != str(there):
            raise _Broken(f"the server answers with another part ({extent or 'it says not which'})")
        return there, int(total) if total.isdecimal() else None
    length = response.headers["Content-Length"]
    return 0, int(length) if length and length.isdecimal() else None


def _validator(response: http.client.HTTPResponse) -> str:
    """Return what If-Range may hold: a strong ETag or a date (RFC 9110, 13.1.5); else ""."""
    etag = response.headers["ETag"] or ""
    return etag if etag.startswith('"') else response.headers["Last-Modified"] or ""


def _copy(body: http.client.HTTPResponse, out: IO[bytes], start: int, total: int | None) -> None:
    name = Path(body.url).name
    # disable=None: no bar where standard error is not a terminal.
    with tqdm(
        total=total, initial=start, unit="B", unit_scale=True, desc=name, disable=None
    ) as bar:
        size = start
        while block := _read(body, size):
            out.write(block)
            size += len(block)
            bar.update(len(block))
    if total is not None and size != total:
        raise _Broken(f"the body was cut at byte {size:,} of {total:,}")


def _read(body: http.client.HTTPResponse, size: int) -> bytes:
    try:
        return body.read1(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(f"the body was cut after byte {size:,} ({error})") from None
