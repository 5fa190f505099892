"""Turns HTML entities back into the characters they stand for."""

import html
import re
from html.entities import html5

# An entity that was escaped again, even more than once, is one match: &amp;amp;quot;
_ENTITY = re.compile(r"&(?:amp;)*(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def unescape(text: str) -> str:
    """Return the text with its entities as characters; only what ends with a semicolon is one.

    Corpora that were scraped are full of them. It is no part of `nmt.lines.normalise`, as what is
    given to a translator is no scrape, and `&lt;` may be what somebody means.
    `unescape("Q&amp;A, &amp;quot;&#246;&quot; &copy") == 'Q&A, "ö" &copy'`
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    name = f"{match[1]};"
    # The names are looked up here, as html.unescape finds &not; in &notes; too.
    is_entity = name.startswith("#") or name in html5
    return html.unescape(f"&{name}") if is_entity else f"&{name}"
