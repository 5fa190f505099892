"""A mirror that was packed for a config is all that its preparation needs, without a network."""

import json
from pathlib import Path

import pytest
from conftest import Cli

CONFIG = """\
src: en
tgt: de
data:
  train: [{name: multi30k/val, weight: 2}, captions/dev]
  dev: [multi30k/test_2017_mscoco]
  test: [wmt-newstest/newstest2015]
vocab: {size: 1000}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_a_packed_mirror_is_enough(
    cli: Cli, mirror: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    cli("data", "pack", config, tmp_path / "packed", "--mirror", mirror)
    files = sorted(
        str(path.relative_to(tmp_path / "packed")) for path in tmp_path.glob("packed/*/*")
    )
    names = ["multi30k/test_2017_mscoco", "multi30k/val", "wmt-newstest/newstest2015"]
    assert files == [f"{name}.{side}.gz" for name in names for side in ("de", "en")]
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "other-cache"))
    run = tmp_path / "run"
    done = cli("prepare", config, "--run", run, "--mirror", tmp_path / "packed", "--offline")
    assert "multi30k/val: 1,014 pairs" in done.stdout
    assert "captions/dev: 500 pairs, 500 kept" in done.stdout
    assert "ALARM" not in done.stdout
    statistics = json.loads((run / "data/statistics.json").read_text())
    assert [corpus["weight"] for corpus in statistics["corpora"]] == [2.0, 1.0]
    told = cli("data", "explain", run, "multi30k/val:7").stdout
    assert told.startswith("multi30k/val, line 7: kept, row ")
    assert "captions/dev: 500 pairs, 500 kept" in cli("data", "report", run).stdout


def test_offline_says_what_is_missing(
    cli: Cli, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    done = cli("prepare", config, "--run", tmp_path / "run", "--offline", status=2)
    assert done.stderr.count("\n") == 1
    assert "multi30k/val.en.gz" in done.stderr
    assert not (tmp_path / "run").exists()


def test_one_corpus_in_full(cli: Cli) -> None:
    said = cli("corpora", "multi30k").stdout
    for fact in ("licence", "29,000", "Elliott", "test_2016_flickr"):
        assert fact in said
    assert "no corpus has this name" in cli("corpora", "multi3k", status=2).stderr
