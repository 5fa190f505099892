"""Which language of two a text reads like."""

import pytest

from nmt.data.languages import COMMON_WORDS, Vote, foreign_script, vote


@pytest.mark.parametrize(
    ("src", "tgt", "languages", "expected"),
    [
        ("Er ist da.", "He is here.", "de-en", Vote.RIGHT),
        ("He is here.", "Er ist da.", "de-en", Vote.SWAPPED),
        ("Berlin", "He is here.", "de-en", Vote.RIGHT),
        ("Berlin", "Er ist da.", "de-en", Vote.SWAPPED),
        ("Berlin", "Berlin", "de-en", Vote.SILENT),
        ("Er ist da.", "Das ist es.", "de-en", Vote.SILENT),
        ("Kde jsou děti?", "Where are the children?", "cs-en", Vote.RIGHT),
        ("Где дом?", "Де це?", "ru-uk", Vote.RIGHT),
        ("Где стоит Linux?", "Linux?", "ru-en", Vote.RIGHT),
        ("Linux?", "Где стоит Linux?", "ru-en", Vote.SWAPPED),
        ("東京のタワー", "东京塔", "ja-zh", Vote.RIGHT),
        ("东京塔", "東京のタワー", "ja-zh", Vote.SWAPPED),
        ("Er ist da.", "He is here.", "de-xx", Vote.SILENT),
        ("He is here.", "He is here.", "en-en", Vote.SILENT),
    ],
)
def test_sides_vote_on_their_order(src: str, tgt: str, languages: str, expected: Vote) -> None:
    assert vote(src, tgt, *languages.split("-")) is expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Das ist ein Haus.", "de", ""),
        ("Дом", "de", "Cyrl"),
        ("ein Дом am Meer", "de", ""),
        ("Београд", "sr", ""),
        ("Beograd", "sr", ""),
        ("東京 ABC タワー", "ja", ""),
        ("Tokyo Tower", "ja", "Latn"),
        ("12:30", "de", ""),
        ("Дом", "xx", ""),
    ],
)
def test_a_script_is_foreign_where_most_letters_are(
    text: str, language: str, expected: str
) -> None:
    assert foreign_script(text, language) == expected


def test_words_are_as_texts_are_searched_for_them() -> None:
    for language, words in COMMON_WORDS.items():
        assert len(words) > 25, language
        assert all(word.isalpha() and word == word.lower() for word in words), language
