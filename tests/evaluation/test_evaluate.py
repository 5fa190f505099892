"""nmt eval on files: digits, two references, and what is refused."""

import json
from pathlib import Path

import pytest
from conftest import Cli
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

HYPOTHESES = ["The cat sat on the mat.", "A dog barked loudly at us.", "It rains today."]
REFERENCES = ["The cat sat on a mat.", "A dog barked at us loudly.", "Today it is raining."]
OTHERS = ["The cat is on the mat.", "A dog barked loudly at them.", "It rains today."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES), ("other", OTHERS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def test_json_has_every_digit_of_sacrebleu(cli: Cli, folder: Path) -> None:
    said = cli("eval", "--hyp", folder / "hyp", "--ref", folder / "ref", "--json").stdout
    score = json.loads(said)
    assert score["bleu"] == BLEU().corpus_score(HYPOTHESES, [REFERENCES]).score
    assert score["chrf"] == CHRF().corpus_score(HYPOTHESES, [REFERENCES]).score
    assert score["num_lines"] == 3


def test_text_has_two_decimals_and_whole_signatures(cli: Cli, folder: Path) -> None:
    files = ["--hyp", folder / "hyp", "--ref", folder / "ref", "--ref", folder / "other"]
    lines = cli("eval", *files, env={"COLUMNS": "20", "PATH": ""}).stdout.splitlines()
    bleu = BLEU().corpus_score(HYPOTHESES, [REFERENCES, OTHERS]).score
    assert lines[0].startswith(f"BLEU {bleu:.2f}, 95 % interval ")
    assert lines[1].startswith("nrefs:2|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert [line.split()[0] for line in lines[::2]] == ["BLEU", "chrF2", "TER"]


def test_files_of_unequal_length_are_refused(cli: Cli, folder: Path) -> None:
    with (folder / "ref").open("a") as file:
        file.write("one more\n")
    done = cli("eval", "--hyp", folder / "hyp", "--ref", folder / "ref", status=2)
    assert done.stderr.count("\n") == 1
    for fact in (f"{folder}/hyp", "3", f"{folder}/ref", "4"):
        assert fact in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--hyp", "x"], ["--ref", "x"], ["run", "--hyp", "x", "--ref", "y"]]
)
def test_either_a_run_or_files(cli: Cli, arguments: list[str]) -> None:
    done = cli("eval", *arguments, status=2)
    assert "takes either RUN, or --hyp FILE with --ref FILE" in done.stderr
