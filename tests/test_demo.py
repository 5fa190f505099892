"""The sentences that make demo translates are new to the model, but not their words."""

import runpy
from pathlib import Path

from nmt.data import captions

SCRIPT = Path(__file__).parent.parent / "scripts" / "demo.py"


def test_the_sentences_of_the_demo_are_not_in_the_corpus() -> None:
    sentences = runpy.run_path(str(SCRIPT))["SENTENCES"]
    assert len(sentences) == 3
    corpus = {english for split in captions.SPLITS for english, _ in captions.pairs(split)}
    assert not corpus & set(sentences)
    words = {word for english in corpus for word in english.lower().rstrip(".").split()}
    for sentence in sentences:
        assert set(sentence.lower().rstrip(".").split()) <= words
