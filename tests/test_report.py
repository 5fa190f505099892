"""nmt data report and nmt data explain, on what a real preparation left."""

from pathlib import Path

import numpy as np
import pytest
from prepared import prepare_small, some_pairs, write_small

from nmt.config import load_config
from nmt.data.examples import write_examples
from nmt.data.shards import write_corpus
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.errors import UserError
from nmt.report import _histogram, explain, report
from nmt.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("report")
    pairs = some_pairs(60, seed=1)
    pairs[4] = ("", pairs[4][1])
    pairs[5] = ("ant\u2028bat cat", "lo mi na")
    pairs[6:10] = [pairs[0]] * 4
    config = write_small(folder, pairs)
    prepared, _ = prepare_small(config)
    loaded = load_config(config)
    corpus = open_corpus(
        loaded.data.train[0],
        src_lang="en",
        tgt_lang="de",
        default_split="train",
        sources=Sources(folder / "cache"),
    )
    write_corpus(corpus, folder / "raw.arrow")
    write_examples(prepared, {corpus.name: folder / "raw.arrow"})
    return prepared


def test_report_counts_by_reason_and_shows_examples(run: RunFolder) -> None:
    lines = list(report(run))
    assert lines[0].endswith("60 pairs, 55 kept")
    src, tgt = some_pairs(60, seed=1)[0]
    at = lines.index("  dropped, duplicate: 4")
    shown = [f"    line {line}: {src} ||| {tgt}" for line in (7, 8, 9)]
    assert lines[at + 1 : at + 4] == shown
    assert not lines[at + 4].startswith("    ")
    at = lines.index("  dropped, empty source: 1")
    assert lines[at + 1].startswith("    line 5:  ||| ")
    assert any(line == "    line 6: ant\\u2028bat cat ||| lo mi na" for line in lines)


def test_report_shows_how_long_the_pairs_are(run: RunFolder) -> None:
    lines = list(report(run))
    for side in ("source", "target"):
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"{side} length in tokens"))
        bars = [line.split() for line in lines[at + 1 :]]
        bars = bars[: bars.index([])] if [] in bars else bars
        assert sum(int(bar[1]) for bar in bars) == 55
        assert max(len(bar[2]) for bar in bars if len(bar) > 2) == 40


def test_long_tails_share_the_last_bar() -> None:
    lines = list(_histogram("source", np.array([1, 2, 30, 1000] * 40 + [20_000])))
    assert lines[0].endswith("median 30, mean 380.9, longest 20000")
    assert lines[1].split() == ["1-91", "120", "#" * 40]
    assert lines[-1].split() == ["1002+", "1", "#"]
    assert len(lines) == 13


def test_explain_tells_of_dropped_repaired_and_kept_lines(run: RunFolder) -> None:
    name = next(report(run)).partition(": 60 pairs")[0]
    assert list(explain(run, f"{name}:7")) == [f"{name}, line 7: dropped, duplicate"]
    repaired = list(explain(run, f"{name}:6"))
    assert repaired[0].startswith(f"{name}, line 6: repaired, ")
    assert repaired[1] == f"{name}, line 6: kept, row 4 of the token store"
    assert repaired[2] == "  src: ant bat cat"
    src, tgt = some_pairs(60, seed=1)[59]
    kept = list(explain(run, f"{name}:60"))
    assert kept[0] == f"{name}, line 60: kept, row 54 of the token store"
    assert kept[1] == f"  src: {src}" and kept[4] == f"  tgt: {tgt}"
    assert kept[2].endswith(" </s>") and kept[3].endswith(" 2")
    for line in (0, 61):
        (nothing,) = explain(run, f"{name}:{line}")
        assert nothing == f"{name}, line {line}: the corpus has no such line."


def test_a_corpus_of_two_files_may_be_called_by_either(run: RunFolder) -> None:
    assert list(explain(run, "train.de:7")) == list(explain(run, "train.en:7"))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("train.en", "expected CORPUS:LINE"),
        ("train.en:x", "expected CORPUS:LINE"),
        ("multi30k/train:3", "'multi30k/train' names 0 corpora of this run; expected one of: "),
    ],
)
def test_a_place_that_is_none_is_refused(run: RunFolder, place: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        list(explain(run, place))
    assert message in str(error.value)


def test_a_folder_that_is_not_prepared_is_refused(run: RunFolder, tmp_path: Path) -> None:
    empty = RunFolder(tmp_path)
    with pytest.raises(UserError, match="is no run folder"):
        list(report(empty))
    empty.save_config(run.load_config())
    with pytest.raises(UserError, match="run nmt prepare first"):
        list(explain(empty, "train.en:1"))
