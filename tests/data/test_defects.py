"""Each defect is found, at its bound, and nothing that good text holds is one."""

import random
import re
import unicodedata

import pytest

from nmt.config import CleanConfig
from nmt.data.defects import (
    defect,
    has_few_letters,
    has_long_word,
    has_repeats,
    in_other_scripts,
    numbers_differ,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", False),
        ("abcd", True),
        ("abc def ghi", False),
        ("ab cdef gh", True),
        ("äöüß", True),
        ("a1b2", True),
        ("日本語、日本語。", False),  # punctuation ends a word as well as a blank
        ("日本語日本語", True),
        ("www.abc.de/x-y", False),
        ("....", False),
        ("abc....", False),
        ("", False),
    ],
)
def test_a_long_word(text: str, expected: bool) -> None:
    assert has_long_word(text, 3) == expected


@pytest.mark.parametrize("max_repeat", [1, 2, 3, 4, 7, 8, 20, 21, 50])
@pytest.mark.parametrize("char", ["a", ".", "7", "ö", "😀"])
def test_a_row_may_be_so_long_and_no_longer(max_repeat: int, char: str) -> None:
    for before in range(12):
        start = ("xy" * 6)[:before]
        assert not has_repeats(f"{start}{char * max_repeat}xy", max_repeat)
        assert has_repeats(f"{start}{char * (max_repeat + 1)}xy", max_repeat)


def test_the_short_cut_to_a_row_finds_what_the_long_way_finds() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        text = "".join(rng.choice("ab") * rng.randint(1, 12) for _ in range(rng.randint(0, 6)))
        max_repeat = rng.randint(1, 15)
        expected = re.search(rf"(.)\1{{{max_repeat}}}", text) is not None
        assert has_repeats(text, max_repeat) == expected, (text, max_repeat)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab12", False),
        ("a123", True),
        ("a b 1 2", False),
        ("äö12", False),
        ("ä123", True),
        ("日本12", False),
        ("日123", True),
        ("@@", True),
        ("क\u093f12", False),  # a vowel sign goes with its letter
        ("😀😀😀😀", True),
        ("", False),
    ],
)
def test_few_letters_are_less_than_the_share(text: str, expected: bool) -> None:
    assert has_few_letters(text, 0.5) == expected
    assert not has_few_letters(text, 0)


def test_the_short_cut_to_letters_counts_as_the_long_way_counts() -> None:
    rng = random.Random(2)
    for _ in range(3000):
        text = "".join(
            rng.choice("ab1. ä日\u0301\u093f😀²ª\u00ad") for _ in range(rng.randint(0, 9))
        )
        visible = text.replace(" ", "")
        num_letters = sum(unicodedata.category(char)[0] in "LM" for char in visible)
        share = rng.random()
        assert has_few_letters(text, share) == (num_letters < share * len(visible)), text


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("plain", "en", False),
        ("größer", "de", False),
        ("жизнь", "de", True),
        ("жизнь", "ru", False),
        ("life", "ru", True),
        ("life жизнь", "ru", False),
        ("life жизнь", "en", True),  # four of nine letters
        ("日本のテレビ", "ja", False),
        ("日本のテレビ", "zh", True),
        ("2019 – 2020!", "ja", False),  # no letter, no other script
        ("", "en", False),
        ("жизнь", "xx", False),
        ("жизнь life", "sr", False),
    ],
)
def test_letters_of_other_scripts(text: str, language: str, expected: bool) -> None:
    assert in_other_scripts([text], language, 0.5) == [0] * expected
    assert in_other_scripts([text], language, 0) == []


def test_rows_of_other_scripts_are_told_by_number() -> None:
    assert in_other_scripts(["a", "жизнь", "ö", "", "本", "b"], "en", 0.5) == [1, 4]
    assert in_other_scripts([], "en", 0.5) == []


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("none", "keine", False),
        ("3,000 in 2019", "2019: 3.000", False),
        ("3,000", "3000", True),
        ("1 2", "1 2 2", True),
        ("12", "1 2", True),
        ("one", "1", True),
        ("09:30", "9.30", False),
        ("12", "１２", False),
        ("x²", "x", False),
        ("7" * 5000, "7" * 5000, False),
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_numbers_differ(src: str, tgt: str, expected: bool) -> None:
    assert numbers_differ(src, tgt) == expected
    assert numbers_differ(tgt, src) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fine", ""),
        ("", ""),
        ("ab " * 4, "too many characters"),
        ("f\ufffdr", "broken character"),
        ("abcdefg", "long word"),
        ("a....b", "repeated character"),
        ("12 34", "few letters"),
        ("\ufffd" * 20, "too many characters"),
    ],
)
def test_a_text_has_one_defect(text: str, expected: str) -> None:
    rules = CleanConfig(max_chars=10, max_word_chars=6, max_repeat=3, min_letters=0.2)
    assert defect(text, rules) == expected


def test_broken_characters_may_stay() -> None:
    assert defect("f\ufffdr", CleanConfig(drop_broken=False)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenhersteller",
        "https://example.org/a/very/long/path/with/many/parts?and=a&query=string&of=parameters&x=y",
        "Wait..... what?!?!?!!!!!!",
        "I'm 19.",
        "（続く）",
        "これはとても長い文ですが空白がどこにもありませんそれでもよい文です、と彼は言った。" * 3,
        "ราคาอาหารและเครื่องดื่มในร้านนี้ไม่แพงอย่างที่คิดไว้" * 3,  # Thai has no blanks
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_good_text_has_none(text: str) -> None:
    assert defect(text, CleanConfig()) == ""
