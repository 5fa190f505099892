"""The lexicon of the captions: English and German forms, and what goes with what."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from nmt.data.captions import frames, words

Case = Literal["nom", "acc", "dat"]
_PRONOUNS = {"man": "he", "boy": "he", "woman": "she", "girl": "she"}


@dataclass(frozen=True)
class Noun:
    """A noun; a weak one (der Junge, den Jungen) looks like its plural but for the nominative."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    weak: bool
    kind: str

    @property
    def mass(self) -> bool:
        return self.german_plural == "-"

    @property
    def pronoun(self) -> str | None:
        """Return "he" or "she" where the English word tells which, else None."""
        return _PRONOUNS[self.kind] if self.kind in _PRONOUNS else None


@dataclass(frozen=True)
class Adjective:
    english: str
    german: str
    stem: str


@dataclass(frozen=True)
class Adverbial:
    """A fixed phrase of time or manner."""

    english: str
    german: str


@dataclass(frozen=True)
class Relation:
    """A preposition; its particle closes the clause as a separable prefix does (am Haus vorbei)."""

    english: str
    german: str
    case: Case
    particle: str = ""

    @property
    def moves(self) -> bool:
        return self.case == "acc" or self.particle != "" or self.german in ("zu", "aus", "von")


@dataclass(frozen=True)
class Spot:
    """A noun with the preposition it takes as a place."""

    relation: Relation
    noun: Noun


@dataclass(frozen=True)
class Verb:
    """A verb in one construction, with the nouns, places and manners that make sense in it."""

    base: str
    ing: str
    reflexive: bool
    singular: str
    prefix: str
    stem: str
    preposition: str
    case: Case
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    recipients: tuple[Noun, ...]
    places: tuple[Spot, ...]
    place_needed: bool
    manners: tuple[Adverbial, ...]


@cache
def nouns() -> dict[str, Noun]:
    """Return every noun by its English singular, in the order of the sections."""
    found: dict[str, Noun] = {}
    for kind, rows in _sections(words.NOUNS):
        for row in rows.split(","):
            names, gender, german, plural = row.replace("_", " ").rsplit(maxsplit=3)
            english, _, irregular = names.strip().partition("/")
            weak = gender == "w"
            found[english] = Noun(
                english,
                irregular or _english_plural(english),
                "m" if weak else gender,
                german,
                plural,
                weak,
                kind,
            )
    return found


@cache
def nouns_of(names: str) -> tuple[Noun, ...]:
    """Return the nouns of a list of groups, kinds and English nouns, each once."""
    found: dict[str, Noun] = {}
    for name in names.split():
        for noun in _nouns_named(name):
            found[noun.english] = noun
    return tuple(found.values())


def _nouns_named(name: str) -> tuple[Noun, ...]:
    if name in words.GROUPS:
        return nouns_of(words.GROUPS[name])
    of_kind = tuple(noun for noun in nouns().values() if noun.kind == name)
    return of_kind or (nouns()[name.replace("_", " ")],)


@cache
def qualities() -> dict[str, tuple[Adjective, ...]]:
    """Return by English noun the adjectives of size, age and state that it takes."""
    return _adjectives_by_noun(words.QUALITIES)


@cache
def colours() -> dict[str, tuple[Adjective, ...]]:
    """Return by English noun the colours that it takes."""
    return _adjectives_by_noun(words.COLOURS)


@cache
def moods() -> tuple[Adjective, ...]:
    """Return the adjectives that say how somebody feels."""
    return tuple(_adjective(entry) for entry in words.MOODS.split(", "))


@cache
def times() -> tuple[Adverbial, ...]:
    """Return the phrases of time."""
    return tuple(Adverbial(*fields) for fields in _rows(words.TIMES))


@cache
def manners(style: str) -> tuple[Adverbial, ...]:
    """Return the adverbs that fit the style of a verb."""
    entries = [(entry.split(), styles.split()) for entry, styles in _sections(words.MANNERS)]
    return tuple(Adverbial(*forms) for forms, styles in entries if style in styles)


@cache
def spots(names: str) -> tuple[Spot, ...]:
    """Return the places of some sets of places."""
    return tuple(spot for name in names.split() for spot in _places()[name])


@cache
def verbs() -> tuple[Verb, ...]:
    """Return the verbs that need an object or a place at most."""
    return tuple(_verb(fields) for fields in _rows(frames.VERBS))


@cache
def placing_verbs() -> tuple[Verb, ...]:
    """Return the verbs that put an object somewhere."""
    return tuple(_verb(fields, placing=True) for fields in _rows(frames.PLACING))


@cache
def giving_verbs() -> tuple[Verb, ...]:
    """Return the verbs with an object and a person who receives it."""
    found = []
    for english, german, subjects, objects, recipients, style in _rows(frames.GIVING):
        found.append(_verb([english, german, subjects, objects, "", style], recipients))
    return tuple(found)


@cache
def standing_verbs() -> tuple[Verb, ...]:
    """Return the verbs behind "there is": stehen, liegen, hängen, by what is there."""
    return tuple(_verb(fields) for fields in _rows(frames.STANDING))


@cache
def existing_verbs() -> tuple[Verb, ...]:
    """Return "es gibt" with what there may be none or many of."""
    return tuple(_verb(fields) for fields in _rows(frames.EXISTING))


@cache
def _places() -> dict[str, list[Spot]]:
    rows = list(_rows(frames.PLACES))
    found: dict[str, list[Spot]] = {row[0]: [] for row in rows}
    for name, english, german, government, members in rows:
        case, _, particle = government.partition(" ")
        relation = Relation(english, german, _case(case), particle)
        found[name] += [Spot(relation, noun) for noun in nouns_of(members)]
    return found


def _verb(fields: list[str], recipients: str = "", placing: bool = False) -> Verb:
    english, german, subjects, objects, places, style = fields
    base, _, ing = english.partition("/")
    rest = ing.partition(" ")[2]
    *reflexive, singular, infinitive = german.split()
    prefix, _, stem = infinitive.rpartition("·")
    government, _, members = objects.rpartition(":")
    preposition, _, case = government.rpartition(".")
    return Verb(
        base=f"{base} {rest}".strip(),
        ing=ing,
        reflexive=reflexive == ["sich"],
        singular=singular,
        prefix=prefix,
        stem=stem,
        preposition=preposition,
        case=_case(case or "acc"),
        subjects=nouns_of(subjects),
        objects=nouns_of(members),
        recipients=nouns_of(recipients),
        places=spots(places),
        place_needed=placing or not members,
        manners=manners(style),
    )


def _adjectives_by_noun(rows: str) -> dict[str, tuple[Adjective, ...]]:
    found: dict[str, tuple[Adjective, ...]] = dict.fromkeys(nouns(), ())
    for entry, names in _sections(rows):
        for noun in nouns_of(names):
            found[noun.english] += (_adjective(entry),)
    return found


def _adjective(entry: str) -> Adjective:
    english, forms = entry.split()
    german, _, stem = forms.partition("/")
    return Adjective(english.replace("_", " "), german, stem or german.removesuffix("e"))


def _english_plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def _case(name: str) -> Case:
    return {"acc": "acc", "dat": "dat"}[name]  # type: ignore[return-value]


def _rows(table: str) -> Iterator[list[str]]:
    """Yield the fields of each line."""
    for line in table.strip().splitlines():
        yield [field.strip() for field in line.split("|")]


def _sections(table: str) -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each section `heading: text`, lines joined."""
    for section in table.replace("\n  ", " ").strip().splitlines():
        heading, _, text = section.partition(":")
        yield heading, text
