"""Draws phrases and clauses at random, of words that go together and that the split allows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from nmt.data.captions import lexicon
from nmt.data.captions.lexicon import Adjective, Noun, Relation, Spot, Verb
from nmt.data.captions.morphology import A_VEHICLE, DETERMINERS, THE_INSTRUMENT
from nmt.data.captions.trees import (
    Clause,
    Pair,
    Phrase,
    Place,
    Pronoun,
    Subject,
    Triple,
    subject_names,
)

T = TypeVar("T")

HUMAN = ("man", "woman", "boy", "girl", "child")
LIVING = (*HUMAN, "infant", "kin", "pet", "livestock", "bird", "wild")
# How phrases open, drawn from evenly: what stands twice comes twice as often; + makes a plural.
SUBJECT_STARTS = tuple(
    "a a a a a a a the the the this two+ three+ four+ five+ some+ several+ many+ the+ +".split()
)
_OBJECT_STARTS = tuple("a a a a a a the the own own own two+ three+ some+ several+ the+ +".split())
_OWNERS = {"he": "his", "she": "her", "they": "their"}

# Kinds of nouns that come one at a time, that everybody knows, that have an owner.
_SINGLE = ("infant", "garment", "gown", "headwear", "instrument", "device", "cart")
_UNIQUE = ("room", "town", "nature", "part")
_OWNED = (*_SINGLE[1:], "toy", "luggage", "stuff", "cycle", "text", "pet")

_IN = Relation("in", "in", "dat")
_WITH = Relation("with", "mit", "dat")


class DeadEnd(Exception):
    """No word fits; the sentence has to be drawn anew."""


class Draw:
    """A stream of chance, and the triples that its clauses may say."""

    def __init__(self, rng: Random, allowed: Callable[[Triple], bool]) -> None:
        self._rng = rng
        self._allowed = allowed

    def pick(self, choices: Sequence[T]) -> T:
        if not choices:
            raise DeadEnd
        return choices[int(self._rng.random() * len(choices))]

    def chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def may_say(self, subject: Subject, verb: str, what: str) -> bool:
        """Say whether the split allows the triples; nothing acts on its like."""
        names = subject_names(subject)
        return what not in names and all(self._allowed((name, verb, what)) for name in names)

    def noun(self, subject: Subject, verb: Verb, nouns: Sequence[Noun]) -> Noun:
        """Pick one that the subject and the verb may meet; kin only where it is somebody's."""
        owned = owner(subject) is not None

        def fits(noun: Noun) -> bool:
            return (owned or noun.kind != "kin") and self.may_say(subject, verb.base, noun.english)

        return self._pick_fitting(nouns, fits)

    def subject(self, nouns: Sequence[Noun], *, rich: bool = False) -> Subject:
        """Draw who acts; a rich subject is described at more length."""
        noun = self.pick(nouns)
        if rich and self.chance(0.1):
            return self._pair(noun, nouns)
        phrase = self.phrase(noun, SUBJECT_STARTS, described=0.55 if rich else 0.2)
        if rich and noun.kind in HUMAN and self.chance(0.3):
            return self._dressed(phrase)
        return phrase

    def phrase(self, noun: Noun, starts: Sequence[str], described: float = 0.25) -> Phrase:
        """Draw a phrase that opens with one of the starts, described with this probability."""
        start = self.pick(starts)
        if noun.kind in _SINGLE and start.endswith("+"):
            start = starts[0]
        adjectives = self._adjectives(noun) if self.chance(described) else ()
        determiner = DETERMINERS[start.removesuffix("+")]
        return Phrase(determiner, noun, start.endswith("+"), adjectives)

    def object(self, subject: Subject, verb: Verb) -> Phrase:
        """Draw what the verb acts on."""
        noun = self.noun(subject, verb, verb.objects)
        own = owner(subject)
        if noun.kind == "kin" and own:
            return self.phrase(noun, (own, own, own, f"{own}+"), described=0)
        if noun.mass:
            return self.phrase(noun, ("", "", "the"))
        if verb.base == "play" and not verb.preposition:
            return idiomatic(verb, self.phrase(noun, ("the",), described=0))
        if verb.base in ("ride", "drive", "build"):
            return idiomatic(verb, self.phrase(noun, ("a",)))
        if noun.kind in _UNIQUE:
            return self.phrase(noun, ("the",), described=0.15)
        own = own if noun.kind in _OWNED and verb.base not in ("buy", "sell") else None
        starts = [start.replace("own", own or "a") for start in _OBJECT_STARTS]
        return self.phrase(noun, starts)

    def place(self, subject: Subject, verb: Verb, spots: Sequence[Spot]) -> Place:
        """Draw where the clause happens or where it leads."""

        def fits(spot: Spot) -> bool:
            return self.may_say(subject, verb.base, spot.noun.english)

        spot = self._pick_fitting(spots, fits)
        starts: tuple[str, ...] = ("the", "the", "a")
        if spot.relation.english == "between":
            starts = ("two+", "the+")
        elif spot.noun.mass or spot.noun.kind == "room":
            starts = ("the",)
        return Place(spot.relation, self.phrase(spot.noun, starts, described=0.2))

    def clause(self, verb: Verb, subject: Subject, *, rich: bool = False) -> Clause:
        """Draw a clause with what the verb needs, and more where it is rich."""
        clause = Clause(subject, verb)
        if verb.objects:
            clause = replace(clause, object=self.object(subject, verb))
        if verb.recipients:
            clause = replace(clause, recipient=self._recipient(clause))
        if verb.place_needed or (verb.places and self.chance(self._wish_for_place(verb, rich))):
            clause = replace(clause, place=self._other_place(clause))
        return self._with_adverbs(clause, 0.35 if rich else 0.12)

    def _pick_fitting(self, choices: Sequence[T], fits: Callable[[T], bool]) -> T:
        """Pick evenly from those that fit; most do, so a few tries come before the long way."""
        for _ in range(4):
            choice = self.pick(choices)
            if fits(choice):
                return choice
        return self.pick([choice for choice in choices if fits(choice)])

    def _recipient(self, clause: Clause) -> Phrase:
        noun = self.noun(clause.subject, clause.verb, clause.verb.recipients)
        own = owner(clause.subject)
        starts = (own,) if noun.kind == "kin" and own else ("a", "the", "the", "the+")
        return self.phrase(noun, starts, described=0.1)

    def _other_place(self, clause: Clause) -> Place:
        """Draw a place that is not the object itself."""
        place = self.place(clause.subject, clause.verb, clause.verb.places)
        if clause.object and clause.object.noun == place.phrase.noun:
            raise DeadEnd
        return place

    def _wish_for_place(self, verb: Verb, rich: bool) -> float:
        return (0.8 if rich else 0.5) if verb.places[0].relation.moves else (0.4 if rich else 0.1)

    def _with_adverbs(self, clause: Clause, wish: float) -> Clause:
        """Add manner or time; an object beside a place is company enough."""
        if clause.object and clause.place and not clause.place.relation.moves:
            return clause
        if clause.verb.manners and self.chance(wish):
            return replace(clause, manner=self.pick(clause.verb.manners))
        return replace(clause, time=self.pick(lexicon.times())) if self.chance(wish / 2) else clause

    def _pair(self, noun: Noun, nouns: Sequence[Noun]) -> Pair:
        human = noun.kind in HUMAN
        others = [each for each in nouns if (each.kind in HUMAN) == human and each != noun]
        determiner = DETERMINERS[self.pick(("a", "a", "the"))]
        return Pair(Phrase(determiner, noun), Phrase(determiner, self.pick(others)))

    def _dressed(self, phrase: Phrase) -> Phrase:
        """Add what somebody wears or has with them."""
        relation, kinds = self.pick(((_IN, "garment"), (_WITH, "headwear luggage umbrella camera")))
        if relation == _IN and phrase.noun.kind in ("woman", "girl"):
            kinds = "garment gown"
        noun = self.pick(lexicon.nouns_of(kinds))
        colour = self.pick(lexicon.colours()[noun.english]) if noun.english != "camera" else None
        adjectives = (colour,) if colour and self.chance(0.8) else ()
        worn = Phrase(DETERMINERS["" if phrase.plural else "a"], noun, phrase.plural, adjectives)
        return replace(phrase, attribute=Place(relation, worn))

    def _adjectives(self, noun: Noun) -> tuple[Adjective, ...]:
        qualities, colours = lexicon.qualities()[noun.english], lexicon.colours()[noun.english]
        if qualities and colours and self.chance(0.25):
            return self.pick(qualities), self.pick(colours)
        both = qualities + colours
        return (self.pick(both),) if both else ()


def idiomatic(verb: Verb, phrase: Phrase) -> Phrase:
    """Open the phrase as the verb wants it: Klavier spielen, mit dem Fahrrad fahren."""
    if verb.base == "play" and not verb.preposition:
        return replace(phrase, determiner=THE_INSTRUMENT)
    if verb.stem == "fahren" and phrase.determiner.english == "a" and not phrase.adjectives:
        return replace(phrase, determiner=A_VEHICLE)
    return phrase


def owner(subject: Subject) -> str | None:
    """Return "his", "her" or "their" for what belongs to the subject, if the words tell."""
    if isinstance(subject, Pronoun):
        return _OWNERS[subject.english]
    if subject.plural:
        return "their"
    assert isinstance(subject, Phrase)
    return _OWNERS[subject.noun.pronoun] if subject.noun.pronoun else None
