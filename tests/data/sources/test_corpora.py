"""Every kind of corpus yields the same rows: line, source, target, row k with row k."""

import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from bad_server import bad_server

from nmt.config import CorpusSpec, FilePath
from nmt.data.sources.corpora import SCHEMA, Corpus, Sources, open_corpus
from nmt.data.sources.origins import split_of
from nmt.errors import UserError
from nmt.lines import read_lines

PARTS = ("train", "dev", "test")


def opened(spec: CorpusSpec, sources: Sources, src: str = "en", tgt: str = "de") -> Corpus:
    return open_corpus(spec, src_lang=src, tgt_lang=tgt, default_split="train", sources=sources)


def rows(corpus: Corpus, max_rows: int = 10_000) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in corpus.batches(max_rows):
        assert batch.schema == SCHEMA
        assert 0 < batch.num_rows <= max_rows
        found.extend(zip(*batch.to_pydict().values(), strict=True))
    return found


def written(path: Path, content: bytes) -> FilePath:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return FilePath(str(path))


@pytest.fixture
def here(tmp_path: Path) -> Sources:
    return Sources(tmp_path / "cache", str(tmp_path / "mirror"))


def test_two_files_side_by_side(tmp_path: Path, here: Sources) -> None:
    src = written(tmp_path / "a.en", "one\u2028still one\ntwo\x85still two\n\rthree".encode())
    tgt = written(tmp_path / "a.de.gz", b"eins\nzwei\ndrei\n")
    corpus = opened(CorpusSpec(src=src, tgt=tgt, weight=2.0), here)
    assert (corpus.name, corpus.weight) == (f"{src} {tgt}", 2.0)
    assert corpus.inputs == (Path(src), Path(tgt))
    expected = [
        (1, "one\u2028still one", "eins"),
        (2, "two\x85still two", "zwei"),
        (3, "\rthree", "drei"),
    ]
    assert rows(corpus) == expected
    assert rows(corpus, max_rows=2) == expected


@pytest.mark.parametrize(("num_src", "num_tgt"), [(5, 4), (4, 5), (5, 0)])
def test_unequal_sides_are_refused_before_any_row(
    tmp_path: Path, here: Sources, num_src: int, num_tgt: int
) -> None:
    src = written(tmp_path / "a.en", b"x\n" * num_src)
    tgt = written(tmp_path / "a.de", b"y\n" * num_tgt)
    with pytest.raises(UserError) as caught:
        opened(CorpusSpec(src=src, tgt=tgt), here)
    assert f"{src} has {num_src} lines and {tgt} has {num_tgt}" in str(caught.value)


def test_a_last_line_without_its_end_counts(tmp_path: Path, here: Sources) -> None:
    src = written(tmp_path / "a.en", b"x\n" * 5)
    tgt = written(tmp_path / "a.de", b"y\n" * 4 + b"y")
    assert len(rows(opened(CorpusSpec(src=src, tgt=tgt), here))) == 5


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_tsv_takes_two_columns(tmp_path: Path, here: Sources, name: str) -> None:
    tsv = written(tmp_path / name, b"one\teins\nt\x0bwo\tzwei\tCC BY\tmore\n\t\n")
    corpus = opened(CorpusSpec(tsv=tsv), here)
    assert (corpus.name, corpus.inputs) == (tsv, (Path(tsv),))
    assert rows(corpus) == [(1, "one", "eins"), (2, "t\x0bwo", "zwei"), (3, "", "")]


def test_sides_from_one_archive_by_url(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("d/a.en", "one\ntwo\n")
        archive.writestr("d/a.de.gz", gzip.compress(b"eins\nzwei\n"))
    with bad_server() as server:
        server.files = {"get/a.zip": stream.getvalue()}
        url = f"{server.url}/get/a.zip"
        spec = CorpusSpec(src=FilePath(f"{url}#d/a.en"), tgt=FilePath(f"{url}#d/a.de.gz"))
        corpus = opened(spec, Sources(tmp_path))
        assert server.requests == [("get/a.zip", "")]
    assert rows(corpus) == [(1, "one", "eins"), (2, "two", "zwei")]
    assert corpus.name == f"{url}#d/a.en {url}#d/a.de.gz"
    host = url.split("/")[2]
    assert corpus.inputs == (tmp_path / "urls" / host / "get" / "a.zip",)
    assert corpus.mirrored == {f"urls/{host}/get/a.zip": corpus.inputs[0]}
    again = opened(spec, Sources(tmp_path, offline=True))
    assert rows(again) == rows(corpus)


def test_tsv_in_a_local_archive_and_by_url(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("a.tsv", "one\teins\ntwo\n")
    corpus = opened(CorpusSpec(tsv=FilePath(str(archive))), Sources(tmp_path / "cache"))
    assert (corpus.inputs, corpus.mirrored) == ((archive,), {})
    with pytest.raises(UserError, match=r"a\.zip, line 2: has one column"):
        rows(corpus)
    with bad_server() as server:
        server.files = {"a.tsv.xz": lzma.compress(b"one\teins\n")}
        tsv = FilePath(f"{server.url}/a.tsv.xz")
        assert rows(opened(CorpusSpec(tsv=tsv), Sources(tmp_path))) == [(1, "one", "eins")]


def test_local_file_may_be_called_like_a_member(tmp_path: Path, here: Sources) -> None:
    tsv = written(tmp_path / "a.zip#b", b"one\teins\n")
    assert rows(opened(CorpusSpec(tsv=tsv), here)) == [(1, "one", "eins")]


def test_tsv_line_with_one_column(tmp_path: Path, here: Sources) -> None:
    tsv = written(tmp_path / "a.tsv", b"one\teins\ntwo zwei\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 2: has one column"):
        rows(opened(CorpusSpec(tsv=tsv), here))


def test_latin1_names_file_line_and_byte(tmp_path: Path, here: Sources) -> None:
    src = written(tmp_path / "a.en", b"one\ntwo\n")
    tgt = written(tmp_path / "a.de", "eins\nzw\xf6lf\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"a\.de, line 2: byte 0xf6 at position 3"):
        opened(CorpusSpec(src=src, tgt=tgt), here)


@pytest.mark.parametrize("spec", [{"src": "a.en", "tgt": "a.de"}, {"tsv": "a.tsv"}])
def test_missing_files_are_named_at_once(
    tmp_path: Path, here: Sources, spec: dict[str, str]
) -> None:
    paths = {key: FilePath(str(tmp_path / name)) for key, name in spec.items()}
    with pytest.raises(UserError, match=f"{tmp_path}/a"):
        opened(CorpusSpec(**paths), here)


def test_archive_is_cut_by_sentence_and_keeps_its_line_numbers(
    tmp_path: Path, here: Sources
) -> None:
    content = "".join(f"Sentence {k // 2}.\tSatz {k}.\tCC BY\n" for k in range(4000))
    archive = tmp_path / "mirror" / "tatoeba" / "deu-eng.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("deu.txt", content)
    found = {name: rows(opened(CorpusSpec(f"tatoeba/{name}"), here)) for name in PARTS}
    every = sorted(row for part in found.values() for row in part)
    assert every == [(k + 1, f"Sentence {k // 2}.", f"Satz {k}.") for k in range(4000)]
    assert all(split_of(row[1]) == name for name, part in found.items() for row in part)
    assert 10 < len(found["dev"]) < 80 and 10 < len(found["test"]) < 80
    swapped = rows(opened(CorpusSpec("tatoeba/dev"), here, "de", "en"))
    assert swapped == [(line, tgt, src) for line, src, tgt in found["dev"]]


def test_archive_member_that_is_missing(tmp_path: Path, here: Sources) -> None:
    written(tmp_path / "cache" / "tatoeba" / "deu-eng.zip", b"no zip")
    with pytest.raises(UserError, match=r"deu-eng\.zip#deu\.txt: cannot be read"):
        rows(opened(CorpusSpec("tatoeba"), here))


def test_side_from_a_tar_archive_in_the_cache(tmp_path: Path) -> None:
    archive = tmp_path / "flores" / "flores200_dataset.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as files:
        for code, word in (("eng_Latn", b"one"), ("jpn_Jpan", "\u4e00".encode())):
            member = tarfile.TarInfo(f"flores200_dataset/dev/{code}.dev")
            member.size = len(word) + 1
            files.addfile(member, io.BytesIO(word + b"\n"))
    corpus = opened(CorpusSpec("flores/dev"), Sources(tmp_path), "ja", "en")
    assert rows(corpus) == [(1, "\u4e00", "one")]
    assert [path.name for path in corpus.inputs] == ["flores-dev.ja.gz", "flores-dev.en.gz"]
    with pytest.raises(UserError, match="deu_Latn"):
        opened(CorpusSpec("flores/dev"), Sources(tmp_path), "ja", "de")


def test_captions_need_no_file_and_go_both_ways(here: Sources) -> None:
    there = opened(CorpusSpec("captions/dev"), here)
    back = opened(CorpusSpec("captions/dev"), here, "de", "en")
    first, mirrored = next(there.batches(3)), next(back.batches(3))
    assert there.inputs == ()
    assert first["line"].to_pylist() == [1, 2, 3]
    assert first["src"].equals(mirrored["tgt"]) and first["tgt"].equals(mirrored["src"])


def test_multi30k_of_the_mirror(mirror: Path, tmp_path: Path) -> None:
    corpus = opened(CorpusSpec("multi30k"), Sources(tmp_path, str(mirror)))
    found = rows(corpus)
    assert corpus.name == "multi30k/train"
    assert [row[0] for row in found] == list(range(1, 29_001))
    assert [row[1:] for row in found] == list(zip(*map(read_lines, corpus.inputs), strict=True))
    offline = opened(CorpusSpec("multi30k"), Sources(tmp_path, "/no/mirror"))
    assert offline.inputs == corpus.inputs


def test_newstest_with_line_separators_of_the_mirror(mirror: Path, tmp_path: Path) -> None:
    sources = Sources(tmp_path, str(mirror))
    corpus = opened(CorpusSpec("wmt-newstest/newstest2009"), sources)
    found = rows(corpus)
    assert len(found) == 2525
    assert sum(row[2].count("\x85") for row in found) == 8


def test_flores_of_the_mirror(mirror: Path, tmp_path: Path) -> None:
    sources = Sources(tmp_path, str(mirror))
    assert len(rows(opened(CorpusSpec("flores/dev"), sources, "ja", "zh"))) == 997


def test_tatoeba_of_the_mirror(mirror: Path, tmp_path: Path) -> None:
    sources = Sources(tmp_path, str(mirror))
    found = {name: rows(opened(CorpusSpec(f"tatoeba/{name}"), sources)) for name in PARTS}
    assert {name: len(part) for name, part in found.items()} == {
        "train": 166_771,
        "dev": 1_491,
        "test": 1_551,
    }
    folded = {
        name: {" ".join(row[1].casefold().split()) for row in part} for name, part in found.items()
    }
    assert not folded["train"] & (folded["dev"] | folded["test"])
    assert not folded["dev"] & folded["test"]
