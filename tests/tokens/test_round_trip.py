"""Text comes back from its ids: every real corpus, and text made to break it."""

import random
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import pytest

from nmt.config import VocabConfig
from nmt.lines import decode_lines, normalise, read_lines
from nmt.tokens.vocab import PAD, START, STOP, UNK, Vocab, train_vocab

Kind = Literal["unigram", "bpe"]
KINDS: list[Kind] = ["unigram", "bpe"]

CONTROLS = {UNK, START, STOP, PAD}


def check(vocab: Vocab, texts: list[str]) -> None:
    """Every text comes back, and no control id stands in it."""
    ids = vocab.encode(texts)
    assert vocab.decode(ids) == texts
    assert all(row[-1] == STOP for row in ids)
    assert CONTROLS.isdisjoint(chain.from_iterable(row[:-1] for row in ids))


NASTY = [
    *(
        "<s>",
        "</s>",
        "<unk>",
        "<pad>",
        "<0x0A>",
        "<0x41>",
        "▁",
        "▅",
        "_",
        "@@",
        "\ufeff",
        "\0",
        "\r",
    ),
    *(
        "\x0c",
        "\x85",
        "\u2028",
        "\u200b",
        "\u00ad",
        "\u0301",
        "\ufffd",
        "\U0010fffd",
        "\ue000",
        " ",
    ),
    *(
        "１２",
        "ﬁ",
        "ǆ",
        "가",
        "é",
        "漢",
        "ไทย",
        "🏳️‍🌈",
        "👩‍👩‍👧",
        "العربية",
        "हिन्दी",
        "a",
        "the",
        ".",
        "  ",
    ),
]


def nasty(num: int) -> list[str]:
    rng = random.Random(num)
    return [normalise("".join(rng.choices(NASTY, k=rng.randint(1, 12)))) for _ in range(num)]


@pytest.mark.parametrize("kind", KINDS)
def test_nasty_text_comes_back_from_a_vocabulary_trained_on_it(kind: Kind) -> None:
    vocab = train_vocab(nasty(600), VocabConfig(type=kind, size=380))
    check(vocab, nasty(1000))
    pieces = vocab.pieces(range(len(vocab)))
    assert not any(set(piece) & set("\0\r\n\x0c\x85\u2028\ufeff ") for piece in pieces)


def rows_of(file: Path) -> Iterator[str]:
    """Yield the lines of a file; a third of them where it is an archive, which is large."""
    if file.suffix == ".gz":
        yield from read_lines(file)
    elif file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            (table,) = (name for name in archive.namelist() if not name.startswith("_"))
            with archive.open(table) as stream:
                yield from islice(decode_lines(stream, table), 0, None, 3)


def texts_of(corpus: Path) -> list[str]:
    """Return the normalised sentences of all files of a corpus of the mirror."""
    files = sorted(corpus.rglob("*"))
    rows = (row for file in files for row in rows_of(file))
    return [normalise(text) for row in rows for text in row.split("\t")]


@pytest.fixture(scope="module")
def corpora(mirror: Path) -> dict[str, list[str]]:
    folders = [folder for folder in sorted(mirror.iterdir()) if folder.is_dir()]
    return {folder.name: texts_of(folder) for folder in folders}


@pytest.mark.parametrize("kind", KINDS)
def test_real_corpora_come_back(corpora: dict[str, list[str]], kind: Kind) -> None:
    assert set(corpora) >= set("dirty flores multi30k ntrex tatoeba wmt-newstest wmt23".split())
    sample = [text for texts in corpora.values() for text in texts[::200]]
    vocab = train_vocab(sample, VocabConfig(type=kind))
    for name, texts in corpora.items():
        assert len(texts) > 4000, name
        # All sentences with the kind that is the default.
        check(vocab, texts if kind == "unigram" else texts[::10])
