"""The captions before they are said in a language: phrases, clauses, sentences, their triples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nmt.data.captions.lexicon import Adjective, Adverbial, Noun, Relation, Verb
from nmt.data.captions.morphology import Determiner

Slot = Literal["", "subject", "object", "place", "time"]
Triple = tuple[str, str, str]


@dataclass(frozen=True)
class Phrase:
    """A noun and its company; the attribute is what somebody wears or has with them."""

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    attribute: "Place | None" = None
    relative: "Relative | None" = None


@dataclass(frozen=True)
class Pair:
    """Two people or animals joined by "and"."""

    first: Phrase
    second: Phrase
    plural: bool = True


@dataclass(frozen=True)
class Pronoun:
    """he, she or they, for whom the sentence has named before."""

    english: str
    antecedent: Phrase

    @property
    def plural(self) -> bool:
        return self.english == "they"


Subject = Phrase | Pair | Pronoun


@dataclass(frozen=True)
class Place:
    relation: Relation
    phrase: Phrase


@dataclass(frozen=True)
class Clause:
    """Who does what to whom, how, when, where; `front` names what opens a main clause."""

    subject: Subject
    verb: Verb
    object: Phrase | None = None
    recipient: Phrase | None = None
    place: Place | None = None
    manner: Adverbial | None = None
    time: Adverbial | None = None
    front: Slot = ""

    def has(self, slot: Slot, gap: Slot) -> bool:
        """Say whether the slot is filled and said in its usual position."""
        filled = {"object": self.object, "place": self.place, "time": self.time}[slot]
        return filled is not None and slot not in (gap, self.front)


@dataclass(frozen=True)
class Relative:
    """A relative clause: the clause, with its head still in the slot that becomes the pronoun."""

    clause: Clause
    gap: Slot


@dataclass(frozen=True)
class Feeling:
    """How somebody feels: "The man is tired"."""

    subject: Subject
    mood: Adjective


@dataclass(frozen=True)
class Link:
    """A conjunction; it sends the German verb to the end where `final`, after a comma or not."""

    english: str
    german: str
    final: bool
    comma: bool = True


@dataclass(frozen=True)
class Joined:
    """Two clauses and their link, which stands between them or opens the sentence."""

    first: Clause | Feeling
    link: Link
    second: Clause
    link_first: bool = False


@dataclass(frozen=True)
class Chain:
    """One subject that does two things: "A man is sitting on a bench and reading"."""

    first: Clause
    second: Clause


@dataclass(frozen=True)
class Intent:
    """What somebody wants, has or tries to do; `zu` where the German infinitive needs it."""

    clause: Clause
    english: tuple[str, str]
    german: tuple[str, str]
    zu: bool


@dataclass(frozen=True)
class Report:
    """What one sees: "You can see that" and a clause."""

    english: str
    german: str
    clause: Clause


@dataclass(frozen=True)
class There:
    """What is somewhere: "There is a table in the kitchen"."""

    clause: Clause


Sentence = Clause | Feeling | Joined | Chain | Intent | Report | There


def triples(sentence: Sentence) -> set[Triple]:
    """Return (subject, verb, object or place or receiver) of every clause, in English lemmas."""
    found = set()
    for clause in _clauses(sentence):
        found |= clause_triples(clause)
    return found


def clause_triples(clause: Clause | Feeling) -> set[Triple]:
    """Return the triples of this clause alone, the clauses inside it left out."""
    if isinstance(clause, Feeling):
        return {(name, "be", clause.mood.english) for name in subject_names(clause.subject)}
    place = clause.place.phrase if clause.place else None
    company = [phrase for phrase in (clause.object, clause.recipient, place) if phrase]
    return {
        (name, clause.verb.base, phrase.noun.english)
        for name in subject_names(clause.subject)
        for phrase in company
    }


def subject_names(subject: Subject) -> list[str]:
    """Return the English lemmas of a subject; those of its antecedent for a pronoun."""
    if isinstance(subject, Pronoun):
        return subject_names(subject.antecedent)
    if isinstance(subject, Pair):
        return [subject.first.noun.english, subject.second.noun.english]
    return [subject.noun.english]


def _clauses(sentence: Sentence) -> Iterator[Clause | Feeling]:
    match sentence:
        case Joined() | Chain():
            yield from _clauses(sentence.first)
            yield from _clauses(sentence.second)
        case Intent() | Report() | There():
            yield from _clauses(sentence.clause)
        case Feeling():
            yield sentence
        case Clause():
            yield sentence
            for phrase in (sentence.subject, sentence.object):
                if isinstance(phrase, Phrase) and phrase.relative:
                    yield from _clauses(phrase.relative.clause)
