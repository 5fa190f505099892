"""Says a caption in German: word order, verb forms, agreement."""

from typing import Literal

from nmt.data.captions.lexicon import Case
from nmt.data.captions.morphology import (
    RELATIVE,
    article,
    column,
    contracted,
    inflected,
    noun_form,
)
from nmt.data.captions.trees import (
    Chain,
    Clause,
    Feeling,
    Intent,
    Joined,
    Pair,
    Phrase,
    Place,
    Pronoun,
    Relative,
    Report,
    Sentence,
    Slot,
    Subject,
    There,
)

# Where the finite verb stands: after the subject, before it, or at the end.
Order = Literal["second", "inverted", "final"]
_PRONOUNS = {"he": "er", "she": "sie", "they": "sie"}


def german(sentence: Sentence) -> str:
    """Return the sentence with its capital letter and full stop."""
    # A comma closes a relative clause, unless another mark or the end of the sentence does.
    spoken = _sentence(sentence).replace(",,", ",").removesuffix(",")
    return f"{spoken[0].upper()}{spoken[1:]}."


def _sentence(sentence: Sentence) -> str:
    match sentence:
        case Clause() | Feeling():
            return _main(sentence)
        case Joined():
            return _joined(sentence)
        case Chain():
            return f"{_main(sentence.first)} und {_predicate(sentence.second)}"
        case Intent():
            return _intent(sentence)
        case Report():
            return f"{sentence.german} {_clause(sentence.clause, 'final')}"
        case There():
            return _there(sentence.clause)


def _joined(sentence: Joined) -> str:
    order: Order = "final" if sentence.link.final else "second"
    second = _clause(sentence.second, order)
    if sentence.link_first:
        return f"{sentence.link.german} {second}, {_main(sentence.first, inverted=True)}"
    comma = "," if sentence.link.comma else ""
    return f"{_main(sentence.first)}{comma} {sentence.link.german} {second}"


def _intent(sentence: Intent) -> str:
    clause = sentence.clause
    modal = f"{_subject(clause.subject)} {sentence.german[clause.subject.plural]}"
    himself = "sich" if clause.verb.reflexive else ""
    if not sentence.zu:
        return _spaced(modal, himself, _middle(clause), _prefix(clause) + clause.verb.stem)
    # A prefix takes "zu" in: aufzuheben.
    prefix = _prefix(clause)
    infinitive = f"{prefix}zu{clause.verb.stem}" if prefix else f"zu {clause.verb.stem}"
    return f"{modal}, {_spaced(himself, _middle(clause), infinitive)}"


def _there(clause: Clause) -> str:
    """Say what stands, lies or hangs somewhere, or what there is with "es gibt"."""
    assert clause.place and isinstance(clause.subject, Phrase)
    place = _place(clause.place)
    if clause.verb.stem == "geben":
        return f"es gibt {_phrase(clause.subject, 'acc')} {place}"
    return f"{place} {_finite(clause)} {_phrase(clause.subject, 'nom')}"


def _main(clause: Clause | Feeling, inverted: bool = False) -> str:
    if isinstance(clause, Clause):
        return _clause(clause, "inverted" if inverted or clause.front else "second")
    subject, be = _subject(clause.subject), "sind" if clause.subject.plural else "ist"
    return f"{subject} {be} {clause.mood.german}"


def _clause(clause: Clause, order: Order, gap: Slot = "") -> str:
    subject = "" if gap == "subject" else _subject(clause.subject)
    if order == "second":
        return f"{subject} {_predicate(clause)}"
    himself = "sich" if clause.verb.reflexive else ""
    # "sich" goes before a full noun but after a pronoun.
    pronoun = isinstance(clause.subject, Pronoun)
    opening = _spaced(subject, himself) if pronoun else _spaced(himself, subject)
    if order == "inverted":
        front = _front(clause)
        return _spaced(front, _finite(clause), opening, _middle(clause), _prefix(clause))
    return _spaced(opening, _middle(clause, gap), _prefix(clause) + _finite(clause))


def _predicate(clause: Clause) -> str:
    """Say the clause from its finite verb on."""
    himself = "sich" if clause.verb.reflexive else ""
    return _spaced(_finite(clause), himself, _middle(clause), _prefix(clause))


def _front(clause: Clause) -> str:
    if clause.front == "time" and clause.time:
        return clause.time.german
    return _place(clause.place) if clause.front == "place" and clause.place else ""


def _middle(clause: Clause, gap: Slot = "") -> str:
    """Say what stands inside the verbal bracket: receiver, time, manner, place, object, goal."""
    place = _place(clause.place) if clause.place and clause.has("place", gap) else ""
    moves = clause.place is not None and clause.place.relation.moves
    return _spaced(
        _phrase(clause.recipient, "dat") if clause.recipient else "",
        clause.time.german if clause.time and clause.has("time", gap) else "",
        clause.manner.german if clause.manner else "",
        "" if moves else place,
        _object(clause, clause.object) if clause.object and clause.has("object", gap) else "",
        place if moves else "",
    )


def _finite(clause: Clause) -> str:
    return clause.verb.stem if clause.subject.plural else clause.verb.singular


def _prefix(clause: Clause) -> str:
    """Return what parts from the verb: its own prefix, or the particle of the place."""
    return clause.verb.prefix or (clause.place.relation.particle if clause.place else "")


def _object(clause: Clause, phrase: Phrase) -> str:
    return contracted(clause.verb.preposition, _phrase(phrase, clause.verb.case))


def _place(place: Place) -> str:
    return contracted(place.relation.german, _phrase(place.phrase, place.relation.case))


def _subject(subject: Subject) -> str:
    match subject:
        case Pronoun():
            return _PRONOUNS[subject.english]
        case Pair():
            return f"{_phrase(subject.first, 'nom')} und {_phrase(subject.second, 'nom')}"
        case Phrase():
            return _phrase(subject, "nom")


def _phrase(phrase: Phrase, case: Case) -> str:
    determiner, at = phrase.determiner, column(phrase.noun, phrase.plural)
    spoken = _spaced(
        article(determiner, case, at),
        *(inflected(adjective, determiner, case, at) for adjective in phrase.adjectives),
        noun_form(phrase.noun, case, phrase.plural),
        _place(phrase.attribute) if phrase.attribute else "",
    )
    return f"{spoken}, {_relative(phrase.relative, at)}," if phrase.relative else spoken


def _relative(relative: Relative, at: int) -> str:
    """Say the relative clause for a head in this column: gender from it, case from the gap."""
    clause, gap = relative.clause, relative.gap
    rest = _clause(clause, "final", gap)
    if gap == "object":
        pronoun = RELATIVE.form(clause.verb.case, at)
        return _spaced(clause.verb.preposition, pronoun, rest)
    if gap == "place" and clause.place:
        relation = clause.place.relation
        return _spaced(relation.german, RELATIVE.form(relation.case, at), rest)
    return _spaced(RELATIVE.form("nom", at), rest)


def _spaced(*parts: str) -> str:
    return " ".join(part for part in parts if part)
