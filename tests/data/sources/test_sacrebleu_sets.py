"""sacreBLEU's sets come as files of a mirror; it is we who fetch and unpack them."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer, bad_server
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from nmt.config import CorpusSpec
from nmt.data.sources.corpora import Corpus, Sources, open_corpus
from nmt.data.sources.sacrebleu_sets import write_side
from nmt.data.sources.transfer import Patience
from nmt.errors import UserError

LINES = {"src.en": ["One.", "Two &amp; three."], "ref.de": ["Eins.", "Zwei &amp; drei."]}


def archive_of(lines: dict[str, list[str]]) -> bytes:
    """Return a test set as the WMT hands it out."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, texts in lines.items():
            segments = "".join(f'<seg id="{k}">{text}</seg>\n' for k, text in enumerate(texts))
            body = f'<doc docid="d" genre="news" origlang="en">\n{segments}</doc>\n'.encode()
            info = tarfile.TarInfo(f"sgm/mine-{name}.sgm")
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return stream.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BadServer]:
    """Serves a set that sacreBLEU knows as `mine`."""
    with bad_server() as running:
        body = archive_of(LINES)
        running.files = {"get/mine.tgz": body}
        known = FakeSGMLDataset(
            "mine",
            data=[f"{running.url}/get/mine.tgz"],
            md5=[hashlib.md5(body).hexdigest()],
            langpairs={"en-de": ["sgm/mine-src.en.sgm", "sgm/mine-ref.de.sgm"]},
        )
        monkeypatch.setitem(DATASETS, "mine", known)
        yield running


def opened(sources: Sources) -> Corpus:
    spec = CorpusSpec("sacrebleu/mine")
    return open_corpus(spec, src_lang="en", tgt_lang="de", default_split="test", sources=sources)


def test_set_becomes_a_file_a_side(server: BadServer, tmp_path: Path) -> None:
    corpus = opened(Sources(tmp_path))
    assert corpus.name == "sacrebleu/mine/en-de"
    folder = tmp_path / "sacrebleu" / "mine"
    assert corpus.inputs == (folder / "en-de.en.gz", folder / "en-de.de.gz")
    assert [batch.to_pylist() for batch in corpus.batches()] == [
        [
            {"line": 1, "src": "One.", "tgt": "Eins."},
            {"line": 2, "src": "Two &amp; three.", "tgt": "Zwei &amp; drei."},
        ]
    ]
    assert server.requests == [("get/mine.tgz", "")]
    assert list(corpus.mirrored) == ["sacrebleu/mine/en-de.en.gz", "sacrebleu/mine/en-de.de.gz"]
    assert opened(Sources(tmp_path, offline=True)).inputs == corpus.inputs


def test_archive_that_was_cut_is_not_taken_for_the_whole(server: BadServer, tmp_path: Path) -> None:
    server.faults = ["cut", "503"]
    corpus = opened(Sources(tmp_path, patience=Patience(tries=3, pause_s=0.001)))
    assert sum(batch.num_rows for batch in corpus.batches()) == 2


def test_other_archive_than_sacrebleu_states(server: BadServer, tmp_path: Path) -> None:
    server.files["get/mine.tgz"] = archive_of({})
    with pytest.raises(UserError, match=r"sacreBLEU's mine: .*mine\.tgz: its MD5 is .*expected"):
        opened(Sources(tmp_path))


def test_number_of_lines_is_checked(server: BadServer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mine: mine\.en-de\.ref has 2 lines, expected 3"):
        write_side(Sources(tmp_path), "mine", "en-de", "de", 3, tmp_path / "a.gz")
    write_side(Sources(tmp_path), "mine", "en-de", "de", 2, tmp_path / "a.gz")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"Eins.\nZwei &amp; drei.\n"


def test_offline_says_what_is_missing(server: BadServer, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        opened(Sources(tmp_path, offline=True))
    message = str(caught.value)
    assert message.startswith("sacrebleu/mine/en-de.en.gz: could not be had (sacreBLEU's mine")
    assert "not asked" in message and "\n" not in message
    assert server.requests == []
