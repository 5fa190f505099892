"""Dev and test files hold the lines as they were written, N lines for N."""

from pathlib import Path

import pyarrow as pa
import pytest

from nmt.config import CorpusSpec, DataConfig, FilePath
from nmt.data.held_out import write_held_out
from nmt.data.overlap import HeldOut
from nmt.data.sources.corpora import SCHEMA, Corpus, Sources, open_corpus
from nmt.errors import UserError
from nmt.lines import read_lines
from nmt.run_folder import RunFolder

Written = tuple[HeldOut, dict[str, int], list[Corpus]]


def spec(folder: Path, name: str, src: str, tgt: str) -> CorpusSpec:
    folder.mkdir(exist_ok=True)
    for ending, text in (("en", src), ("de", tgt)):
        (folder / f"{name}.{ending}").write_bytes(text.encode())
    src_file, tgt_file = (FilePath(str(folder / f"{name}.{ending}")) for ending in ("en", "de"))
    return CorpusSpec(src=src_file, tgt=tgt_file)


def write(folder: Path, dev: list[CorpusSpec], test: list[CorpusSpec]) -> Written:
    sources = Sources(folder / "cache")

    def open_split(spec: CorpusSpec, split: str) -> Corpus:
        return open_corpus(spec, src_lang="en", tgt_lang="de", default_split=split, sources=sources)

    return write_held_out(
        DataConfig(dev=tuple(dev), test=tuple(test)), RunFolder(folder / "run"), open_split
    )


def lines(folder: Path, name: str) -> list[str]:
    return list(read_lines(folder / "run" / "data" / name))


def test_lines_are_kept_as_they_were_written(tmp_path: Path) -> None:
    src = "  two  blanks \r\n\nnbsp\u00a0\nls\u2028nel\x85\r\n&amp; ▁ cafe\u0301\n \n"
    dev = spec(tmp_path, "d", src, "1\n2\n3\n4\n5\n6")
    _, counts, corpora = write(tmp_path, [dev], [])
    assert lines(tmp_path, "dev.src") == [
        "  two  blanks ",
        "",
        "nbsp\u00a0",
        "ls\u2028nel\x85",
        "&amp; ▁ cafe\u0301",
        " ",
    ]
    assert lines(tmp_path, "dev.tgt") == list("123456")
    assert counts == {"dev": 6}
    assert [corpus.inputs for corpus in corpora] == [(Path(dev.src), Path(dev.tgt))]


def test_dev_sets_are_one_and_test_sets_are_apart(tmp_path: Path) -> None:
    dev = [spec(tmp_path, "d1", "a\nb\n", "1\n2\n"), spec(tmp_path, "d2", "c\n", "3\n")]
    test = [spec(tmp_path, "t1", "d\n", "4\n"), spec(tmp_path, "t2", "e\nf\n", "5\n6\n")]
    _, counts, corpora = write(tmp_path, dev, test)
    assert counts == {"dev": 3, "test.t1.de": 1, "test.t2.de": 2}
    assert lines(tmp_path, "dev.src") == ["a", "b", "c"]
    assert lines(tmp_path, "dev.tgt") == ["1", "2", "3"]
    assert lines(tmp_path, "test.t1.de.tgt") == ["4"]
    assert lines(tmp_path, "test.t2.de.src") == ["e", "f"]
    assert len(corpora) == 4


def test_a_catalogue_name_says_its_split_itself_or_takes_that_of_its_use(tmp_path: Path) -> None:
    test = [CorpusSpec(name="captions"), CorpusSpec(name="captions/dev")]
    _, counts, corpora = write(tmp_path, [CorpusSpec(name="captions")], test)
    assert [corpus.name for corpus in corpora] == ["captions/dev", "captions/test", "captions/dev"]
    assert set(counts) == {"dev", "test.captions", "test.captions/dev"}
    assert lines(tmp_path, "test.captions.dev.src") == lines(tmp_path, "dev.src")
    assert lines(tmp_path, "test.captions.src") != lines(tmp_path, "dev.src")


def test_every_set_is_held_out(tmp_path: Path) -> None:
    dev = spec(tmp_path, "d", "in dev\n", "von dev\n")
    test = spec(tmp_path, "t", "in test\n", "von test\n")
    held_out, _, _ = write(tmp_path, [dev], [test])
    pairs = [("in dev", "x"), ("in test", "x"), ("x", "von dev"), ("x", "von test"), ("x", "y")]
    rows = [{"line": n, "src": src, "tgt": tgt} for n, (src, tgt) in enumerate(pairs, 1)]
    found = held_out.find(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    assert [any(sides) for sides in found] == [True, True, True, True, False]


def test_a_test_set_named_twice_is_refused(tmp_path: Path) -> None:
    dev, test = CorpusSpec(name="captions"), CorpusSpec(name="captions/test")
    with pytest.raises(
        UserError, match="two sets have one name among captions/test, captions/test; name each once"
    ):
        write(tmp_path, [dev], [test, test])


@pytest.mark.parametrize("place", ["dev", "test"])
def test_a_set_without_a_sentence_is_refused(tmp_path: Path, place: str) -> None:
    empty = spec(tmp_path, "none", "", "")
    some = spec(tmp_path, "some", "a\n", "1\n")
    sets = {"dev": ([empty], [some]), "test": ([some], [empty])}[place]
    with pytest.raises(UserError, match=r"none\.en \S+none\.de: holds no sentence"):
        write(tmp_path, *sets)
