"""Writes captions at random: simple ones, with relative clauses, with conjunctions, and so on."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from nmt.data.captions import lexicon
from nmt.data.captions.drawing import HUMAN, LIVING, DeadEnd, Draw
from nmt.data.captions.lexicon import Noun, Spot, Verb
from nmt.data.captions.trees import (
    Chain,
    Clause,
    Feeling,
    Intent,
    Joined,
    Link,
    Pair,
    Phrase,
    Place,
    Pronoun,
    Relative,
    Report,
    Sentence,
    Subject,
    There,
)

WHILE = Link("while", "während", final=True)
BECAUSE = Link("because", "weil", final=True)
AND = Link("and", "und", final=False, comma=False)
BUT = Link("but", "aber", final=False)
# English for one and for many, German for one and for many, whether German wants "zu".
INTENTS = (
    (("wants to", "want to"), ("will", "wollen"), False),
    (("has to", "have to"), ("muss", "müssen"), False),
    (("is trying to", "are trying to"), ("versucht", "versuchen"), True),
    (("is beginning to", "are beginning to"), ("beginnt", "beginnen"), True),
)
REPORTS = (
    ("you can see that", "man sieht, dass"),
    ("the photo shows how", "das Foto zeigt, wie"),
    ("you can see how", "man sieht, wie"),
)
# What goes with doing something else, and what one may do at something that has company.
_POSTURES = ("sit", "stand", "lie", "kneel")
_STATES = (*_POSTURES, "wait", "rest", "laugh", "hide", "graze")
_HEEDING = (
    "photograph, watch, draw, paint, look at, look for, point at, wait for, listen to, laugh at, "
    "wave to, greet, follow, help, thank, feed"
).split(", ")
_HEADS = ("a", "a", "the", "the", "the+", "two+")


def sentences(draw: Draw) -> Iterator[Sentence]:
    """Yield captions without end; the same one may come again."""
    weights = {
        _simple: 32,
        _acting_head: 8,
        _suffering_head: 5,
        _object_with_relative: 7,
        _at_the_same_time: 7,
        _alongside: 4,
        _for_a_reason: 8,
        _feeling: 3,
        _contrast: 5,
        _chain: 8,
        _intent: 9,
        _report: 5,
        _there: 8,
        _es_gibt: 4,
    }
    writers = [writer for writer, weight in weights.items() for _ in range(weight)]
    while True:
        try:
            yield draw.pick(writers)(draw)
        except DeadEnd:
            continue


def _simple(draw: Draw) -> Sentence:
    verb = draw.pick(_all_verbs())
    clause = draw.clause(verb, draw.subject(verb.subjects, rich=True), rich=True)
    if clause.time and draw.chance(0.5):
        return replace(clause, front="time")
    stays = clause.object and clause.place and not clause.place.relation.moves
    return replace(clause, front="place") if stays and draw.chance(0.3) else clause


def _acting_head(draw: Draw) -> Sentence:
    """Write "A man who is holding an umbrella is waiting at the station"."""
    noun = draw.pick(_acting_nouns())
    head = draw.phrase(noun, _HEADS)
    state, deed = draw.pick(_states(noun)), draw.pick(_quiet_deeds(noun))
    inner, outer = draw.pick(((state, deed), (deed, state)))
    relative = Relative(draw.clause(inner, head), "subject")
    return draw.clause(outer, replace(head, relative=relative))


def _suffering_head(draw: Draw) -> Sentence:
    """Write "The dog that a girl is stroking is lying on the lawn"."""
    noun = draw.pick([noun for noun in _acting_nouns() if _verbs_on(noun)])
    head = draw.phrase(noun, _HEADS)
    relative = _acted_on(draw, head)
    return draw.clause(draw.pick(_verbs_by(noun)), replace(head, relative=relative))


def _object_with_relative(draw: Draw) -> Sentence:
    """Write "A woman is photographing the dog that is chasing a cat"."""
    verb = draw.pick([verb for verb in _all_verbs() if verb.base in _HEEDING and not verb.prefix])
    subject = draw.subject(verb.subjects)
    noun = draw.noun(subject, verb, [noun for noun in verb.objects if noun.kind != "kin"])
    if noun.mass:
        raise DeadEnd
    head = draw.phrase(noun, ("a", "the", "the"))
    relative = _about(draw, head)
    if relative.clause.verb.base == verb.base:
        raise DeadEnd
    return Clause(subject, verb, object=replace(head, relative=relative))


def _about(draw: Draw, head: Phrase) -> Relative:
    """Write what the head does, what happens on it or what is done to it."""
    if _verbs_by(head.noun) and draw.chance(0.7):
        return Relative(draw.clause(draw.pick(_verbs_by(head.noun)), head), "subject")
    scenes = _scenes_at(head.noun)
    if not scenes or draw.chance(0.3):
        return _acted_on(draw, head)
    verb, spot = draw.pick(scenes)
    subject = draw.subject(verb.subjects)
    if not draw.may_say(subject, verb.base, head.noun.english):
        raise DeadEnd
    return Relative(Clause(subject, verb, place=Place(spot.relation, head)), "place")


def _acted_on(draw: Draw, head: Phrase) -> Relative:
    verb = draw.pick(_verbs_on(head.noun))
    subject = draw.subject(verb.subjects)
    if not draw.may_say(subject, verb.base, head.noun.english):
        raise DeadEnd
    return Relative(Clause(subject, verb, object=head), "object")


def _at_the_same_time(draw: Draw) -> Sentence:
    """Write "A woman is singing while a man is washing a car"."""
    return Joined(_plain(draw), WHILE, _plain(draw), link_first=draw.chance(0.5))


def _alongside(draw: Draw) -> Sentence:
    """Write "A man is reading a book while he is waiting at the station"."""
    noun = draw.pick([noun for noun in _acting_nouns() if noun.kind in HUMAN])
    subject = draw.subject([noun])
    pronoun = _pronoun(subject)
    first = replace(draw.clause(draw.pick(_quiet_deeds(noun)), subject), place=None)
    return Joined(first, WHILE, draw.clause(draw.pick(_states(noun)), pronoun))


def _for_a_reason(draw: Draw) -> Sentence:
    """Write "The girl is happy because a puppy is sleeping on the bed"."""
    return Joined(_feeling(draw), BECAUSE, _plain(draw))


def _feeling(draw: Draw) -> Feeling:
    noun = draw.pick([noun for noun in _acting_nouns() if noun.kind in HUMAN])
    subject = draw.subject([noun], rich=False)
    mood = draw.pick(lexicon.moods())
    described = isinstance(subject, Phrase) and mood in subject.adjectives
    if described or not draw.may_say(subject, "be", mood.english):
        raise DeadEnd
    return Feeling(subject, mood)


def _contrast(draw: Draw) -> Sentence:
    """Write "A boy is singing, but a girl is reading a letter"."""
    return Joined(_plain(draw), draw.pick((AND, BUT)), _plain(draw))


def _chain(draw: Draw) -> Sentence:
    """Write "A man is sitting on a bench and eating an apple"."""
    posture = draw.pick([verb for verb in lexicon.verbs() if verb.base in _POSTURES])
    noun = draw.pick(posture.subjects)
    subject = draw.subject([noun], rich=True)
    if isinstance(subject, Pair):
        raise DeadEnd
    second = replace(draw.clause(draw.pick(_quiet_deeds(noun)), subject), place=None, manner=None)
    return Chain(draw.clause(posture, subject), second)


def _intent(draw: Draw) -> Sentence:
    """Write "A child is trying to pick up a ball"."""
    verb = draw.pick([verb for verb in _all_verbs() if verb.base not in _STATES])
    people = [noun for noun in verb.subjects if noun.kind in HUMAN]
    subject = draw.subject(people, rich=True)
    return Intent(replace(draw.clause(verb, subject), manner=None), *draw.pick(INTENTS))


def _report(draw: Draw) -> Sentence:
    """Write "You can see that a woman is dancing in the street"."""
    verb = draw.pick(_all_verbs())
    subject = draw.subject(verb.subjects, rich=True)
    # "How many men are ..." would be a question.
    many = isinstance(subject, Phrase) and subject.determiner.english == "many"
    return Report(*draw.pick(REPORTS[:1] if many else REPORTS), draw.clause(verb, subject))


def _there(draw: Draw) -> Sentence:
    """Write "There is an old car in front of the house"."""
    starts = ("a", "a", "a", "two+", "three+", "some+", "several+")
    return _being(draw, draw.pick(lexicon.standing_verbs()), starts)


def _es_gibt(draw: Draw) -> Sentence:
    """Write "There are no chairs in the kitchen"."""
    return _being(draw, draw.pick(lexicon.existing_verbs()), ("no", "no+", "many+"))


def _being(draw: Draw, verb: Verb, starts: tuple[str, ...]) -> Sentence:
    subject = draw.phrase(draw.pick(verb.subjects), starts, described=0.5)
    return There(Clause(subject, verb, place=draw.place(subject, verb, verb.places)))


def _plain(draw: Draw) -> Clause:
    verb = draw.pick(_all_verbs())
    return draw.clause(verb, draw.subject(verb.subjects))


def _pronoun(subject: Subject) -> Pronoun:
    """Return the pronoun for somebody where the words tell which."""
    word = "they" if subject.plural else None
    if isinstance(subject, Phrase):
        word = word or subject.noun.pronoun
        if word:
            return Pronoun(word, subject)
    raise DeadEnd


@cache
def _all_verbs() -> tuple[Verb, ...]:
    """Return the verbs to draw from evenly: up to four times those that have many words to show."""
    verbs = lexicon.verbs() + lexicon.placing_verbs() + lexicon.giving_verbs()
    return tuple(verb for verb in verbs for _ in range(min(4, 1 + _variety(verb) // 10)))


def _variety(verb: Verb) -> int:
    """Count the things and the places that need the verb to be seen."""
    things = [noun for noun in verb.objects if noun.kind not in LIVING]
    return len(things) + len(verb.places) * verb.place_needed


@cache
def _acting_nouns() -> tuple[Noun, ...]:
    return tuple(noun for noun in lexicon.nouns().values() if _verbs_by(noun))


@cache
def _verbs_by(noun: Noun) -> tuple[Verb, ...]:
    return tuple(verb for verb in _all_verbs() if noun in verb.subjects)


@cache
def _states(noun: Noun) -> tuple[Verb, ...]:
    return tuple(verb for verb in _verbs_by(noun) if verb.base in _STATES)


@cache
def _quiet_deeds(noun: Noun) -> tuple[Verb, ...]:
    """Return what the noun can do to something while it sits, stands or waits."""
    bench = lexicon.nouns()["bench"]
    deeds = [verb for verb in _verbs_by(noun) if verb.objects]
    return tuple(verb for verb in deeds if any(spot.noun == bench for spot in verb.places))


@cache
def _verbs_on(noun: Noun) -> tuple[Verb, ...]:
    """Return the verbs that need nothing but this object."""
    simple = [verb for verb in _all_verbs() if not (verb.place_needed or verb.recipients)]
    return tuple(verb for verb in simple if noun in verb.objects)


@cache
def _scenes_at(noun: Noun) -> tuple[tuple[Verb, Spot], ...]:
    """Return what happens on, in or at the noun."""
    scenes = [(verb, spot) for verb in _all_verbs() if not verb.objects for spot in verb.places]
    return tuple(
        (verb, spot)
        for verb, spot in scenes
        if spot.noun is noun and not spot.relation.moves and spot.relation.english != "between"
    )
