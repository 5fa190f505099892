"""A transfer goes on after a break, never mixes two files, and gives up after a few tries (N07)."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer, bad_server

from nmt.data.sources.transfer import Patience, Unreachable, transfer

BODY = random.Random(1).randbytes(100_000)
HALF = len(BODY) // 2
OTHER = random.Random(2).randbytes(90_000)
QUICK = Patience(timeout_s=0.3, tries=3, pause_s=0.001)


@pytest.fixture
def server() -> Iterator[BadServer]:
    with bad_server() as running:
        running.files = {"a": BODY}
        yield running


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    path = tmp_path / ".a.partial"
    path.touch()
    return path


def test_whole_body_comes_in_one_go(server: BadServer, partial: Path) -> None:
    assert transfer(f"{server.url}/a", partial, QUICK) is False
    assert partial.read_bytes() == BODY
    assert server.requests == [("a", "")]


@pytest.mark.parametrize("fault", ["cut", "stall", "chunks", "too long"])
def test_break_is_gone_on_with(server: BadServer, partial: Path, fault: str) -> None:
    server.faults = [fault]
    assert transfer(f"{server.url}/a", partial, QUICK) is True
    assert partial.read_bytes() == BODY
    there = len(BODY) if fault == "too long" else HALF
    assert server.requests[:2] == [("a", ""), ("a", f"bytes={there}-")]


def test_next_call_goes_on_where_the_last_gave_up(server: BadServer, partial: Path) -> None:
    server.faults = ["cut"] * 3
    with pytest.raises(Unreachable, match=r"the body was cut at byte 87,500 of 100,000, after 3"):
        transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY[:87_500]
    assert transfer(f"{server.url}/a", partial, QUICK) is True
    assert partial.read_bytes() == BODY
    assert server.requests[-1] == ("a", "bytes=87500-")


def test_nothing_is_asked_for_twice(server: BadServer, partial: Path) -> None:
    for _ in range(2):
        transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY
    assert server.requests == [("a", ""), ("a", f"bytes={len(BODY)}-")]


def test_server_without_ranges_begins_anew(server: BadServer, partial: Path) -> None:
    server.has_ranges = False
    server.faults = ["cut"]
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY


def test_file_that_changed_meanwhile_comes_whole(server: BadServer, partial: Path) -> None:
    server.faults = ["cut"] * 3
    with pytest.raises(Unreachable):
        transfer(f"{server.url}/a", partial, QUICK)
    server.files["a"] = OTHER + OTHER
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == OTHER + OTHER


def test_file_that_became_shorter_under_its_old_etag(server: BadServer, partial: Path) -> None:
    server.etag = '"same"'
    server.faults = ["cut"] * 3
    with pytest.raises(Unreachable):
        transfer(f"{server.url}/a", partial, QUICK)
    server.files["a"] = OTHER[:1000]
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == OTHER[:1000]


@pytest.mark.parametrize("etag", ['W/"weak"', "none"])
def test_without_a_strong_etag_or_a_date_nothing_is_gone_on_with(
    server: BadServer, partial: Path, etag: str
) -> None:
    server.etag = etag
    server.faults = ["cut"]
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY
    assert server.requests == [("a", ""), ("a", "")]


def test_head_of_another_url_is_not_gone_on_with(server: BadServer, partial: Path) -> None:
    server.files["b"] = OTHER
    server.etag = '"same"'
    server.faults = ["cut"] * 3
    with pytest.raises(Unreachable):
        transfer(f"{server.url}/a", partial, QUICK)
    transfer(f"{server.url}/b", partial, QUICK)
    assert partial.read_bytes() == OTHER


def test_another_part_than_asked_for_is_not_taken(server: BadServer, partial: Path) -> None:
    server.faults = ["cut", "shifted"]
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_server_is_asked_again(server: BadServer, partial: Path, status: int) -> None:
    server.faults = [str(status)] * 2
    transfer(f"{server.url}/a", partial, QUICK)
    assert partial.read_bytes() == BODY


def test_tries_are_few_and_ever_farther_apart(server: BadServer, partial: Path) -> None:
    server.faults = ["503"] * 9
    begin = time.monotonic()
    with pytest.raises(Unreachable, match="the server says 503 .* after 4 tries"):
        transfer(f"{server.url}/a", partial, Patience(timeout_s=0.3, tries=4, pause_s=0.02))
    assert len(server.requests) == 4
    assert time.monotonic() - begin >= 0.02 + 0.04 + 0.08


def test_a_bad_line_that_gets_on_is_not_given_up(server: BadServer, partial: Path) -> None:
    server.files["a"] = bytes(20 << 20)
    server.faults = ["cut"] * 4
    transfer(f"{server.url}/a", partial, Patience(timeout_s=1, tries=2, pause_s=0.001))
    assert partial.stat().st_size == 20 << 20
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_what_is_not_there_is_asked_for_once(server: BadServer, partial: Path, status: int) -> None:
    server.faults = [str(status)]
    with pytest.raises(Unreachable, match=f"/a: the server says {status}"):
        transfer(f"{server.url}/a", partial, QUICK)
    assert len(server.requests) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a", "x://y", "http://127.0.0.1:x/a"])
def test_where_nobody_listens_is_asked_once(partial: Path, url: str) -> None:
    begin = time.monotonic()
    with pytest.raises(Unreachable, match=url):
        transfer(url, partial, Patience(pause_s=30))
    assert time.monotonic() - begin < 10


def test_redirects_are_followed_without_the_token(server: BadServer, partial: Path) -> None:
    server.redirects["moved"] = "/a"
    transfer(f"{server.url}/moved", partial, QUICK, token="secret")
    assert partial.read_bytes() == BODY
    assert server.requests == [("moved", ""), ("a", "")]
    assert server.tokens == ["Bearer secret", ""]
