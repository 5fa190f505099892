"""What a corpus name, CORPUS[/PAIR][/SPLIT], stands for."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from nmt.data.catalogue import CATALOGUE, Entry, Hub, Split
from nmt.errors import UserError


class Choice(NamedTuple):
    """What a name such as wmt14/de-en/train stands for."""

    entry: Entry
    pair: str
    split: Split

    @property
    def name(self) -> str:
        """The full name; the pair stands in that of a hub set, whose configurations are pairs."""
        pair = [self.pair] if isinstance(self.entry.origin, Hub) else []
        return "/".join([self.entry.name, *pair, self.split.name])


def choose(name: str, *, src_lang: str, tgt_lang: str, default_split: str) -> Choice:
    """Return what CORPUS[/PAIR][/SPLIT] stands for, or raise UserError naming what exists.

    `choose("wmt14", src_lang="en", tgt_lang="de", default_split="train").name` is
    "wmt14/de-en/train"; either direction of a pair works.
    """
    corpus, *parts = name.split("/")
    entry = _entry(corpus)
    named_pair = parts.pop(0) if parts and _same_pair(parts[0], entry.pairs) else ""
    if len(parts) > 1:
        raise UserError(f"{name}: a corpus is named CORPUS[/PAIR][/SPLIT], with at most two '/'.")
    split = _split(entry, parts[0] if parts else default_split, name)
    return Choice(entry, _pair(entry, split, f"{src_lang}-{tgt_lang}", named_pair), split)


def _entry(name: str) -> Entry:
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    names = [entry.name for entry in CATALOGUE]
    raise UserError(
        f"{name}: no corpus has this name{_nearest(name, names)}; the catalogue has "
        f"{', '.join(names)}, and own files are written {{src: FILE, tgt: FILE}} or {{tsv: FILE}}."
    )


def _split(entry: Entry, wanted: str, name: str) -> Split:
    for split in entry.splits:
        if split.name == wanted:
            return split
    names = [split.name for split in entry.splits]
    pairs = f" for the pairs {', '.join(entry.pairs)}" if isinstance(entry.origin, Hub) else ""
    raise UserError(
        f"{name}: {entry.name} has no split {wanted!r}{_nearest(wanted, names)}; "
        f"it has {', '.join(names)}{pairs}."
    )


def _pair(entry: Entry, split: Split, wanted: str, named: str) -> str:
    """Return the pair in the corpus's own order."""
    if named and not _same_pair(named, [wanted]):
        raise UserError(
            f"{entry.name}/{named}: the corpus is named for {named} while the languages of the "
            f"config are {wanted}; leave the pair out, or change src and tgt."
        )
    spoken = split.languages or entry.languages
    pairs = [pair for pair in entry.pairs if set(pair.split("-")) <= set(spoken)]
    found = _same_pair(wanted, pairs)
    if not found:
        raise UserError(
            f"{entry.name}/{split.name}: has no pair {wanted}{_nearest(wanted, pairs)}; "
            f"it has {', '.join(pairs)}, in either direction."
        )
    return found


def _same_pair(wanted: str, pairs: Iterable[str]) -> str:
    """Return the pair of these languages in whichever order, or ""."""
    both = (wanted, "-".join(reversed(wanted.split("-"))))
    return next((pair for pair in pairs if pair in both), "")


def _nearest(word: str, words: list[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
