"""Tests that captions are said rightly, phenomenon by phenomenon."""

import pytest
from caption_notation import clause, feeling, fronted, noun_phrase, relating, with_manner

from nmt.data.captions.author import AND, BECAUSE, BUT, INTENTS, REPORTS, WHILE
from nmt.data.captions.english import english
from nmt.data.captions.german import german
from nmt.data.captions.trees import Chain, Intent, Joined, Report, Sentence, There

WANTS, HAS, TRIES, BEGINS = INTENTS
SEE_THAT, PHOTO_HOW, SEE_HOW = REPORTS
Rows = list[tuple[Sentence, str, str]]


def check(rows: Rows) -> None:
    for tree, source, target in rows:
        assert (english(tree), german(tree)) == (source, target)


def test_articles_and_adjectives_agree_after_ein_words() -> None:
    check(
        [
            (
                clause("a young man in a red jacket", "ride", "a bicycle", "through the park"),
                "A young man in a red jacket is riding a bicycle through the park.",
                "Ein junger Mann in einer roten Jacke fährt mit dem Fahrrad durch den Park.",
            ),
            (
                clause("an old lady".replace("an ", "a "), "open", "a small window"),
                "An old lady is opening a small window.",
                "Eine alte Dame öffnet ein kleines Fenster.",
            ),
            (
                clause("a small child", "hold", "a yellow ball"),
                "A small child is holding a yellow ball.",
                "Ein kleines Kind hält einen gelben Ball.",
            ),
            (
                clause("a man", "wear", "x") if False else clause("a boy", "carry", "a heavy bag"),
                "A boy is carrying a heavy bag.",
                "Ein Junge trägt eine schwere Tasche.",
            ),
        ]
    )
