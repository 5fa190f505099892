"""configs/wmt14.en-de.base.yaml runs from a local copy in the hub's layout."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Cli

from nmt.lines import read_lines

CONFIG = Path(__file__).parent.parent / "configs" / "wmt14.en-de.base.yaml"
# Everything but the sizes is as in the config.
SMALL = [
    "vocab.size=4000",
    "model={d_model: 32, d_ff: 64, num_heads: 4}",
    "training.batch_tokens=6000",
    "training.max_steps=2",
    "training.log_every=1",
]


def write_hub_copy(folder: Path, newstests: Path) -> None:
    """Write parquet files as the hub's wmt/wmt14 has them, from the sentences of newstests."""
    sets = {"train": [2008, 2009, 2010], "validation": [2013], "test": [2014]}
    for split, years in sets.items():
        for number, year in enumerate(years):
            sides = (read_lines(newstests / f"newstest{year}.{side}.gz") for side in ("de", "en"))
            rows = [{"de": de, "en": en} for de, en in zip(*sides, strict=True)]
            path = folder / f"wmt/wmt14/de-en/{split}-{number:05d}-of-{len(years):05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            # Of the held-out sets the head is enough for two validations.
            rows = rows if split == "train" else rows[:40]
            pq.write_table(pa.table({"translation": pa.array(rows)}), path)


def test_the_first_updates_run_end_to_end(cli: Cli, mirror: Path, tmp_path: Path) -> None:
    write_hub_copy(tmp_path / "copy", mirror / "wmt-newstest")
    run = tmp_path / "run"
    options = [word for pair in SMALL for word in ("--set", pair)]
    done = cli("train", CONFIG, "--run", run, "--mirror", tmp_path / "copy", *options)
    assert "wmt14/de-en/train: 7,065 pairs" in done.stdout
    assert "finished (2 updates)" in done.stdout
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [(record["kind"], record["step"]) for record in records] == [
        ("train", 1),
        ("train", 2),
        ("dev", 2),
    ]
    assert records[0]["tokens"] > 2000
    translated = cli("translate", run, "--beam", 2, input="Good morning.\n\nA house.\n").stdout
    assert translated.count("\n") == 3


@pytest.mark.parametrize("name", ["wmt14.en-de.base", "wmt14.en-de.big", "wmt14.en-fr.base"])
def test_without_network_and_copy_one_sentence_says_so(cli: Cli, tmp_path: Path, name: str) -> None:
    config = CONFIG.with_name(f"{name}.yaml")
    done = cli("train", config, "--run", tmp_path / "run", status=2)
    assert done.stderr.count("\n") == 1
    assert "wmt/wmt14" in done.stderr
    assert "could not be had from the Hugging Face hub" in done.stderr
    assert "--mirror or NMT_MIRROR" in done.stderr
    assert not (tmp_path / "run").exists()
