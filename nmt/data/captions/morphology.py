"""The inflection of German: articles, adjective endings, nouns, relative pronouns."""

from dataclasses import dataclass

from nmt.data.captions.lexicon import Adjective, Case, Noun

PLURAL = 3  # the column after masculine, feminine and neuter
_GENDERS = "mfn"


@dataclass(frozen=True)
class Table:
    """Forms by case (a row) and gender or plural (a column); "-" is an empty form."""

    nom: str
    acc: str
    dat: str

    def form(self, case: Case, column: int) -> str:
        row = {"nom": self.nom, "acc": self.acc, "dat": self.dat}[case]
        return row.split()[column].replace("-", "")


# What precedes the adjectives: der itself, the endings of dies-, those of ein and kein, or none.
DER = Table("der die das die", "den die das die", "dem der dem den")
DIES = Table("er e es e", "en e es e", "em er em en")
EIN = Table("- e - e", "en e - e", "em er em en")
BARE = Table("- - - -", "- - - -", "- - - -")
# The endings of adjectives after der and dies-, after ein and kein, after anything else.
WEAK = Table("e e e en", "en e e en", "en en en en")
MIXED = Table("er e es en", "en e es en", "en en en en")
STRONG = Table("er e es e", "en e es e", "em er em en")

RELATIVE = Table("der die das die", "den die das die", "dem der dem denen")


@dataclass(frozen=True)
class Determiner:
    """What opens a noun phrase, and the adjective endings that German wants after it."""

    english: str
    german: str
    forms: Table
    endings: Table


DETERMINERS = {
    "a": Determiner("a", "ein", EIN, MIXED),
    "the": Determiner("the", "", DER, WEAK),
    "this": Determiner("this", "dies", DIES, WEAK),
    "no": Determiner("no", "kein", EIN, MIXED),
    "his": Determiner("his", "sein", EIN, MIXED),
    "her": Determiner("her", "ihr", EIN, MIXED),
    "their": Determiner("their", "ihr", EIN, MIXED),
    "two": Determiner("two", "zwei", BARE, STRONG),
    "three": Determiner("three", "drei", BARE, STRONG),
    "four": Determiner("four", "vier", BARE, STRONG),
    "five": Determiner("five", "fünf", BARE, STRONG),
    "some": Determiner("some", "einig", DIES, STRONG),
    "several": Determiner("several", "mehrer", DIES, STRONG),
    "many": Determiner("many", "viel", DIES, STRONG),
    "": Determiner("", "", BARE, STRONG),
}
# Idioms: "riding a bicycle" is "mit dem Fahrrad fahren", "playing the piano" "Klavier spielen".
A_VEHICLE = Determiner("a", "", DER, WEAK)
THE_INSTRUMENT = Determiner("the", "", BARE, STRONG)

_CONTRACTIONS = {
    "in dem": "im",
    "an dem": "am",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
    "in das": "ins",
    "an das": "ans",
}


def column(noun: Noun, plural: bool) -> int:
    """Return the column of the noun in every table."""
    return PLURAL if plural else _GENDERS.index(noun.gender)


def article(determiner: Determiner, case: Case, at: int) -> str:
    return determiner.german + determiner.forms.form(case, at)


def inflected(adjective: Adjective, determiner: Determiner, case: Case, at: int) -> str:
    """Return the adjective with its ending; colours in -a (rosa) never take one."""
    if adjective.german.endswith("a"):
        return adjective.german
    return adjective.stem + determiner.endings.form(case, at)


def noun_form(noun: Noun, case: Case, plural: bool) -> str:
    if not plural:
        return noun.german_plural if noun.weak and case != "nom" else noun.german
    takes_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
    return noun.german_plural + "n" * takes_n


def contracted(preposition: str, phrase: str) -> str:
    """Join a preposition and its phrase: in + dem Park is im Park."""
    spoken = f"{preposition} {phrase}".lstrip()
    for full, short in _CONTRACTIONS.items():
        if spoken.startswith(f"{full} "):
            return short + spoken.removeprefix(full)
    return spoken
