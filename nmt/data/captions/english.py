"""Says a caption in English."""

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

_HUMAN = ("man", "woman", "boy", "girl", "child", "infant", "kin")


def english(sentence: Sentence) -> str:
    """Return the sentence with its capital letter and full stop."""
    spoken = _sentence(sentence)
    return f"{spoken[0].upper()}{spoken[1:]}."


def _sentence(sentence: Sentence) -> str:
    match sentence:
        case Clause() | Feeling():
            return _main(sentence)
        case Joined():
            return _joined(sentence)
        case Chain():
            second = sentence.second
            return f"{_clause(sentence.first)} and {_predicate(second, second.verb.ing)}"
        case Intent():
            clause = sentence.clause
            modal = sentence.english[clause.subject.plural]
            return _spaced(_subject(clause.subject), modal, _predicate(clause, clause.verb.base))
        case Report():
            return f"{sentence.english} {_clause(sentence.clause)}"
        case There():
            clause = sentence.clause
            assert clause.place
            there = f"there {_be(clause.subject)} {_subject(clause.subject)}"
            return f"{there} {_place(clause.place)}"


def _main(clause: Clause | Feeling) -> str:
    if isinstance(clause, Clause):
        return _clause(clause)
    return f"{_subject(clause.subject)} {_be(clause.subject)} {clause.mood.english}"


def _joined(sentence: Joined) -> str:
    first, second = _main(sentence.first), _clause(sentence.second)
    if sentence.link_first:
        return f"{sentence.link.english} {second}, {first}"
    comma = "" if sentence.link.final else ","
    return f"{first}{comma} {sentence.link.english} {second}"


def _clause(clause: Clause, gap: Slot = "") -> str:
    """Say the clause in the present progressive, without what the gap names."""
    front = ""
    if clause.front == "time" and clause.time:
        front = f"{clause.time.english},"
    if clause.front == "place" and clause.place:
        front = f"{_place(clause.place)},"
    return _spaced(
        front,
        "" if gap == "subject" else _subject(clause.subject),
        _be(clause.subject),
        clause.manner.english if clause.manner else "",
        _predicate(clause, clause.verb.ing, gap),
    )


def _predicate(clause: Clause, verb: str, gap: Slot = "") -> str:
    """Say the given form of the verb and all that follows it."""
    return _spaced(
        verb,
        _phrase(clause.recipient) if clause.recipient else "",
        _phrase(clause.object) if clause.object and clause.has("object", gap) else "",
        _place(clause.place) if clause.place and clause.has("place", gap) else "",
        clause.time.english if clause.time and clause.has("time", gap) else "",
    )


def _be(subject: Subject) -> str:
    return "are" if subject.plural else "is"


def _subject(subject: Subject) -> str:
    match subject:
        case Pronoun():
            return subject.english
        case Pair():
            return f"{_phrase(subject.first)} and {_phrase(subject.second)}"
        case Phrase():
            return _phrase(subject)


def _phrase(phrase: Phrase) -> str:
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    described = _spaced(*(adjective.english for adjective in phrase.adjectives), noun)
    article = phrase.determiner.english
    if article == "a" and described[0] in "aeiou" and not described.startswith("uni"):
        article = "an"
    attribute = _place(phrase.attribute) if phrase.attribute else ""
    relative = _relative(phrase.relative) if phrase.relative else ""
    return _spaced(article, described, attribute, relative)


def _place(place: Place) -> str:
    return f"{place.relation.english} {_phrase(place.phrase)}"


def _relative(relative: Relative) -> str:
    clause, gap = relative.clause, relative.gap
    rest = _clause(clause, gap)
    if gap == "place":
        assert clause.place
        return f"{clause.place.relation.english} which {rest}"
    head = clause.subject if gap == "subject" else clause.object
    assert isinstance(head, Phrase)
    if head.noun.kind not in _HUMAN:
        return f"that {rest}"
    return f"who {rest}" if gap == "subject" else f"whom {rest}"


def _spaced(*parts: str) -> str:
    return " ".join(part for part in parts if part)
