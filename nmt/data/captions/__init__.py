"""The embedded corpus: English-German picture captions from a grammar of our own."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from random import Random

from nmt.data.captions.author import sentences
from nmt.data.captions.drawing import Draw
from nmt.data.captions.english import english
from nmt.data.captions.german import german
from nmt.data.captions.trees import Sentence, Triple
from nmt.errors import UserError

# The splits and how many pairs each has by default.
SPLITS = {"train": 20_000, "dev": 500, "test": 500}
_MAX_WORDS = 22


def pairs(split: str, num_pairs: int | None = None, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yield (English, German) sentences, no English one twice: the same for the same arguments.

    No triple of subject, verb and object or place is in two splits, whatever the arguments.
    """
    for caption, source in _distinct(split, num_pairs, seed):
        yield source, german(caption)


def captions(split: str, num_pairs: int | None = None, seed: int = 1) -> Iterator[Sentence]:
    """Yield the trees behind `pairs`, in the same order."""
    for caption, _ in _distinct(split, num_pairs, seed):
        yield caption


@lru_cache(maxsize=1 << 17)
def split_of(triple: Triple) -> str:
    """Return the only split that may say this triple: a tenth dev, a tenth test."""
    digest = blake2b("|".join(triple).encode(), digest_size=4).digest()
    tenth = int.from_bytes(digest, "big") % 10
    return ("dev", "test")[tenth] if tenth < 2 else "train"


def _distinct(split: str, num_pairs: int | None, seed: int) -> Iterator[tuple[Sentence, str]]:
    if split not in SPLITS:
        raise UserError(f"captions has no split {split!r}; it has {', '.join(SPLITS)}.")
    wanted = SPLITS[split] if num_pairs is None else num_pairs
    draw = Draw(Random(f"{split} {seed}"), lambda triple: split_of(triple) == split)
    seen: set[str] = set()
    for caption in sentences(draw):
        if len(seen) >= wanted:
            return
        source = english(caption)
        if source not in seen and len(source.split()) <= _MAX_WORDS:
            seen.add(source)
            yield caption, source
