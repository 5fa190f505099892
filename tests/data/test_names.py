"""A corpus name stands for one set, or for an error that says what there is."""

import pytest

from nmt.data.names import Choice, choose
from nmt.errors import UserError


def chosen(name: str, src: str = "en", tgt: str = "de") -> Choice:
    return choose(name, src_lang=src, tgt_lang=tgt, default_split="train")


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("multi30k", "multi30k/train"),
        ("multi30k/de-en", "multi30k/train"),
        ("multi30k/en-de/val", "multi30k/val"),
        ("multi30k/test_2016_flickr", "multi30k/test_2016_flickr"),
        ("wmt14", "wmt14/de-en/train"),
        ("wmt14/en-de", "wmt14/de-en/train"),
        ("wmt14/validation", "wmt14/de-en/validation"),
        ("wmt14/de-en/validation", "wmt14/de-en/validation"),
        ("wmt-newstest/newstest2019-ende", "wmt-newstest/newstest2019-ende"),
        ("captions/dev", "captions/dev"),
    ],
)
def test_names(name: str, full: str) -> None:
    assert chosen(name).name == full
    assert chosen(name, "de", "en") == chosen(name)


@pytest.mark.parametrize(
    ("name", "tgt", "parts"),
    [
        ("multi30", "de", ["multi30k?", "tatoeba", "{tsv: FILE}"]),
        ("multi30k/test_2016", "de", ["test_2016_flickr?", "val"]),
        ("wmt-newstest", "de", ["'train'", "newstest2014"]),
        ("wmt19/test", "de", ["'test'", "validation"]),
        ("multi30k", "ja", ["en-ja", "de-en"]),
        ("multi30k/test_2017_mscoco", "cs", ["en-cs", "en-fr"]),
        ("wmt14/fr-en", "de", ["fr-en", "en-de"]),
        ("wmt14/de-en/train/x", "de", ["CORPUS[/PAIR][/SPLIT]"]),
        ("wmt14/train/de-en", "de", ["CORPUS[/PAIR][/SPLIT]"]),
    ],
)
def test_errors_say_what_there_is(name: str, tgt: str, parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        chosen(name, tgt=tgt)
    message = str(caught.value)
    assert name.split("/")[0] in message
    for part in parts:
        assert part in message
