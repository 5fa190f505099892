"""A corpus name stands for one set, or for an error that says what there is."""

import pytest

from nmt.data.sources.entries import Hub
from nmt.data.sources.names import Choice, choose
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
        ("opus-100", "opus-100/de-en/train"),
        ("sacrebleu/wmt14/full/en-de", "sacrebleu/wmt14/full/en-de"),
        ("hub:a/b.c/de-en:train", "hub:a/b.c/de-en:train"),
    ],
)
def test_names(name: str, full: str) -> None:
    assert chosen(name).name == full
    assert chosen(name, "de", "en") == chosen(name)


def test_a_set_of_sacrebleu_is_that_of_the_direction() -> None:
    assert chosen("sacrebleu/wmt20").name == "sacrebleu/wmt20/en-de"
    assert chosen("sacrebleu/wmt20", "de", "en").name == "sacrebleu/wmt20/de-en"
    assert chosen("sacrebleu/wmt20/en-de", "de", "en").name == "sacrebleu/wmt20/en-de"
    assert chosen("sacrebleu/wmt21/systems").name == "sacrebleu/wmt21/systems/en-de"


@pytest.mark.parametrize(
    ("name", "origin", "config", "split"),
    [
        ("hub:a/b/de-en:train", Hub("a/b"), "de-en", "train"),
        ("hub:a/b:test", Hub("a/b"), "", "test"),
        ("hub:a/b@v1.0/x_y:dev", Hub("a/b", "v1.0"), "x_y", "dev"),
    ],
)
def test_any_set_of_the_hub_has_a_name(name: str, origin: Hub, config: str, split: str) -> None:
    found = chosen(name)
    assert (found.entry.origin, found.pair, found.split.name) == (origin, config, split)
    assert found.name == name


@pytest.mark.parametrize(
    ("name", "tgt", "parts"),
    [
        ("multi30", "de", ["multi30k?", "tatoeba", "sacrebleu/SET", "hub:", "{tsv: FILE}"]),
        ("multi30k/test_2016", "de", ["test_2016_flickr?", "val"]),
        ("wmt-newstest", "de", ["'train'", "newstest2014"]),
        ("wmt19/test", "de", ["'test'", "validation"]),
        ("multi30k", "ja", ["en-ja", "de-en"]),
        ("multi30k/test_2017_mscoco", "cs", ["pair en-cs", "test_2016_flickr, test_2018_flickr"]),
        ("opus-100/validation", "hy", ["pair en-hy; opus-100 has this pair in train alone"]),
        ("opus-100/en-hy/test", "hy", ["pair en-hy; opus-100 has this pair in train alone"]),
        ("wmt18", "kk", ["wmt18/train: has no pair en-kk", "et-en"]),
        ("wmt14/fr-en", "de", ["fr-en", "en-de"]),
        ("wmt14/de-en/train/x", "de", ["CORPUS[/PAIR][/SPLIT]"]),
        ("wmt14/train/de-en", "de", ["CORPUS[/PAIR][/SPLIT]"]),
        ("sacrebleu/wmt2", "de", ["wmt2", "did you mean wmt2", "wmt14/full", "mtnt2019"]),
        ("sacrebleu/wmt20", "fi", ["sacrebleu/wmt20: has no pair en-fi", "en-de", "de-fr"]),
        ("sacrebleu/wmt20/de-fr", "de", ["a set of de-fr", "are en-de"]),
        ("sacrebleu/wmt20/de-xx", "de", ["sacrebleu/wmt20: has no pair de-xx"]),
        ("hub:opus-100", "de", ["hub:OWNER/REPO[@REVISION]/CONFIG:SPLIT"]),
        ("hub:a/b/de-en", "de", ["hub:Helsinki-NLP/opus-100/de-en:train"]),
    ],
)
def test_errors_say_what_there_is(name: str, tgt: str, parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        chosen(name, tgt=tgt)
    message = str(caught.value)
    assert name.split("/")[0].split(":")[0] in message
    for part in parts:
        assert part in message
