"""A short notation for the trees of captions, for tests: every word by its English."""

import re
from dataclasses import replace
from functools import cache

from nmt.data.captions import lexicon
from nmt.data.captions.drawing import idiomatic
from nmt.data.captions.lexicon import Adjective, Noun, Relation, Verb
from nmt.data.captions.morphology import DETERMINERS
from nmt.data.captions.trees import (
    Clause,
    Feeling,
    Pair,
    Phrase,
    Place,
    Pronoun,
    Relative,
    Slot,
    Subject,
    There,
)

_ATTRIBUTES = (Relation("in", "in", "dat"), Relation("with", "mit", "dat"))
_ANTECEDENTS = {"he": "a man", "she": "a woman", "they": "the men"}


def noun_phrase(text: str) -> Phrase:
    """Read "two young men in red jackets"; "a" also where English says "an"."""
    for relation in _ATTRIBUTES:
        head, found, worn = text.partition(f" {relation.english} ")
        if found:
            return replace(noun_phrase(head), attribute=Place(relation, noun_phrase(worn)))
    opening, _, rest = text.partition(" ")
    determiner, described = (opening, rest) if opening in DETERMINERS else ("", text)
    for noun in sorted(lexicon.nouns().values(), key=lambda noun: -len(noun.english)):
        for form, plural in ((noun.english, False), (noun.english_plural, True)):
            if f" {described}".endswith(f" {form}"):
                adjectives = adjective_list(described.removesuffix(form).strip())
                return Phrase(DETERMINERS[determiner], noun, plural, adjectives)
    raise KeyError(text)


def adjective_list(text: str) -> tuple[Adjective, ...]:
    tables = (lexicon.qualities(), lexicon.colours())
    known = {a.english: a for table in tables for found in table.values() for a in found}
    return (known[text],) if text in known else tuple(known[word] for word in text.split())


def clause(
    who: str, verb: str, what: str = "", where: str = "", *, to: str = "", when: str = ""
) -> Clause:
    """Build a main clause; the words must make sense together in some construction."""
    subject = _subject(who)
    thing = noun_phrase(what) if what else None
    verbs = _all_verbs()
    construction, place = _construction(verbs, _first_noun(subject), verb, thing, where)
    return Clause(
        subject,
        construction,
        object=idiomatic(construction, thing) if thing else None,
        recipient=noun_phrase(to) if to else None,
        place=place,
        time={time.english: time for time in lexicon.times()}[when] if when else None,
    )


def there(what: str, where: str) -> There:
    subject = noun_phrase(what)
    counted = subject.determiner.english in ("no", "many")
    verbs = lexicon.existing_verbs() if counted else lexicon.standing_verbs()
    verb, place = _construction(verbs, subject.noun, "be", None, where)
    return There(Clause(subject, verb, place=place))


def with_manner(main: Clause, english: str) -> Clause:
    found = {manner.english: manner for manner in main.verb.manners}
    return replace(main, manner=found[english])


def fronted(main: Clause, slot: Slot) -> Clause:
    return replace(main, front=slot)


def relating(main: Clause, inner: Clause, gap: Slot) -> Clause:
    """Hang the inner clause on the object of the main clause if it is what fills the gap."""
    heads = {"subject": inner.subject, "object": inner.object}
    head = heads[gap] if gap in heads else inner.place and inner.place.phrase
    assert isinstance(head, Phrase)
    relative = Relative(inner, gap)
    if main.object and main.object.noun == head.noun:
        return replace(main, object=replace(main.object, relative=relative))
    assert isinstance(main.subject, Phrase) and main.subject.noun == head.noun
    return replace(main, subject=replace(main.subject, relative=relative))


def feeling(who: str, mood: str) -> Feeling:
    return Feeling(_subject(who), {found.english: found for found in lexicon.moods()}[mood])


def _subject(text: str) -> Subject:
    if text in _ANTECEDENTS:
        return Pronoun(text, noun_phrase(_ANTECEDENTS[text]))
    first, found, second = text.partition(" and ")
    return Pair(noun_phrase(first), noun_phrase(second)) if found else noun_phrase(text)


def _first_noun(subject: Subject) -> Noun:
    if isinstance(subject, Pronoun):
        return subject.antecedent.noun
    return subject.first.noun if isinstance(subject, Pair) else subject.noun


def _construction(
    verbs: tuple[Verb, ...], subject: Noun, base: str, thing: Phrase | None, where: str
) -> tuple[Verb, Place | None]:
    for verb in verbs:
        fits = verb.base == base and subject in verb.subjects
        if not fits or (thing.noun not in verb.objects if thing else verb.objects):
            continue
        if not where:
            return verb, None
        relation, name = re.split(r" (?=(?:a|the|two) )", where)
        for spot in verb.places:
            if spot.relation.english == relation and noun_phrase(name).noun == spot.noun:
                return verb, Place(spot.relation, noun_phrase(name))
    raise KeyError(f"{subject.english}, {base}, {thing}, {where}")


@cache
def _all_verbs() -> tuple[Verb, ...]:
    return lexicon.verbs() + lexicon.placing_verbs() + lexicon.giving_verbs()
