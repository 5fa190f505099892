"""What can be wrong with a text or with a pair: a small function for each."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np

from nmt.config import CleanConfig
from nmt.data.scripts import NAMES, SCRIPTS, count_scripts

# What a decoder writes for bytes that it could not read: the letter itself is lost.
_REPLACEMENT = "\ufffd"
_NO_ASCII_LETTERS = bytes(code for code in range(256) if not (code < 128 and chr(code).isalpha()))
_WORD = re.compile(r"\w+")
# Python reads no number of more than 4,300 digits.
_NUMBER = re.compile(r"\d{1,1000}")


def defect(text: str, rules: CleanConfig) -> str:
    """Return the first thing that is wrong with one normalised text, or ""."""
    if len(text) > rules.max_chars:
        return "too many characters"
    if rules.drop_broken and _REPLACEMENT in text:
        return "broken character"
    if has_long_word(text, rules.max_word_chars):
        return "long word"
    if has_repeats(text, rules.max_repeat):
        return "repeated character"
    return "few letters" if has_few_letters(text, rules.min_letters) else ""


def has_long_word(text: str, max_chars: int) -> bool:
    """Say whether more than `max_chars` letters and digits stand together.

    Punctuation ends a word, so that a web address or a sentence written without blanks is none.
    """
    if len(text) <= max_chars or max(map(len, text.split(" "))) <= max_chars:
        return False
    return max(map(len, _WORD.findall(text)), default=0) > max_chars


def has_repeats(text: str, max_repeat: int) -> bool:
    """Say whether a character stands more than `max_repeat` times in a row."""
    # Such a row shows in every few characters too, and there are fewer of them to look through.
    step = max(1, max_repeat // 4)
    if not _row_of((max_repeat + 1) // step).search(text[::step]):
        return False
    return _row_of(max_repeat + 1).search(text) is not None


def has_few_letters(text: str, min_share: float) -> bool:
    """Say whether letters and their marks are less than this share of what is not blank."""
    min_letters = min_share * (len(text) - text.count(" "))
    if len(text.encode().translate(None, _NO_ASCII_LETTERS)) >= min_letters:
        return False
    if sum(map(str.isalpha, text)) >= min_letters:
        return False
    return sum(unicodedata.category(char)[0] in "LM" for char in text) < min_letters


def in_other_scripts(texts: Sequence[str], language: str, min_share: float) -> list[int]:
    """Return which texts have less than this share of their letters in a script of the language.

    A language that we do not know is written in any script.
    """
    if language not in SCRIPTS:
        return []
    expected = SCRIPTS[language]
    rows = [row for row, text in enumerate(texts) if "Latn" not in expected or not text.isascii()]
    counts = count_scripts([texts[row] for row in rows])
    num_own = counts[:, [NAMES.index(script) for script in sorted(expected)]].sum(axis=1)
    return [rows[row] for row in np.flatnonzero(num_own < min_share * counts.sum(axis=1))]


def numbers_differ(src: str, tgt: str) -> bool:
    """Say whether the runs of digits differ, in whatever order; their values count.

    `numbers_differ("09:30, 3,000", "3.000, ９時３０") == False`, but 3000 is another than 3,000.
    """
    return _numbers(src) != _numbers(tgt)


def _numbers(text: str) -> list[int]:
    return sorted(map(int, _NUMBER.findall(text)))


@cache
def _row_of(length: int) -> re.Pattern[str]:
    return re.compile(rf"(.)\1{{{length - 1}}}", re.DOTALL)
