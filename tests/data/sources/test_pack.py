"""A packed mirror is all that a machine without network needs."""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_server import BadServer, bad_server

from nmt.config import Config, CorpusSpec, FilePath, load_config
from nmt.data.sources.corpora import Sources
from nmt.data.sources.pack import pack
from nmt.data.sources.sums import read_sums
from nmt.errors import UserError

CONFIG = """\
src: en
tgt: de
data:
  train:
    - hub:a/b/de-en:train
    - tatoeba
    - {src: own.en, tgt: own.de}
  dev: [captions]
  test: [tatoeba]
"""

# Sockets of the network are forbidden to this process, in a way that nothing can undo.
PROGRAM = """
import socket, sys
def forbid(event, arguments):
    if event == "socket.getaddrinfo" or (
        event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6)
    ):
        raise AssertionError(f"network: {event} {arguments}")
sys.addaudithook(forbid)
from pathlib import Path
from nmt.config import CorpusSpec, FilePath, load_config
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.errors import UserError
data = load_config(sys.argv[1]).data
sources = Sources(Path(sys.argv[2]), sys.argv[3], offline=True)
train = (*data.train, CorpusSpec(tsv=FilePath(sys.argv[4])))
try:
    for split, specs in (("train", train), ("dev", data.dev), ("test", data.test)):
        for spec in specs:
            corpus = open_corpus(
                spec, src_lang="en", tgt_lang="de", default_split=split, sources=sources
            )
            print(sum(batch.num_rows for batch in corpus.batches()), corpus.revision)
except UserError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def server() -> Iterator[BadServer]:
    with bad_server() as running:
        running.files = {"more.tsv": b"one\teins\ntwo\tzwei\n"}
        yield running


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A mirror with more than is needed: tatoeba in two pairs, two splits of a hub set."""
    folder = tmp_path / "origin"
    for split in ("train", "test"):
        path = folder / "a" / "b" / "de-en" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"translation": pa.array([{"de": "d", "en": "e"}] * 3)}), path)
    (path.parent / "train.revision").write_text("abc\nde-en/train-00000-of-00001.parquet\n")
    (folder / "tatoeba").mkdir()
    for name, member in (("deu-eng.zip", "deu.txt"), ("jpn-eng.zip", "jpn.txt")):
        with zipfile.ZipFile(folder / "tatoeba" / name, "w") as archive:
            archive.writestr(member, "".join(f"Number {k}.\tNummer {k}.\n" for k in range(1000)))
    return folder


@pytest.fixture
def config(tmp_path: Path, server: BadServer) -> Path:
    for side in ("en", "de"):
        (tmp_path / f"own.{side}").write_text("own\n")
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def loaded(path: Path, server: BadServer) -> Config:
    """Return the config with one more corpus, which has a URL."""
    config = load_config(path)
    by_url = CorpusSpec(tsv=FilePath(f"{server.url}/more.tsv"))
    return replace(config, data=replace(config.data, train=(*config.data.train, by_url)))


def run(
    config: Path, server: BadServer, cache: Path, mirror: object
) -> "subprocess.CompletedProcess[str]":
    url = f"{server.url}/more.tsv"
    command = [sys.executable, "-W", "error", "-c", PROGRAM, config, cache, str(mirror), url]
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_pack_holds_just_what_the_config_needs(
    config: Path, origin: Path, server: BadServer, tmp_path: Path
) -> None:
    mirror = tmp_path / "packed"
    packed = pack(loaded(config, server), mirror, Sources(tmp_path / "cache", str(origin)))
    host = server.url.removeprefix("http://")
    expected = {
        "a/b/de-en/train-00000-of-00001.parquet",
        "a/b/de-en/train.revision",
        "tatoeba/deu-eng.zip",
        f"urls/{host}/more.tsv",
    }
    assert set(packed.files) == expected
    there = {str(path.relative_to(mirror)) for path in mirror.rglob("*") if path.is_file()}
    assert there == expected | {"SHA256SUMS"}
    for name, sha256 in read_sums(mirror / "SHA256SUMS").items():
        assert hashlib.sha256((mirror / name).read_bytes()).hexdigest() == sha256
    assert packed.own_files == (tmp_path / "own.en", tmp_path / "own.de")
    assert any("own.en" in line for line in packed.describe())

    found = run(config, server, tmp_path / "cache2", mirror)
    assert (found.stderr, found.returncode) == ("", 0)
    counts = [line.split() for line in found.stdout.splitlines()]
    assert counts[0] == ["3", "abc"]
    assert counts[2:5] == [["1"], ["2"], ["500"]]
    assert 900 < int(counts[1][0]) < 1000 and 0 < int(counts[5][0]) < 50


def test_without_the_pack_offline_says_what_is_missing(
    config: Path, server: BadServer, tmp_path: Path
) -> None:
    for mirror in ("/no/mirror", "http://127.0.0.1:9"):
        found = run(config, server, tmp_path / "cache", mirror)
        assert found.returncode == 1
        assert found.stderr.count("\n") == 1
        assert "a/b: de-en/train could not be had" in found.stderr
        assert "the network is not to be used" in found.stderr


def test_pack_serves_by_url_too(
    config: Path, origin: Path, server: BadServer, tmp_path: Path
) -> None:
    mirror = tmp_path / "packed"
    pack(loaded(config, server), mirror, Sources(tmp_path / "cache", str(origin)))
    server.files = {
        f"m/{path.relative_to(mirror)}": path.read_bytes()
        for path in mirror.rglob("*")
        if path.is_file()
    }
    sources = Sources(tmp_path / "cache2", f"{server.url}/m")
    again = pack(loaded(config, server), tmp_path / "packed2", sources)
    sums = [(folder / "SHA256SUMS").read_text() for folder in (mirror, tmp_path / "packed2")]
    assert sums[0] == sums[1]
    assert len(again.files) == 4


def test_packing_again_keeps_what_other_configs_need(
    config: Path, origin: Path, server: BadServer, tmp_path: Path
) -> None:
    mirror = tmp_path / "packed"
    sources = Sources(tmp_path / "cache", str(origin))
    pack(load_config(config, ["data.train=[hub:a/b/de-en:test]"]), mirror, sources)
    (mirror / "tatoeba" / "deu-eng.zip").write_bytes(b"cut")
    pack(loaded(config, server), mirror, sources)
    names = set(read_sums(mirror / "SHA256SUMS"))
    assert {"a/b/de-en/test-00000-of-00001.parquet", "tatoeba/deu-eng.zip"} < names
    assert len((mirror / "tatoeba" / "deu-eng.zip").read_bytes()) > 3


def test_folder_that_cannot_be_written(
    config: Path, origin: Path, server: BadServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        pack(loaded(config, server), tmp_path / "file", Sources(tmp_path / "cache", str(origin)))
