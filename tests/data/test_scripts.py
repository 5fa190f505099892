"""The scripts of letters, of one text and of many."""

import pytest

from nmt.data.scripts import NAMES, SCRIPTS, count_scripts, script_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("12, 5 % \u2581 \u0301", {}),
        ("plain text", {"Latn": 9}),
        ("Łódź, 12 ж", {"Latn": 4, "Cyrl": 1}),
        ("Straße ﬁn Ａ", {"Latn": 9}),
        ("ΑΒ ά", {"Grek": 3}),
        ("東京タワーのお店", {"Hani": 3, "Kana": 3, "Hira": 2}),
        ("𠀀 한국 😀", {"Hani": 1, "Hang": 2}),
        ("ߊ", {"Zzzz": 1}),
    ],
)
def test_letters_are_counted_by_script(text: str, expected: dict[str, int]) -> None:
    assert script_of(text) == expected


def test_many_texts_at_once_count_as_each_alone() -> None:
    texts = ["", "plain", "Łódź, 12 ж", "", "東京 x", "\n\r", "ߊ ß", ""]
    counts = count_scripts(texts)
    assert counts.shape == (len(texts), len(NAMES))
    for text, row in zip(texts, counts, strict=True):
        assert {NAMES[i]: count for i, count in enumerate(row) if count} == script_of(text)
    assert count_scripts([]).shape == (0, len(NAMES))


def test_languages_name_scripts_that_are_known() -> None:
    assert SCRIPTS["de"] == {"Latn"}
    assert "Cyrl" in SCRIPTS["sr"] and "Latn" in SCRIPTS["sr"]
    assert "xa" not in SCRIPTS
    assert frozenset().union(*SCRIPTS.values()) <= set(NAMES)
