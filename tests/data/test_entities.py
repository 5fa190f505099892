"""Entities become characters, and nothing else does."""

import pytest

from nmt.data.entities import unescape


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A&amp;B", "A&B"),
        ("&lt;b&gt; &quot;x&quot; it&apos;s", '<b> "x" it\'s'),
        ("&auml;&Auml;&szlig;&euro;&hellip;", "äÄß€…"),
        ("&#228;&#xe4;&#XE4;", "äää"),
        ("&#91;&#124;&#93;", "[|]"),
        ("&nbsp;&thinsp;", "\u00a0\u2009"),
        ("&#128;", "€"),  # what browsers show: cp1252
        ("&amp;quot;&amp;amp;#246;&amp;amp;amp;", '"ö&'),  # escaped twice and thrice
        ("R&amp;D;", "R&D;"),
        ("&#x110000;&#xD800;", "\ufffd\ufffd"),
    ],
)
def test_what_is_an_entity(text: str, plain: str) -> None:
    assert unescape(text) == plain
    assert unescape(plain) == plain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "Marks & Spencer",
        "?a=1&copy=2&lt",
        "&copyright;",  # html.unescape would make it ©right;
        "&notit; &AMPx;",
        "& amp;",
        "&#; &#x; &; &#12a; &#12345678;",
        "&" * 20_000,
        "&amp" * 5_000,
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_what_is_none(text: str) -> None:
    assert unescape(text) == text


def test_long_chains_are_read_once() -> None:
    assert unescape("&" + "amp;" * 100_000 + "lt;") == "<"
