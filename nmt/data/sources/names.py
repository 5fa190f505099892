"""What a corpus name stands for: CORPUS[/PAIR][/SPLIT], sacrebleu/SET, hub:REPO/CONFIG:SPLIT."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt.data.sources.catalogue import CATALOGUE
from nmt.data.sources.entries import Entry, Hub, SacrebleuSets, Split
from nmt.data.sources.sacrebleu_sets import citation_of, find_test_set, pairs_of, set_names
from nmt.errors import UserError

_HUB = re.compile(
    r"hub:(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w.-]+))?(/(?P<config>[\w.-]+))?"
    r":(?P<split>[\w.-]+)"
)


class Choice(NamedTuple):
    """What a name such as wmt14/de-en/train stands for."""

    name: str
    """The full name; the pair stands in that of a hub set, whose configurations are pairs."""
    entry: Entry
    pair: str
    split: Split


def choose(name: str, *, src_lang: str, tgt_lang: str, default_split: str) -> Choice:
    """Return what a name stands for, or raise UserError naming what exists.

    `choose("wmt14", src_lang="en", tgt_lang="de", default_split="train").name` is
    "wmt14/de-en/train"; either direction of a pair works. Of a set of sacreBLEU the source is the
    original, so that en-de and de-en may be other texts: `sacrebleu/wmt20` is the one of the
    config's direction, `sacrebleu/wmt20/de-en` the named one.
    """
    if name.startswith("hub:"):
        return _hub_set(name)
    if name.startswith("sacrebleu/"):
        return _test_set(name.removeprefix("sacrebleu/"), f"{src_lang}-{tgt_lang}")
    corpus, *parts = name.split("/")
    entry = find_entry(corpus)
    named_pair = parts.pop(0) if parts and _same_pair(parts[0], entry.pairs) else ""
    if len(parts) > 1:
        raise UserError(f"{name}: a corpus is named CORPUS[/PAIR][/SPLIT], with at most two '/'.")
    split = _split(entry, parts[0] if parts else default_split, name)
    pair = _pair(entry, split, f"{src_lang}-{tgt_lang}", named_pair)
    steps = (
        [entry.name, pair, split.name] if isinstance(entry.origin, Hub) else [corpus, split.name]
    )
    return Choice("/".join(steps), entry, pair, split)


def find_entry(name: str) -> Entry:
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    names = [entry.name for entry in CATALOGUE]
    raise UserError(
        f"{name}: no corpus has this name{_nearest(name, names)}; the catalogue has "
        f"{', '.join(names)}, test sets of sacreBLEU are named sacrebleu/SET, sets of the Hugging "
        f"Face hub hub:REPO/CONFIG:SPLIT, and own files are written {{src: FILE, tgt: FILE}} or "
        f"{{tsv: FILE}}."
    )


def _hub_set(name: str) -> Choice:
    parts = _HUB.fullmatch(name)
    if parts is None:
        raise UserError(
            f"{name}: a set of the Hugging Face hub is named "
            f"hub:OWNER/REPO[@REVISION]/CONFIG:SPLIT, such as "
            f"hub:Helsinki-NLP/opus-100/de-en:train."
        )
    repo, revision, config, split = parts.group("repo", "revision", "config", "split")
    entry = Entry(
        name=repo,
        title=f"{repo} of the Hugging Face hub",
        pairs=(config or "",),
        splits=(Split(split),),
        licence=f"see https://huggingface.co/datasets/{repo}",
        citation=f"see https://huggingface.co/datasets/{repo}",
        origin=Hub(repo, revision or ""),
    )
    return Choice(name, entry, config or "", entry.splits[0])


def _test_set(wanted: str, spoken: str) -> Choice:
    test_set, _, last = wanted.rpartition("/")
    named = last if test_set in set_names() and re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", last) else ""
    test_set = find_test_set(test_set if named else wanted)
    pairs = pairs_of(test_set)
    pair = named or spoken
    if pair not in pairs:
        raise UserError(
            f"sacrebleu/{test_set}: has no pair {pair}; it has {', '.join(pairs)}, each as "
            f"original and translation."
        )
    if not _same_pair(pair, [spoken]):
        raise UserError(
            f"sacrebleu/{wanted}: is a set of {pair} while the languages of the config are "
            f"{spoken}."
        )
    entry = Entry(
        name=f"sacrebleu/{test_set}",
        title=f"sacreBLEU's {test_set}",
        pairs=(pair,),
        splits=(Split(pair),),
        licence="for research; see its publisher",
        citation=citation_of(test_set),
        origin=SacrebleuSets(file="{split}.{language}.gz", sets={pair: (test_set, pair)}),
    )
    return Choice(f"{entry.name}/{pair}", entry, pair, entry.splits[0])


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
    pairs = entry.pairs_in(split)
    if found := _same_pair(wanted, pairs):
        return found
    others = [other.name for other in entry.splits if _same_pair(wanted, entry.pairs_in(other))]
    if others:
        raise UserError(
            f"{entry.name}/{split.name}: has no pair {wanted}; {entry.name} has this pair in "
            f"{', '.join(others)} alone."
        )
    raise UserError(
        f"{entry.name}/{split.name}: has no pair {wanted}{_nearest(wanted, pairs)}; "
        f"it has {', '.join(pairs)}, in either direction."
    )


def _same_pair(wanted: str, pairs: Iterable[str]) -> str:
    """Return the pair of these languages in whichever order, or ""."""
    both = (wanted, "-".join(reversed(wanted.split("-"))))
    return next((pair for pair in pairs if pair in both), "")


def _nearest(word: str, words: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
