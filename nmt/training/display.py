"""What a person sees of a training: the bar, and what a validation found."""

import math
from collections.abc import Iterator
from typing import NoReturn

from tqdm import tqdm

from nmt.training.step import UpdateResult
from nmt.training.validation import DevResult, Translations


def progress_bar(total: float, done: int, *, is_shown: bool) -> "tqdm[NoReturn]":
    """Return a bar of updates on standard error; quiet where that is no terminal.

    It is cut where the terminal ends, so what matters least stands last.
    """
    return tqdm(
        total=None if math.isinf(total) else int(total),
        initial=done,
        bar_format="{percentage:3.0f}% {bar:10} {n_fmt}/{total_fmt}{postfix}",
        dynamic_ncols=True,
        disable=None if is_shown else True,
    )


def describe_update(result: UpdateResult, tokens_per_s: float, seconds_left: float) -> str:
    if result.trouble:
        return f"{result.trouble}, skipped"
    left = duration(seconds_left) + ("" if math.isinf(seconds_left) else " left")
    return (
        f"{left}, loss {result.mean_loss:.3f}, ppl {result.ppl:.1f}, "
        f"{tokens_per_s:,.0f} tokens/s, grad norm {result.grad_norm:.2f}"
    )


def describe_validation(
    dev: DevResult, found: Translations, step: int, elapsed_s: float, *, is_best: bool
) -> Iterator[str]:
    yield (
        f"update {step:,}: dev loss {dev.loss:.3f}, perplexity {dev.ppl:.2f}, "
        f"BLEU {found.bleu:.2f}, chrF {found.chrf:.2f}{' (best)' if is_best else ''}, "
        f"after {duration(elapsed_s)}"
    )
    for source, reference, translation in found.samples:
        yield f"  source:      {source}"
        yield f"  reference:   {reference}"
        yield f"  translation: {translation}"
    if dev.contradicts(found.bleu):
        yield (
            f"warning: given the reference so far, {dev.accuracy:.0%} of the next pieces are "
            f"right, but the translations score BLEU {found.bleu:.2f}: these contradict each "
            f"other; the decoder may see what it is to predict, or the data repeat themselves."
        )


def table(rows: dict[str, str]) -> Iterator[str]:
    """Yield two columns, the first as wide as its longest name."""
    width = max(map(len, rows))
    return (f"{name:<{width}}  {text}" for name, text in rows.items())


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds: `duration(3661) == "1:01:01"`."""
    if math.isinf(seconds):
        return "no end"
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
        if minutes >= 60
        else f"{minutes}:{rest:02d}"
    )
