"""Files come whole and checked, or not at all (N07)."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from bad_server import BadServer, bad_server

from nmt.data.sources.download import Expected, Sources, fetch, obtain, obtain_url, url_file
from nmt.data.sources.transfer import Patience, Unreachable
from nmt.errors import UserError

BODY = gzip.compress("".join(f"Zeile {k}\n" for k in range(3000)).encode(), mtime=0)
OTHER = gzip.compress(b"another file\n", mtime=0)
SHA256 = hashlib.sha256(BODY).hexdigest()
QUICK = Patience(timeout_s=0.3, tries=3, pause_s=0.001)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with bad_server() as running:
        running.files = {"a.gz": BODY, "other.gz": OTHER}
        yield running


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path / "cache", patience=QUICK)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_whole_file_is_stored_with_its_sum(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    target = tmp_path / "corpus" / "a.gz"
    md5 = hashlib.md5(BODY).hexdigest()
    fetch(sources, f"{server.url}/a.gz", target, Expected(len(BODY), "", md5, 3000))
    assert target.read_bytes() == BODY
    assert names(tmp_path) == {"a.gz", "a.gz.sha256"}
    assert (tmp_path / "corpus" / "a.gz.sha256").read_text() == f"{SHA256}  a.gz\n"


@pytest.mark.parametrize("fault", ["cut", "chunks", "stall"])
def test_cut_body_never_stands_under_the_final_name(
    server: BadServer, sources: Sources, tmp_path: Path, fault: str
) -> None:
    server.faults = [fault] * 3
    with pytest.raises(Unreachable, match="the body was cut"):
        fetch(sources, f"{server.url}/a.gz", tmp_path / "a.gz")
    assert names(tmp_path) == {".a.gz.partial", ".a.gz.partial.etag"}
    fetch(sources, f"{server.url}/a.gz", tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY
    assert server.requests[-1][1] != ""
    assert names(tmp_path) == {"a.gz", "a.gz.sha256"}


def test_body_longer_than_the_server_says(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    server.faults = ["too short"]
    with pytest.raises(UserError, match="is not a whole gzip file"):
        fetch(sources, f"{server.url}/a.gz", tmp_path / "a.gz")
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Expected(sha256=SHA256), [SHA256, hashlib.sha256(OTHER).hexdigest()]),
        (Expected(md5="0" * 32), ["0" * 32, hashlib.md5(OTHER).hexdigest()]),
        (Expected(size=7), [f"has {len(OTHER)} bytes, expected 7"]),
        (Expected(num_lines=2999), ["has 1 lines, expected 2,999"]),
    ],
)
def test_wrong_content_names_expected_and_found(
    server: BadServer, sources: Sources, tmp_path: Path, expected: Expected, words: list[str]
) -> None:
    with pytest.raises(UserError) as caught:
        fetch(sources, f"{server.url}/other.gz", tmp_path / "a.gz", expected)
    assert not isinstance(caught.value, Unreachable)
    for word in words:
        assert word in str(caught.value)
    assert names(tmp_path) == set()


def test_pieces_that_do_not_fit_are_fetched_once_more(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    server.faults = ["cut", "other bytes"]
    fetch(sources, f"{server.url}/a.gz", tmp_path / "a.gz", Expected(sha256=SHA256))
    assert (tmp_path / "a.gz").read_bytes() == BODY
    assert [extent for _, extent in server.requests] == ["", f"bytes={(len(BODY) + 1) // 2}-", ""]


def test_wrong_bytes_after_a_break_leave_nothing(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    server.faults = ["cut"]
    with pytest.raises(UserError, match="its SHA-256 is"):
        fetch(sources, f"{server.url}/a.gz", tmp_path / "a.gz", Expected(sha256="0" * 64))
    assert names(tmp_path) == set()
    assert len(server.requests) == 3


def test_recorded_sum_holds_until_it_is_deleted(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    target, record = tmp_path / "a.gz", tmp_path / "a.gz.sha256"
    fetch(sources, f"{server.url}/a.gz", target)
    target.unlink()
    with pytest.raises(UserError, match=f"expected .*delete {record}"):
        fetch(sources, f"{server.url}/other.gz", target)
    assert names(tmp_path) == {"a.gz.sha256"}
    record.unlink()
    fetch(sources, f"{server.url}/other.gz", target)
    assert target.read_bytes() == OTHER


def test_body_that_is_no_gzip(sources: Sources, tmp_path: Path) -> None:
    page = tmp_path / "login.html"
    page.write_text("<html>please log in</html>")
    with pytest.raises(UserError, match="is not a whole gzip file"):
        fetch(sources, str(page), tmp_path / "cache" / "a.gz")
    assert names(tmp_path / "cache") == set()


def test_stored_file_is_not_fetched_again(
    server: BadServer, sources: Sources, tmp_path: Path
) -> None:
    server.redirects["moved"] = "/a.gz"
    for _ in range(2):
        fetch(sources, f"{server.url}/moved", tmp_path / "a.gz")
    assert server.requests == [("moved", ""), ("a.gz", "")]


def test_two_at_once_fetch_once(server: BadServer, sources: Sources, tmp_path: Path) -> None:
    """The second waits, though it may find the file of the first put in place or thrown away."""
    server.faults = ["stall"]
    bring = partial(fetch, sources, f"{server.url}/a.gz", tmp_path / "a.gz")
    threads = [threading.Thread(target=bring) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "a.gz").read_bytes() == BODY
    assert len(server.requests) == 2
    assert names(tmp_path) == {"a.gz", "a.gz.sha256"}


@pytest.mark.parametrize("place", ["{url}/nothing", "http://127.0.0.1:9/a", "/no/file", "x://y"])
def test_places_without_the_file_are_unreachable(
    server: BadServer, sources: Sources, tmp_path: Path, place: str
) -> None:
    with pytest.raises(Unreachable):
        fetch(sources, place.format(url=server.url), tmp_path / "a.gz")
    assert names(tmp_path) == set()


def test_cache_then_mirror_then_origin(server: BadServer, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror" / "corpus"
    mirror.mkdir(parents=True)
    (mirror / "a.gz").write_bytes(OTHER)
    sources = Sources(tmp_path / "cache", str(tmp_path / "mirror"), patience=QUICK)
    origin = partial(fetch, sources, f"{server.url}/a.gz")
    assert obtain(sources, "corpus/a.gz", origin).read_bytes() == OTHER
    assert obtain(sources, "corpus/b.gz", origin).read_bytes() == BODY
    nowhere = Sources(tmp_path / "cache", "http://127.0.0.1:9")
    assert obtain(nowhere, "corpus/a.gz", origin).read_bytes() == OTHER
    assert server.requests == [("a.gz", "")]


def test_mirror_that_breaks_down_leaves_the_origin(server: BadServer, tmp_path: Path) -> None:
    server.files = {"mirror/c/a.gz": OTHER, "a.gz": BODY}
    server.faults = ["cut"] * 3
    sources = Sources(tmp_path / "cache", f"{server.url}/mirror/", patience=QUICK)
    found = obtain(sources, "c/a.gz", partial(fetch, sources, f"{server.url}/a.gz"))
    assert found.read_bytes() == BODY


def test_mirror_by_url(server: BadServer, tmp_path: Path) -> None:
    server.files["whole/a.gz"] = BODY
    sources = Sources(tmp_path, f"{server.url}/")
    found = obtain(sources, "whole/a.gz", partial(fetch, sources, "/no/origin"))
    assert found == tmp_path / "whole" / "a.gz"
    assert found.read_bytes() == BODY


def test_no_copy_anywhere_is_one_sentence(tmp_path: Path) -> None:
    sources = Sources(tmp_path, "/no/mirror")
    with pytest.raises(UserError) as caught:
        obtain(sources, "corpus/a.gz", partial(fetch, sources, "http://127.0.0.1:9/a.gz"))
    message = str(caught.value)
    for part in ("/no/mirror/corpus/a.gz", "http://127.0.0.1:9/a.gz", "--mirror", "NMT_MIRROR"):
        assert part in message
    assert "\n" not in message


def test_offline_asks_no_server_and_says_what_is_missing(server: BadServer, tmp_path: Path) -> None:
    sources = Sources(tmp_path, server.url, offline=True)
    with pytest.raises(UserError) as caught:
        obtain_url(sources, f"{server.url}/a.gz")
    message = str(caught.value)
    assert message.startswith("urls/127.0.0.1:")
    assert f"{server.url}/a.gz: not asked, as the network is not to be used" in message
    assert "\n" not in message
    assert server.requests == []
    obtain_url(Sources(tmp_path), f"{server.url}/a.gz")
    assert obtain_url(sources, f"{server.url}/a.gz").read_bytes() == BODY


def test_cache_that_cannot_be_written(server: BadServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="NMT_CACHE"):
        obtain_url(Sources(tmp_path / "file"), f"{server.url}/a.gz")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a.org/b/c.zip", "urls/a.org/b/c.zip"),
        ("https://a.org/../..//b/./c.zip", "urls/a.org/b/c.zip"),
        ("https://a.org/..\\c.zip", "urls/a.org/.._c.zip"),
        ("https://a.org/get/c.gz?v=1", "urls/a.org/get/a798de8ee75a/c.gz"),
    ],
)
def test_no_url_leaves_the_cache(url: str, name: str) -> None:
    assert url_file(url) == name


def test_places_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    monkeypatch.setenv("NMT_MIRROR", "/data")
    assert Sources.from_environment(None) == Sources(tmp_path, "/data")
    assert Sources.from_environment("/other", offline=True) == Sources(tmp_path, "/other", True)
    monkeypatch.delenv("NMT_CACHE")
    monkeypatch.delenv("NMT_MIRROR")
    home = Sources.from_environment(None)
    assert home.mirror is None
    assert home.cache.name == "nmt"
