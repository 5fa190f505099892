"""nmt prepare and nmt data report name what looks wrong with a corpus, and nothing of its twin."""

import random
import re
from pathlib import Path

from conftest import Cli
from prepared import Pairs, corpora, write_corpus, write_small, write_vocab

ROWS = "look misaligned, offset +1: the target of row k seems to stand in row k+1."


def timetable() -> Pairs:
    """Return 200 pairs with a number each, in no order of the numbers."""
    numbers = random.Random(4).sample(range(1000, 9999), 200)
    return [
        (f"The train {n} is due at {n % 24}.", f"Der Zug {n} kommt um {n % 24}.") for n in numbers
    ]


def spoilt() -> dict[str, tuple[Pairs, list[str]]]:
    """Return corpora by name, each with the alarms that it deserves."""
    clean = timetable()
    src, tgt = map(list, zip(*clean, strict=True))
    tgt[80:120] = [tgt[119], *tgt[80:119]]
    return {
        "clean": (clean, []),
        "shifted": (list(zip(src, tgt, strict=True)), [f"rows 81-119 {ROWS}"]),
        "swapped": (
            [(tgt, src) for src, tgt in clean],
            [
                "columns look swapped in 100.0% of the pairs that tell (200 of 200): source en and "
                "target de are declared, but they read the other way round."
            ],
        ),
        "cyrillic": (
            [*(("Поезд идёт на восток.", tgt) for _, tgt in clean[:50]), *clean[50:]],
            ["source: script Cyrl, expected Latn, in 25.0% of the rows (50 of 200)."],
        ),
    }


def alarms_by_corpus(said: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        if corpus := re.search(r"(\w+)\.de: [\d,]+ pairs", line):
            name = corpus[1]
            found[name] = []
        if line.startswith("  ALARM: "):
            found[name].append(line.removeprefix("  ALARM: "))
    return found


def test_a_spoilt_corpus_is_named_and_its_clean_twin_is_not(cli: Cli, tmp_path: Path) -> None:
    config = write_small(tmp_path)
    expected = {name: alarms for name, (_, alarms) in spoilt().items()}
    for name, (pairs, _) in spoilt().items():
        write_corpus(tmp_path, name, pairs)
    sets = [corpora(tmp_path, *expected), "clean.dedup=none"]
    sets.append(f"vocab.model={write_vocab(tmp_path / 'bytes.model')}")
    options = [word for override in sets for word in ("--set", override)]
    done = cli("prepare", config, "--run", tmp_path / "run", "--workers", 1, *options)
    assert alarms_by_corpus(done.stdout) == expected
    assert alarms_by_corpus(cli("data", "report", tmp_path / "run").stdout) == expected
