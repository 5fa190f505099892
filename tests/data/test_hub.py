"""Hub sets are read in the hub's layout, from the cache, a mirror or the hub."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.config import CorpusSpec
from nmt.data.corpora import Corpus, Sources, open_corpus
from nmt.errors import UserError

COMMIT = "0123456789" * 4
PAIRS = [{"de": f"Satz {k}\u2028", "en": f"sentence {k}"} for k in range(25)]
SHARDS = [f"de-en/train-0000{k}-of-00003.parquet" for k in range(3)]


def opened(sources: Sources, src: str = "en", tgt: str = "de") -> Corpus:
    return open_corpus(
        CorpusSpec("wmt14/de-en"),
        src_lang=src,
        tgt_lang=tgt,
        default_split="train",
        sources=sources,
    )


def rows(corpus: Corpus, max_rows: int) -> list[dict[str, Any]]:
    return [row for batch in corpus.batches(max_rows) for row in batch.to_pylist()]


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    """A mirror that holds 25 pairs of wmt14/de-en in three files."""
    for name, part in zip(SHARDS, (PAIRS[:10], PAIRS[10:20], PAIRS[20:]), strict=True):
        path = tmp_path / "mirror" / "wmt" / "wmt14" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"translation": pa.array(part)}), path)
    return tmp_path / "mirror"


def test_mirror_is_read_in_place(hub_folder: Path, tmp_path: Path) -> None:
    corpus = opened(Sources(tmp_path / "cache", str(hub_folder)))
    assert corpus.name == "wmt14/de-en/train"
    assert corpus.inputs == tuple(hub_folder / "wmt" / "wmt14" / name for name in SHARDS)
    expected = [
        {"line": k, "src": pair["en"], "tgt": pair["de"]} for k, pair in enumerate(PAIRS, start=1)
    ]
    assert rows(corpus, max_rows=7) == expected
    assert [batch.num_rows for batch in corpus.batches(7)] == [7, 7, 7, 4]
    back = opened(Sources(tmp_path / "cache", str(hub_folder)), "de", "en")
    assert rows(back, max_rows=100)[0] == {"line": 1, "src": "Satz 0\u2028", "tgt": "sentence 0"}


def test_cache_has_the_layout_of_the_mirror(hub_folder: Path) -> None:
    assert len(rows(opened(Sources(hub_folder, None)), max_rows=100)) == 25


def test_a_side_that_is_null_is_empty(hub_folder: Path, tmp_path: Path) -> None:
    path = hub_folder / "wmt" / "wmt14" / SHARDS[2]
    pq.write_table(pa.table({"translation": pa.array([{"de": None, "en": "a"}, None])}), path)
    found = rows(opened(Sources(tmp_path / "cache", str(hub_folder))), max_rows=100)
    assert [(row["src"], row["tgt"]) for row in found[20:]] == [("a", ""), ("", "")]


def test_other_columns_are_named(hub_folder: Path, tmp_path: Path) -> None:
    for name in SHARDS:
        pq.write_table(pa.table({"text": ["a"]}), hub_folder / "wmt" / "wmt14" / name)
    with pytest.raises(UserError, match=r"no 'en' in a column `translation`.*\['text'\]"):
        rows(opened(Sources(tmp_path / "cache", str(hub_folder))), max_rows=100)


def test_file_that_is_no_parquet(hub_folder: Path, tmp_path: Path) -> None:
    (hub_folder / "wmt" / "wmt14" / SHARDS[1]).write_bytes(b"<html>")
    with pytest.raises(UserError, match="cannot be read as parquet"):
        rows(opened(Sources(tmp_path / "cache", str(hub_folder))), max_rows=100)


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Answers what the hub's client asks for, from the files of a folder."""

    folder: Path
    requests: list[str] = []

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        headers = {"X-Repo-Commit": COMMIT, "Content-Type": "application/json"}
        names = ("README.md", *SHARDS)
        if "/tree/" in self.path:
            tree = [{"type": "file", "oid": "0" * 40, "size": 1, "path": name} for name in names]
            body = json.dumps(tree).encode()
        elif self.path.startswith("/api/"):
            files = [{"rfilename": name} for name in names]
            info = {"id": "wmt/wmt14", "sha": COMMIT, "private": False, "siblings": files}
            body = json.dumps(info).encode()
        else:
            name = self.path.split(f"/resolve/{COMMIT}/")[1]
            body = (self.folder / "wmt" / "wmt14" / name).read_bytes()
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()}"'
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake_hub(hub_folder: Path) -> Iterator[str]:
    FakeHub.folder = hub_folder
    FakeHub.requests.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeHub) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


PROGRAM = """
import sys
from pathlib import Path
from nmt.config import CorpusSpec
from nmt.data.corpora import Sources, open_corpus
from nmt.errors import UserError
try:
    corpus = open_corpus(CorpusSpec("wmt14/de-en"), src_lang="en", tgt_lang="de",
                         default_split="train", sources=Sources(Path(sys.argv[1])))
except UserError as error:
    sys.exit(str(error))
print(corpus.revision, sum(batch.num_rows for batch in corpus.batches()))
"""


def run(cache: Path, endpoint: str) -> "subprocess.CompletedProcess[str]":
    """The hub's client reads its endpoint when it is imported, so it needs a new process."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache / "hf")}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(cache)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_fetched_once_from_the_hub_then_without_network(fake_hub: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(cache, fake_hub)
    assert (first.stdout, first.stderr, first.returncode) == (f"{COMMIT} 25\n", "", 0)
    assert not any("README" in request for request in FakeHub.requests)
    record = cache / "wmt" / "wmt14" / "de-en" / "train.revision"
    assert record.read_text() == f"{COMMIT}\n"
    again = run(cache, "http://127.0.0.1:9")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    (cache / "wmt" / "wmt14" / SHARDS[0]).unlink()
    FakeHub.requests.clear()
    assert run(cache, fake_hub).stdout == first.stdout
    assert FakeHub.requests[0].startswith(f"GET /api/datasets/wmt/wmt14/revision/{COMMIT}")


def test_without_network_and_copy_it_is_one_sentence(tmp_path: Path) -> None:
    found = run(tmp_path / "cache", "http://127.0.0.1:9")
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    for part in ("wmt/wmt14: de-en/train", "--mirror", "NMT_MIRROR", "train-*.parquet"):
        assert part in found.stderr
