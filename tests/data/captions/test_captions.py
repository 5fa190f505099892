"""Tests of the corpus: its lexicon, its splits, one translation for each sentence."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from random import Random

import pytest
from caption_notation import clause, feeling, relating, there

from nmt.data.captions import SPLITS, captions, frames, lexicon, pairs, split_of
from nmt.data.captions.author import BECAUSE, WHILE, sentences
from nmt.data.captions.drawing import Draw
from nmt.data.captions.english import english
from nmt.data.captions.german import german
from nmt.data.captions.lexicon import Case, Verb
from nmt.data.captions.morphology import (
    DETERMINERS,
    RELATIVE,
    article,
    column,
    contracted,
    inflected,
    noun_form,
)
from nmt.data.captions.trees import Joined, triples
from nmt.errors import UserError
from nmt.lines import normalise

CASES: tuple[Case, ...] = ("nom", "acc", "dat")


@pytest.mark.parametrize(
    ("determiner", "noun", "plural", "expected"),
    [
        ("the", "table", False, "der alte Tisch, den alten Tisch, dem alten Tisch"),
        ("the", "door", False, "die alte Tür, die alte Tür, der alten Tür"),
        ("the", "sofa", False, "das alte Sofa, das alte Sofa, dem alten Sofa"),
        ("the", "table", True, "die alten Tische, die alten Tische, den alten Tischen"),
        ("this", "table", False, "dieser alte Tisch, diesen alten Tisch, diesem alten Tisch"),
        ("this", "door", False, "diese alte Tür, diese alte Tür, dieser alten Tür"),
        ("this", "sofa", False, "dieses alte Sofa, dieses alte Sofa, diesem alten Sofa"),
        ("a", "table", False, "ein alter Tisch, einen alten Tisch, einem alten Tisch"),
        ("a", "door", False, "eine alte Tür, eine alte Tür, einer alten Tür"),
        ("a", "sofa", False, "ein altes Sofa, ein altes Sofa, einem alten Sofa"),
        ("no", "table", True, "keine alten Tische, keine alten Tische, keinen alten Tischen"),
        ("their", "door", True, "ihre alten Türen, ihre alten Türen, ihren alten Türen"),
        ("his", "farmer", False, "sein alter Bauer, seinen alten Bauern, seinem alten Bauern"),
        ("", "coffee", False, " alter Kaffee,  alten Kaffee,  altem Kaffee"),
        ("", "milk", False, " alte Milch,  alte Milch,  alter Milch"),
        ("", "bread", False, " altes Brot,  altes Brot,  altem Brot"),
        ("", "sofa", True, " alte Sofas,  alte Sofas,  alten Sofas"),
        ("two", "child", True, "zwei alte Kinder, zwei alte Kinder, zwei alten Kindern"),
        ("several", "boy", True, "mehrere alte Jungen, mehrere alte Jungen, mehreren alten Jungen"),
        ("many", "house", True, "viele alte Häuser, viele alte Häuser, vielen alten Häusern"),
    ],
)
def test_phrases_decline(determiner: str, noun: str, plural: bool, expected: str) -> None:
    old = next(found for found in lexicon.qualities()["man"] if found.english == "old")
    opening, word = DETERMINERS[determiner], lexicon.nouns()[noun]
    at = column(word, plural)
    declined = (
        f"{article(opening, case, at)} {inflected(old, opening, case, at)} "
        f"{noun_form(word, case, plural)}"
        for case in CASES
    )
    assert ", ".join(declined) == expected


def test_relative_pronouns_decline() -> None:
    forms = {case: " ".join(RELATIVE.form(case, at) for at in range(4)) for case in CASES}
    assert forms == {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem denen"}


@pytest.mark.parametrize(
    ("preposition", "phrase", "expected"),
    [
        ("in", "dem Park", "im Park"),
        ("in", "das Haus", "ins Haus"),
        ("an", "dem See", "am See"),
        ("an", "das Tor", "ans Tor"),
        ("zu", "dem Bahnhof", "zum Bahnhof"),
        ("zu", "der Schule", "zur Schule"),
        ("von", "dem Stuhl", "vom Stuhl"),
        ("in", "der Stadt", "in der Stadt"),
        ("in", "den Parks", "in den Parks"),
        ("", "den Fluss", "den Fluss"),
    ],
)
def test_prepositions_contract(preposition: str, phrase: str, expected: str) -> None:
    assert contracted(preposition, phrase) == expected


@pytest.fixture(scope="module")
def training() -> list[tuple[str, str]]:
    return list(pairs("train"))


def test_training_shows_every_word_often(training: list[tuple[str, str]]) -> None:
    spoken = "".join(f" {source[:-1].lower()} " for source, _ in training).replace(",", "")
    seldom = {
        forms: count
        for forms in _lexicon_forms()
        if (count := sum(spoken.count(f" {form.lower()} ") for form in forms)) < 40
    }
    assert seldom == {}


def _lexicon_forms() -> Iterator[tuple[str, ...]]:
    for noun in lexicon.nouns().values():
        yield noun.english, noun.english_plural
    for verb in _all_verbs():
        yield verb.ing, verb.base
        yield from ((manner.english,) for manner in verb.manners)
    for table in (lexicon.qualities(), lexicon.colours()):
        yield from ((found.english,) for adjectives in table.values() for found in adjectives)
    yield from ((found.english,) for found in (*lexicon.moods(), *lexicon.times()))


def _all_verbs() -> tuple[Verb, ...]:
    return lexicon.verbs() + lexicon.placing_verbs() + lexicon.giving_verbs()


def test_every_style_of_a_verb_has_a_manner() -> None:
    tables = (frames.VERBS, frames.PLACING, frames.GIVING)
    rows = [row for table in tables for row in table.strip().splitlines()]
    styles = {row.rsplit("|", 1)[1].strip() for row in rows} - {""}
    assert len(styles) > 5
    assert all(lexicon.manners(style) for style in styles)


def test_a_sentence_has_one_translation() -> None:
    translations: dict[str, str] = {}
    for caption in islice(sentences(Draw(Random(5), lambda triple: True)), 110_000):
        source, target = english(caption), german(caption)
        assert translations.setdefault(source, target) == target
    assert len(translations) > 100_000


@pytest.mark.parametrize("seed", [1, 2])
def test_splits_share_no_triple_and_no_sentence(seed: int) -> None:
    found = {
        split: {triple for caption in captions(split, 2500, seed) for triple in triples(caption)}
        for split in SPLITS
    }
    assert all(split_of(triple) == split for split in SPLITS for triple in found[split])
    assert not found["train"] & (found["dev"] | found["test"])
    assert not found["dev"] & found["test"]
    sources = [source for split in SPLITS for source, _ in pairs(split, 2500, seed)]
    assert len(set(sources)) == len(sources) == 7_500


def test_triples_come_from_every_clause() -> None:
    dog = relating(
        clause("a woman and a boy", "watch", "the dog"),
        clause("the dog", "lie", where="on the lawn"),
        "subject",
    )
    assert triples(dog) == {
        ("woman", "watch", "dog"),
        ("boy", "watch", "dog"),
        ("dog", "lie", "lawn"),
    }
    gift = clause("a man", "give", "a apple", to="the child")
    rest = clause("he", "rest", where="in the park")
    assert triples(Joined(gift, WHILE, rest)) == {
        ("man", "give", "apple"),
        ("man", "give", "child"),
        ("man", "rest", "park"),
    }
    assert triples(Joined(feeling("a cook", "proud"), BECAUSE, rest)) == {
        ("cook", "be", "proud"),
        ("man", "rest", "park"),
    }
    assert triples(there("no trees", "in the park")) == {("tree", "be", "park")}


def test_training_shows_every_word_of_dev_and_test(training: list[tuple[str, str]]) -> None:
    known = {word for pair in training for sentence in pair for word in _words(sentence)}
    held_out = [pair for split in ("dev", "test") for pair in pairs(split)]
    assert {word for source, _ in held_out for word in _words(source)} <= known
    # German builds forms of known parts (vorbei-zu-gehen, rund-es): a few may be new as wholes.
    german_words = [word for _, target in held_out for word in _words(target)]
    assert sum(word not in known for word in german_words) < len(german_words) / 1000


def _words(sentence: str) -> list[str]:
    return sentence.lower().replace(",", "").removesuffix(".").split()


def test_sentences_are_well_formed() -> None:
    lengths = []
    for pair in pairs("train", 3000):
        for sentence in pair:
            assert sentence == normalise(sentence)
            assert sentence[0].isupper() and sentence.endswith(".") and not sentence.endswith(",.")
            assert ",," not in sentence and " ," not in sentence
        lengths.append(len(pair[0].split()))
    assert 9 <= sum(lengths) / len(lengths) <= 12.5
    assert max(lengths) <= 22


def test_the_corpus_is_the_same_everywhere() -> None:
    assert list(pairs("dev", 50)) == list(pairs("dev", 50, seed=1)) == list(pairs("dev"))[:50]
    assert list(pairs("dev", 50)) != list(pairs("dev", 50, seed=2))
    digest = blake2b("\n".join("\t".join(pair) for pair in pairs("test")).encode(), digest_size=8)
    assert digest.hexdigest() == "917e1b17f9e11161"


def test_default_sizes() -> None:
    assert SPLITS == {"train": 20_000, "dev": 500, "test": 500}
    assert [sum(1 for _ in pairs(split)) for split in ("dev", "test")] == [500, 500]
    assert sum(1 for _ in pairs("train", 7)) == 7
    assert list(pairs("train", 0)) == []


def test_an_unknown_split_is_a_sentence() -> None:
    with pytest.raises(UserError, match="captions has no split 'valid'; it has train, dev, test"):
        next(pairs("valid"))
