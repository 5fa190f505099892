"""Files come whole and checked, or not at all (N07)."""

import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from nmt.data.download import Sources, Unreachable, fetch, obtain
from nmt.errors import UserError

BODY = gzip.compress("".join(f"Zeile {k}\n" for k in range(3000)).encode(), mtime=0)
OTHER = gzip.compress(b"another file\n", mtime=0)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves BODY whole, cut at half, cut in chunks, or other bytes, by path."""

    requests: list[str] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "moved":
            self.send_response(302)
            self.send_header("Location", "/whole/a.gz")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if kind not in ("whole", "half", "chunks", "other"):
            self.send_error(404)
            return
        body = OTHER if kind == "other" else BODY
        self.send_response(200)
        if kind == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(body) // 2, body[: len(body) // 2]))
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if kind == "half" else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.requests.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_whole_file_is_stored_with_its_sum(server: str, tmp_path: Path) -> None:
    target = tmp_path / "corpus" / "a.gz"
    fetch(f"{server}/whole/a.gz", target, num_lines=3000)
    assert target.read_bytes() == BODY
    assert names(tmp_path) == {"a.gz", "a.gz.sha256"}
    digest = hashlib.sha256(BODY).hexdigest()
    assert (tmp_path / "corpus" / "a.gz.sha256").read_text() == f"{digest}  a.gz\n"


@pytest.mark.parametrize("kind", ["half", "chunks"])
def test_cut_body_leaves_nothing_and_the_next_try_is_whole(
    server: str, tmp_path: Path, kind: str
) -> None:
    with pytest.raises(UserError, match="the body was cut") as caught:
        fetch(f"{server}/{kind}/a.gz", tmp_path / "a.gz")
    assert not isinstance(caught.value, Unreachable)
    assert names(tmp_path) == set()
    fetch(f"{server}/whole/a.gz", tmp_path / "a.gz")
    assert (tmp_path / "a.gz").read_bytes() == BODY


def test_wrong_sum_names_expected_and_found(server: str, tmp_path: Path) -> None:
    stated = hashlib.sha256(BODY).hexdigest()
    with pytest.raises(UserError) as caught:
        fetch(f"{server}/other/a.gz", tmp_path / "a.gz", sha256=stated)
    assert stated in str(caught.value)
    assert hashlib.sha256(OTHER).hexdigest() in str(caught.value)
    assert names(tmp_path) == set()


def test_recorded_sum_holds_until_it_is_deleted(server: str, tmp_path: Path) -> None:
    target, record = tmp_path / "a.gz", tmp_path / "a.gz.sha256"
    fetch(f"{server}/whole/a.gz", target)
    target.unlink()
    with pytest.raises(UserError, match=f"expected .*delete {record}"):
        fetch(f"{server}/other/a.gz", target)
    assert names(tmp_path) == {"a.gz.sha256"}
    record.unlink()
    fetch(f"{server}/other/a.gz", target)
    assert target.read_bytes() == OTHER


def test_wrong_number_of_lines(server: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has 3,000 lines, expected 2,999"):
        fetch(f"{server}/whole/a.gz", tmp_path / "a.gz", num_lines=2999)
    assert names(tmp_path) == set()


def test_body_that_is_no_gzip(tmp_path: Path) -> None:
    page = tmp_path / "login.html"
    page.write_text("<html>please log in</html>")
    with pytest.raises(UserError, match="is not a whole gzip file"):
        fetch(str(page), tmp_path / "cache" / "a.gz", num_lines=1)
    assert names(tmp_path / "cache") == set()


def test_redirects_are_followed_and_a_stored_file_is_not_fetched_again(
    server: str, tmp_path: Path
) -> None:
    for _ in range(2):
        fetch(f"{server}/moved/a.gz", tmp_path / "a.gz")
    assert Handler.requests == ["/moved/a.gz", "/whole/a.gz"]


@pytest.mark.parametrize("url", ["{server}/nothing", "http://127.0.0.1:9/a", "/no/file", "x://y"])
def test_places_without_the_file_are_unreachable(server: str, tmp_path: Path, url: str) -> None:
    with pytest.raises(Unreachable):
        fetch(url.format(server=server), tmp_path / "a.gz")
    assert names(tmp_path) == set()


def test_cache_then_mirror_then_origin(server: str, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror" / "corpus"
    mirror.mkdir(parents=True)
    (mirror / "a.gz").write_bytes(OTHER)
    sources = Sources(tmp_path / "cache", str(tmp_path / "mirror"))
    origin = partial(fetch, f"{server}/whole/a.gz")
    assert obtain(sources, "corpus/a.gz", origin).read_bytes() == OTHER
    assert obtain(sources, "corpus/b.gz", origin).read_bytes() == BODY
    nowhere = Sources(tmp_path / "cache", "http://127.0.0.1:9")
    assert obtain(nowhere, "corpus/a.gz", origin).read_bytes() == OTHER
    assert Handler.requests == ["/whole/a.gz"]


def test_mirror_by_url(server: str, tmp_path: Path) -> None:
    sources = Sources(tmp_path, f"{server}/")
    found = obtain(sources, "whole/a.gz", partial(fetch, "/no/origin"))
    assert found == tmp_path / "whole" / "a.gz"
    assert found.read_bytes() == BODY


def test_no_copy_anywhere_is_one_sentence(tmp_path: Path) -> None:
    sources = Sources(tmp_path, "/no/mirror")
    with pytest.raises(UserError) as caught:
        obtain(sources, "corpus/a.gz", partial(fetch, "http://127.0.0.1:9/a.gz"))
    message = str(caught.value)
    for part in ("/no/mirror/corpus/a.gz", "http://127.0.0.1:9/a.gz", "--mirror", "NMT_MIRROR"):
        assert part in message
    assert "\n" not in message


def test_cache_that_cannot_be_written(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="NMT_CACHE"):
        obtain(Sources(tmp_path / "file"), "c/a.gz", partial(fetch, f"{server}/whole/a.gz"))


def test_places_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path))
    monkeypatch.setenv("NMT_MIRROR", "/data")
    assert Sources.from_environment(None) == Sources(tmp_path, "/data")
    assert Sources.from_environment("/other") == Sources(tmp_path, "/other")
    monkeypatch.delenv("NMT_CACHE")
    monkeypatch.delenv("NMT_MIRROR")
    home = Sources.from_environment(None)
    assert home.mirror is None
    assert home.cache.name == "nmt"
