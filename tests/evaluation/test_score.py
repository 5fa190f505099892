"""Scores against sacreBLEU's own command line and the official scores of WMT23; what is refused."""

import gzip
import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sacrebleu import __version__ as sacrebleu_version
from sacrebleu.metrics.chrf import CHRF

from nmt.errors import UserError
from nmt.evaluation.score import _score, _Text, corpus_bleu, score_files, score_lines

REFERENCE = [
    "Eine kleine Katze schläft auf dem roten Sofa.",
    "Zwei Kinder spielen im Garten mit einem Ball, und ein Hund schaut zu.",
    'Der Mann sagte: "Das ist nicht mein Fahrrad!"',
    "Am Morgen fuhr der letzte Bus um 7:45 Uhr zum Bahnhof.",
    "Wer hat das Fenster geöffnet?",
    "Die Preise stiegen 2019 um 3,5 % gegenüber dem Vorjahr.",
]
SECOND_REFERENCE = [
    "Eine kleine Katze schläft auf dem roten Kanapee.",
    "Zwei Kinder spielen mit einem Ball im Garten, ein Hund sieht zu.",
    '"Das ist nicht mein Rad", sagte der Mann.',
    "Der letzte Bus zum Bahnhof fuhr morgens um 7:45 Uhr.",
    "Wer hat das Fenster aufgemacht?",
    "Im Jahr 2019 stiegen die Preise um 3,5 %.",
]
HYPOTHESES = [
    "Eine kleine Katze schläft auf dem Sofa.",
    "Zwei Kinder spielen mit einem Ball im Garten und ein Hund schaut zu.",
    'Der Mann sagte: "Das ist nicht mein Rad!"',
    "",
    "Wer hat das Fenster aufgemacht?",
    "Die Preise stiegen 2019 um 3,5 % im Vergleich zum Vorjahr.",
]


def write(path: Path, lines: Sequence[str], end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def sacrebleu_cli(hypotheses: Path, references: list[Path], *options: str) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "sacrebleu", *map(str, references), "-i", str(hypotheses)]
    command += ["-m", "bleu", "chrf", "ter", "-w", "2", "-f", "json", *options]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SACREBLEU")}
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("num_references", [1, 2])
def test_equals_the_command_line_of_sacrebleu(tmp_path: Path, num_references: int) -> None:
    hypotheses = write(tmp_path / "hyp", HYPOTHESES)
    references = [write(tmp_path / "a", REFERENCE), write(tmp_path / "b", SECOND_REFERENCE)]
    references = references[:num_references]
    report = score_files(hypotheses, references)
    with_interval = sacrebleu_cli(hypotheses, references, "--confidence")
    for score, plain in zip((report.bleu, report.chrf, report.ter), with_interval, strict=True):
        assert score.name == plain["name"]
        assert f"{score.value:.2f}" == f"{float(plain['score']):.2f}"
        assert score.signature == plain["signature"]
        mean, half = float(plain["confidence_mean"]), float(plain["confidence_var"])
        assert (score.low, score.high) == pytest.approx((mean - half, mean + half), abs=0.011)


def test_one_list_of_lines_a_reference() -> None:
    one = score_lines(HYPOTHESES, [REFERENCE])
    two = score_lines(HYPOTHESES, [REFERENCE, SECOND_REFERENCE])
    assert two.bleu.value > one.bleu.value
    assert "nrefs:2" in two.bleu.signature


def test_the_signature_is_one_line_and_states_the_version() -> None:
    report = score_lines(HYPOTHESES, [REFERENCE])
    for score in (report.bleu, report.chrf, report.ter):
        assert f"version:{sacrebleu_version}" in score.signature
        assert "|bs:1000|seed:12345|" in score.signature
        assert not set(score.signature) & set(" \n\r\t")


def test_the_interval_holds_the_value_and_narrows_with_more_lines() -> None:
    few = score_lines(HYPOTHESES, [REFERENCE]).chrf
    many = score_lines(HYPOTHESES * 20, [REFERENCE * 20]).chrf
    assert few.low < few.value < few.high
    assert many.value == pytest.approx(few.value)
    assert many.high - many.low < (few.high - few.low) / 2


def test_corpus_bleu_is_the_bleu_of_the_report() -> None:
    references = [REFERENCE, SECOND_REFERENCE]
    assert corpus_bleu(HYPOTHESES, references) == score_lines(HYPOTHESES, references).bleu.value
    assert corpus_bleu(["我们 走了"], [["我们走吧"]], tgt_lang="zh") > 0


def test_equal_text_scores_full_marks() -> None:
    report = score_lines(REFERENCE, [REFERENCE])
    assert report.bleu.value == pytest.approx(100)
    assert report.chrf.value == pytest.approx(100)
    assert report.ter.value == 0
    assert (report.num_lines, report.empty_hypotheses, report.warnings) == (6, [], [])


def test_lowercase_is_said_in_the_signature() -> None:
    upper = [line.upper() for line in REFERENCE]
    assert score_lines(upper, [REFERENCE]).bleu.value < 10
    report = score_lines(upper, [REFERENCE], lowercase=True)
    assert report.bleu.value == pytest.approx(100)
    assert report.chrf.value == pytest.approx(100)
    assert "case:lc" in report.bleu.signature
    assert "case:lc" in report.chrf.signature


@pytest.mark.parametrize(
    ("tgt_lang", "tokeniser"),
    [
        ("", "13a"),
        ("de", "13a"),
        ("pt_BR", "13a"),
        ("zh", "zh"),
        ("zh-Hant", "zh"),
        ("zh_TW", "zh"),
    ],
)
def test_the_tokeniser_follows_the_language(tgt_lang: str, tokeniser: str) -> None:
    report = score_lines(HYPOTHESES, [REFERENCE], tgt_lang=tgt_lang)
    assert f"|tok:{tokeniser}|" in report.bleu.signature


@pytest.mark.parametrize("tgt_lang", ["ja", "ko"])
def test_a_missing_segmenter_is_said(tgt_lang: str) -> None:
    report = score_lines(["猫が寝る"], [["猫が寝た"]], tgt_lang=tgt_lang)
    is_char = "|tok:char|" in report.bleu.signature
    assert is_char or f"|tok:{tgt_lang}-mecab" in report.bleu.signature
    assert any("characters" in warning for warning in report.warnings) == is_char


@pytest.mark.parametrize("end", ["\r\n", " \n", " \t\r\n"])
def test_line_ends_and_outer_blanks_change_nothing(tmp_path: Path, end: str) -> None:
    plain = score_lines(HYPOTHESES, [REFERENCE])
    hypotheses = write(tmp_path / "hyp", HYPOTHESES, end)
    reference = write(tmp_path / "ref", [f" {line}" for line in REFERENCE], end)
    report = score_files(hypotheses, [reference])
    assert (report.bleu, report.chrf, report.ter) == (plain.bleu, plain.chrf, plain.ter)
    assert report.empty_hypotheses == plain.empty_hypotheses
    assert score_files(write(tmp_path / "lf", HYPOTHESES), [reference]).bleu == plain.bleu


def test_files_may_be_compressed(tmp_path: Path) -> None:
    packed = tmp_path / "ref.gz"
    packed.write_bytes(gzip.compress("\n".join(REFERENCE).encode()))
    report = score_files(write(tmp_path / "hyp", HYPOTHESES), [str(packed)])
    assert report.bleu == score_lines(HYPOTHESES, [REFERENCE]).bleu


def test_different_counts_are_refused_with_both(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="4 in the hypotheses and 5 in reference 1;"):
        score_lines(REFERENCE[:4], [REFERENCE[:5]])
    with pytest.raises(UserError, match="6 in the hypotheses and 5 in reference 2;"):
        corpus_bleu(REFERENCE, [REFERENCE, REFERENCE[:5]])
    hypotheses = write(tmp_path / "hyp.txt", REFERENCE[:4])
    reference = write(tmp_path / "ref.txt", REFERENCE[:5])
    with pytest.raises(UserError, match=r"4 in .*hyp\.txt and 5 in .*ref\.txt;"):
        score_files(hypotheses, [reference])


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(UserError, match="no lines to score"):
        score_lines([], [[]])
    with pytest.raises(UserError, match="no reference"):
        score_lines(REFERENCE, [])


def pieces(line: str) -> str:
    return "".join(f" ▁{word}" for word in line.split()).strip()


def joined(line: str) -> str:
    return line.replace("ein", "ei@@ n").replace("e ", "@@ e ").replace("der", "d@@ er")


@pytest.mark.parametrize(
    "lines",
    [
        [pieces(line) for line in REFERENCE[:3]],
        [pieces(REFERENCE[0])],
        [joined(line) for line in REFERENCE],
        ["ein Hun@@"] * 3,
        ["ein Hu ##nd"] * 3,
        ["ein Hu￭ nd"] * 3,
        ["ein</w> Hu nd</w>"] * 3,
        [*(["Ein Hund."] * 94), *([pieces("Ein Hund.")] * 6)],
    ],
    ids=["pieces", "one line", "@@", "@@ at the end", "##", "￭", "</w>", "6 of 100"],
)
def test_sub_words_are_refused(lines: list[str]) -> None:
    plain = ["Ein Hund."] * len(lines)
    with pytest.raises(UserError, match=r"the hypotheses: sub-word.* \d+ of .*detokenise"):
        score_lines(lines, [plain])
    with pytest.raises(UserError, match="reference 1: "):
        score_lines(plain, [lines])


@pytest.mark.parametrize(
    ("odd", "num_warnings"),
    [("Er tippte foo@@ bar.", 1), ("Ein ▁ steht da.", 1), ("@@ -1,3 +1,4 @@ steht im Diff.", 0)],
)
@pytest.mark.parametrize("num_others", [2, 200])
def test_a_trace_of_sub_words_is_not_refused(odd: str, num_warnings: int, num_others: int) -> None:
    lines = [*(["Ein Hund."] * num_others), odd]
    report = score_lines(lines, [["Ein Hund."] * len(lines)])
    assert len(report.warnings) == num_warnings
    for warning in report.warnings:
        assert f"1 of {len(lines)} lines (line {len(lines)})." in warning


def test_four_lines_of_a_hundred_are_a_trace() -> None:
    lines = [*(["Ein Hund."] * 96), *([pieces("Ein Hund.")] * 4)]
    [warning] = score_lines(lines, [["Ein Hund."] * 100]).warnings
    assert "4 of 100 lines (lines 97, 98, 99, 100)" in warning


@pytest.mark.parametrize(
    ("lines", "tgt_lang", "is_warned"),
    [
        (["Ein Hund bellt ."] * 3, "de", True),
        (["Ein Hund , der bellt, schläft."] * 3, "de", True),
        (["Who is there ?"] * 3, "en", True),
        (["It isn &apos;t mine."] * 3, "en", True),
        (["Qui est là ?"] * 3, "fr", False),
        (["Il est là ."] * 3, "fr", True),
        ([*(["Ein Hund bellt."] * 99), "Ein Hund bellt ."], "de", False),
        (["Es kostet .5 Euro ... ungefähr."] * 3, "de", False),
        (["Ein Hund bellt ."] * 150, "de", True),
    ],
)
def test_tokenised_text_is_warned(
    lines: list[str], tgt_lang: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plain = ["Ein Hund bellt."] * len(lines)
    with caplog.at_level(logging.DEBUG):
        report = score_lines(lines, [plain], tgt_lang=tgt_lang)
        assert score_lines(plain, [lines], tgt_lang=tgt_lang).warnings == [
            warning.replace("the hypotheses", "reference 1") for warning in report.warnings
        ]
    assert ["tokeniser" in warning for warning in report.warnings] == [True] * is_warned
    assert not caplog.records


def test_what_is_empty_is_listed_by_line_and_counts_as_zero() -> None:
    report = score_lines(["", *REFERENCE[1:4], " ", "\u00a0"], [REFERENCE])
    assert report.empty_hypotheses == [1, 5, 6]
    assert report.warnings == ["the hypotheses: nothing on lines 1, 5, 6, which counts as zero."]
    assert 0 < report.bleu.value < score_lines(REFERENCE, [REFERENCE]).bleu.value
    report = score_lines(REFERENCE, [[*REFERENCE[:5], ""]])
    assert report.warnings == ["reference 1: nothing on line 6; check the test set."]


def test_resamples_without_a_single_match_still_give_an_interval() -> None:
    report = score_lines(["Hallo.", *[""] * 30], [["Hallo."] * 31])
    assert report.chrf.low < report.chrf.value < report.chrf.high
    assert "5, 6, 7, 8, 9, 10, 11 and 20 more" in report.warnings[0]
    report = score_lines(["Hallo.", "Hallo."], [["", "Hallo."]])
    assert report.ter.low < report.ter.value < report.ter.high


def test_nothing_but_empty_hypotheses_is_zero() -> None:
    report = score_lines([""] * 6, [REFERENCE])
    assert (report.bleu.value, report.bleu.low, report.bleu.high) == (0, 0, 0)
    assert (report.chrf.value, report.ter.value) == (0, 100)
    assert report.empty_hypotheses == [1, 2, 3, 4, 5, 6]
    assert corpus_bleu([""] * 6, [REFERENCE]) == 0


def test_a_byte_order_mark_is_said(tmp_path: Path) -> None:
    hypotheses = write(tmp_path / "hyp", ["\ufeff" + REFERENCE[0], *REFERENCE[1:]])
    report = score_files(hypotheses, [write(tmp_path / "ref", REFERENCE)])
    assert report.warnings == [
        f"{hypotheses}: begins with a byte order mark, which is scored as text."
    ]
    assert report.bleu.value < 100


def official_scores(folder: Path, pair: str) -> dict[tuple[str, str], float]:
    rows = gzip.decompress((folder / "automatic-scores.tsv.gz").read_bytes()).decode().splitlines()
    fields = [row.split("\t") for row in rows[1:]]
    return {(name, metric): float(score) for p, name, _, _, metric, score in fields if p == pair}


def wmt23(mirror: Path, pair: str) -> tuple[dict[str, Path], Path]:
    tgt = pair[-2:]
    prefix = f"generaltest2023.{pair}"
    outputs = (mirror / "wmt23" / "hyp").glob(f"{prefix}.hyp.*.{tgt}.gz")
    systems = {path.name.split(".")[3]: path for path in outputs}
    return systems, mirror / "wmt23" / f"{prefix}.ref.refA.{tgt}.gz"


def text(path: Path) -> _Text:
    return _Text(path.name, gzip.decompress(path.read_bytes()).decode().split("\n")[:-1])


def test_equals_the_official_scores_of_every_german_system_of_wmt23(mirror: Path) -> None:
    official = official_scores(mirror / "wmt23", "en-de")
    systems, reference = wmt23(mirror, "en-de")
    assert len(systems) >= 6
    for name, path in systems.items():
        bleu = corpus_bleu(text(path).lines, [text(reference).lines], tgt_lang="de")
        assert bleu == official[name, "bleu-refA"]
        # TER of these long paragraphs takes more than a minute a system, so not by `score_files`.
        assert _score(CHRF(), text(path), [text(reference)]).value == official[name, "chrf-refA"]


def test_equals_the_official_scores_of_every_chinese_system_of_wmt23(mirror: Path) -> None:
    official = official_scores(mirror / "wmt23", "en-zh")
    systems, reference = wmt23(mirror, "en-zh")
    assert len(systems) >= 2
    for name, path in systems.items():
        report = score_files(path, [reference], tgt_lang="zh")
        assert report.bleu.value == official[name, "bleu-refA"]
        assert report.chrf.value == official[name, "chrf-refA"]
