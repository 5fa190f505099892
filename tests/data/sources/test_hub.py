"""Hub sets are read in the hub's layout, from the cache, a mirror or the hub."""

import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_server import bad_server

from nmt.config import CorpusSpec
from nmt.data.sources.corpora import Corpus, Sources, open_corpus
from nmt.data.sources.hub import find_set
from nmt.data.sources.hub_files import Wanted
from nmt.data.sources.sums import write_sums
from nmt.data.sources.transfer import Patience
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
    with pytest.raises(UserError, match=r"no 'en' in a column `translation`, .*\['text'\]"):
        rows(opened(Sources(tmp_path / "cache", str(hub_folder))), max_rows=100)


def test_file_that_is_no_parquet(hub_folder: Path, tmp_path: Path) -> None:
    (hub_folder / "wmt" / "wmt14" / SHARDS[1]).write_bytes(b"<html>")
    with pytest.raises(UserError, match="cannot be read as parquet"):
        rows(opened(Sources(tmp_path / "cache", str(hub_folder))), max_rows=100)


def test_columns_may_be_called_as_the_languages(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "data" / "train-00000-of-00001-0123abcd.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"de": ["eins"], "en": ["one"], "id": [7]}), path)
    spec = CorpusSpec("hub:a/b:train")
    corpus = open_corpus(
        spec, src_lang="en", tgt_lang="de", default_split="", sources=Sources(tmp_path)
    )
    assert rows(corpus, 10) == [{"line": 1, "src": "one", "tgt": "eins"}]


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ("de-en", ["de-en/train-00000-of-00002.parquet", "de-en/train-00001-of-00002.parquet"]),
        ("de-en", ["de-en/train/0000.parquet", "de-en/train/0001.parquet"]),
        ("de-en", ["de-en/train.parquet"]),
        ("", ["data/train-00000-of-00001-0123abcd.parquet"]),
        ("", ["default/train/0000.parquet"]),
        ("", ["train.parquet"]),
    ],
)
def test_layouts_of_the_hub(config: str, paths: list[str]) -> None:
    others = [
        "de-en/test.parquet",
        "de-en/train-x.parquet",
        "fr-en/train.parquet",
        "x/train.parquet",
    ]
    wanted = Wanted("a/b", "", config, "train")
    assert wanted.files_among([*others, *reversed(paths)]) == tuple(paths)


def test_half_a_set_is_not_taken(hub_folder: Path, tmp_path: Path) -> None:
    (hub_folder / "wmt" / "wmt14" / SHARDS[1]).unlink()
    with pytest.raises(UserError, match="could not be had from the Hugging Face hub"):
        opened(Sources(tmp_path / "cache", str(hub_folder), offline=True))


def test_record_of_a_fetch_says_what_is_whole(hub_folder: Path, tmp_path: Path) -> None:
    """Names of this kind do not tell how many there are."""
    folder = tmp_path / "a" / "b" / "de-en"
    folder.mkdir(parents=True)
    for number in range(2):
        path = folder / "train" / f"{number:04}.parquet"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(hub_folder / "wmt" / "wmt14" / SHARDS[number], path)
    files = ["de-en/train/0000.parquet", "de-en/train/0001.parquet"]
    wanted = Wanted("a/b", "", "de-en", "train")
    (folder / "train.revision").write_text("\n".join([COMMIT, *files]))
    found = find_set(wanted, None, Sources(tmp_path, offline=True))
    assert (found.files, found.revision) == (tuple(files), COMMIT)
    (folder / "train" / "0001.parquet").unlink()
    with pytest.raises(UserError, match="a/b: de-en/train could not be had"):
        find_set(wanted, None, Sources(tmp_path, offline=True))


def test_mirror_by_url_lists_its_files(hub_folder: Path, tmp_path: Path) -> None:
    files = {f"wmt/wmt14/{name}": hub_folder / "wmt" / "wmt14" / name for name in SHARDS}
    wanted = Wanted("wmt/wmt14", "", "de-en", "train")
    with bad_server() as server:
        served = {name: path.read_bytes() for name, path in files.items()}
        sums = {name: hashlib.sha256(body).hexdigest() for name, body in served.items()}
        record = "wmt/wmt14/de-en/train.revision"
        sums |= {record: "-", "multi30k/train.en.gz": "-"}
        write_sums(tmp_path / "sums", sums)
        served |= {
            "m/SHA256SUMS": (tmp_path / "sums").read_bytes(),
            f"m/{record}": f"{COMMIT}\n".encode(),
            **{f"m/{name}": body for name, body in served.items()},
        }
        server.files = served
        server.faults = ["", "", "cut"]
        quick = Patience(pause_s=0.001)
        found = find_set(wanted, 25, Sources(tmp_path / "1", f"{server.url}/m/", patience=quick))
        assert found.folder == tmp_path / "1" / "wmt" / "wmt14"
        assert (found.files, found.revision) == (tuple(SHARDS), COMMIT)
        server.files[f"m/wmt/wmt14/{SHARDS[1]}"] = b"other"
        with pytest.raises(UserError, match=rf"{SHARDS[1]}: its SHA-256 is .*expected"):
            find_set(wanted, 25, Sources(tmp_path / "2", f"{server.url}/m", patience=quick))
        server.files.pop("m/SHA256SUMS")
        with pytest.raises(UserError, match="SHA256SUMS: the server says 404"):
            find_set(wanted, 25, Sources(tmp_path / "3", f"{server.url}/m", offline=False))


def test_files_of_another_revision_are_not_kept(hub_folder: Path, tmp_path: Path) -> None:
    """A mirror that broke down half-way may have held other files than the next place does."""
    folder = tmp_path / "cache" / "wmt" / "wmt14"
    (folder / "de-en").mkdir(parents=True)
    (folder / SHARDS[0]).write_bytes(b"of yesterday")
    with bad_server() as server:
        for name in SHARDS:
            body = (hub_folder / "wmt" / "wmt14" / name).read_bytes()
            server.files[f"wmt/wmt14/{name}"] = body
        sums = {name: hashlib.sha256(body).hexdigest() for name, body in server.files.items()}
        write_sums(tmp_path / "sums", sums)
        server.files["SHA256SUMS"] = (tmp_path / "sums").read_bytes()
        wanted = Wanted("wmt/wmt14", "", "de-en", "train")
        found = find_set(wanted, 25, Sources(tmp_path / "cache", server.url))
    assert found.shards == tuple(folder / name for name in SHARDS)


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Answers what the hub's client asks for, from the files of a folder."""

    folder: Path
    names: tuple[str, ...]
    converted: tuple[str, ...]
    """What lies at refs/convert/parquet."""
    requests: list[str] = []

    def do_GET(self) -> None:
        if "/datasets/" in self.path:  # the client asks for other things as well
            self.requests.append(self.path)
        names = self.converted if "refs%2Fconvert%2Fparquet" in self.path else self.names
        if self.path.startswith("/api/"):
            files = [{"rfilename": "README.md", "size": 1}, *map(self.about, names)]
            info = {"id": "wmt/wmt14", "sha": COMMIT, "private": False, "siblings": files}
            body = json.dumps(info).encode()
        else:
            body = (self.folder / self.path.split(f"/resolve/{COMMIT}/")[1]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def about(self, name: str) -> dict[str, Any]:
        body = (self.folder / name).read_bytes()
        lfs = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 9}
        return {"rfilename": name, "size": len(body), "lfs": lfs}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake_hub(hub_folder: Path) -> Iterator[str]:
    FakeHub.folder = hub_folder / "wmt" / "wmt14"
    FakeHub.names, FakeHub.converted = tuple(SHARDS), ()
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
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.errors import UserError
try:
    corpus = open_corpus(CorpusSpec(sys.argv[2]), src_lang="en", tgt_lang=sys.argv[3],
                         default_split="train", sources=Sources(Path(sys.argv[1])))
except UserError as error:
    sys.exit(str(error))
print(corpus.revision, sum(batch.num_rows for batch in corpus.batches()))
"""
NAME = "hub:wmt/wmt14/de-en:train"


def run(
    cache: Path, endpoint: str, name: str = NAME, tgt: str = "de"
) -> "subprocess.CompletedProcess[str]":
    """The hub's client reads its endpoint when it is imported, so it needs a new process."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache / "hf")}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(cache), name, tgt]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_fetched_once_from_the_hub_then_without_network(fake_hub: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(cache, fake_hub)
    assert (first.stdout, first.stderr, first.returncode) == (f"{COMMIT} 25\n", "", 0)
    assert not any("README" in request for request in FakeHub.requests)
    record = cache / "wmt" / "wmt14" / "de-en" / "train.revision"
    assert record.read_text().splitlines() == [COMMIT, *SHARDS]
    again = run(cache, "http://127.0.0.1:9")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    (cache / "wmt" / "wmt14" / SHARDS[0]).unlink()
    FakeHub.requests.clear()
    assert run(cache, fake_hub).stdout == first.stdout
    assert FakeHub.requests[0].startswith(f"/api/datasets/wmt/wmt14/revision/{COMMIT}")
    assert len(FakeHub.requests) == 2


def test_revision_of_the_user_has_a_folder_of_its_own(fake_hub: str, tmp_path: Path) -> None:
    assert run(tmp_path, fake_hub, "hub:wmt/wmt14@v1/de-en:train").stdout == f"{COMMIT} 25\n"
    assert FakeHub.requests[0].startswith("/api/datasets/wmt/wmt14/revision/v1")
    assert (tmp_path / "wmt" / "wmt14@v1" / SHARDS[0]).is_file()


@pytest.mark.parametrize(
    ("tgt", "expected"), [("de", "4,508,785"), ("fr", "40,836,715"), ("hi", "32,863")]
)
def test_other_number_of_pairs_than_the_catalogue_states(
    fake_hub: str, tmp_path: Path, tgt: str, expected: str
) -> None:
    pair = f"{tgt}-en"
    (FakeHub.folder / "de-en").rename(FakeHub.folder / pair)
    FakeHub.names = tuple(name.replace("de-en", pair) for name in SHARDS)
    found = run(tmp_path, fake_hub, "wmt14", tgt)
    assert found.returncode == 1
    assert f"wmt/wmt14: {pair}/train has 25 pairs, expected {expected}" in found.stderr
    assert f"hub:wmt/wmt14/{pair}:train" in found.stderr
    assert not list((tmp_path / "wmt").rglob("*.parquet"))


def test_parquet_that_the_hub_made_itself(fake_hub: str, tmp_path: Path) -> None:
    (FakeHub.folder / "de-en" / "train").mkdir()
    (FakeHub.folder / SHARDS[0]).rename(FakeHub.folder / "de-en" / "train" / "0000.parquet")
    FakeHub.names, FakeHub.converted = (), ("de-en/train/0000.parquet",)
    assert run(tmp_path, fake_hub).stdout == f"{COMMIT} 10\n"


def test_without_network_and_copy_it_is_one_sentence(tmp_path: Path) -> None:
    found = run(tmp_path / "cache", "http://127.0.0.1:9")
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    for part in ("wmt/wmt14: de-en/train", "--mirror", "NMT_MIRROR", "train-*.parquet"):
        assert part in found.stderr
