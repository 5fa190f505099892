"""Advice where a config disagrees with what is known to work: a rule each, with the numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.config import Config

# Of each side in a batch (Vaswani 2017, 5.1); batch_tokens counts the longer side.
_PAPER_TOKENS = 25_000
# How many times above or below the scaled rate is worth a word; configs/multi30k.en-de.yaml, tuned
# for small batches, is 3.1 times above.
_FAR = 4.0
_DEEP, _VERY_DEEP = 6, 12
_MANY_EPOCHS = 100


@dataclass(frozen=True)
class Outlook:
    """What is known of a training before it begins."""

    config: Config
    num_pairs: int
    updates_per_epoch: int
    num_updates: float
    """Of the whole training; infinite where no limit is set."""


def advise(outlook: Outlook) -> Iterator[str]:
    """Yield a sentence for each rule that has something to say."""
    for rule in (
        _high_rate,
        _low_rate,
        _long_warm_up,
        _post_norm_without_warm_up,
        _very_deep_post_norm,
        _small_batch,
        _seldom_validated,
        _number_of_epochs,
        _no_end,
        _label_smoothing,
        _dropout,
    ):
        if advice := rule(outlook):
            yield advice


def _high_rate(outlook: Outlook) -> str:
    training = outlook.config.training
    paper, scaled = _rates(outlook)
    if training.lr > 2 * max(paper, scaled):
        return (
            f"training.lr is {training.lr:g}, {training.lr / paper:.1f} times the peak of the "
            f"paper, (d_model * warmup_steps)^-0.5 = {paper:.2g} (Vaswani 2017, 5.3); above it the "
            f"loss may stop falling."
        )
    if training.lr > _FAR * scaled:
        return (
            f"training.lr is {training.lr:g} with batches of {training.batch_tokens:,} tokens, "
            f"{training.lr / scaled:.1f} times {scaled:.2g}, which is the paper's peak for batches "
            f"of {_PAPER_TOKENS:,} brought down by the square-root rule for Adam (Malladi 2022), "
            f"as a small batch has a noisy gradient; lower lr or raise batch_tokens."
        )
    return ""


def _low_rate(outlook: Outlook) -> str:
    training = outlook.config.training
    _, scaled = _rates(outlook)
    if training.lr * _FAR >= scaled or training.init_from:
        return ""
    return (
        f"training.lr is {training.lr:g}, {scaled / training.lr:.0f} times below {scaled:.2g}, the "
        f"paper's peak for this d_model and warmup_steps (Vaswani 2017, 5.3) scaled to batches of "
        f"{training.batch_tokens:,} tokens; training will be slow."
    )


def _long_warm_up(outlook: Outlook) -> str:
    warmup_steps = outlook.config.training.warmup_steps
    if 2 * warmup_steps <= outlook.num_updates:
        return ""
    return (
        f"training.warmup_steps is {warmup_steps:,}, but training ends after "
        f"{outlook.num_updates:,.0f} updates; in the paper 4,000 of 100,000 warm up, which here "
        f"would be {max(1, outlook.num_updates // 25):,.0f}."
    )


def _post_norm_without_warm_up(outlook: Outlook) -> str:
    model, warmup_steps = outlook.config.model, outlook.config.training.warmup_steps
    if model.norm == "pre" or max(model.num_layers) < _DEEP or warmup_steps >= 1000:
        return ""
    return (
        f"model.norm is post, with {max(model.num_layers)} layers and a warm-up of "
        f"{warmup_steps:,} updates, not the paper's 4,000, which post-norm needs (Xiong 2020): "
        f"raise training.warmup_steps or take norm: pre."
    )


def _very_deep_post_norm(outlook: Outlook) -> str:
    model = outlook.config.model
    if model.norm == "pre" or max(model.num_layers) <= _VERY_DEEP:
        return ""
    return (
        f"model.norm is post, with {max(model.num_layers)} layers, where the paper has 6; stacked "
        f"that deep it may not train at all (Wang 2019): take norm: pre."
    )


def _small_batch(outlook: Outlook) -> str:
    config = outlook.config
    batch_tokens = config.training.batch_tokens
    if config.model.d_model < 512 or batch_tokens >= _PAPER_TOKENS / 5:
        return ""
    return (
        f"training.batch_tokens is {batch_tokens:,}, {_PAPER_TOKENS / batch_tokens:.0f} times less "
        f"than the paper's {_PAPER_TOKENS:,} (Vaswani 2017, 5.1), with its d_model of "
        f"{config.model.d_model}; larger batches train such a model better (Popel 2018), and need "
        f"no more memory here, as a device takes a group at a time."
    )


def _seldom_validated(outlook: Outlook) -> str:
    training, num_updates = outlook.config.training, outlook.num_updates
    if training.validate_every <= num_updates:
        return ""
    what = "validated and saved" if training.save_every > num_updates else "validated"
    return (
        f"training.validate_every is {training.validate_every:,}, but training ends after "
        f"{num_updates:,.0f} updates: the model is {what} once, at the end; "
        f"{max(1, num_updates // 5):,.0f} would do it five times."
    )


def _number_of_epochs(outlook: Outlook) -> str:
    epochs = outlook.num_updates / outlook.updates_per_epoch
    pairs = f"{outlook.num_pairs:,} pairs"
    if epochs < 1:
        return (
            f"{outlook.num_updates:,.0f} updates see {epochs:.0%} of the {pairs}; an epoch is "
            f"{outlook.updates_per_epoch:,}."
        )
    if epochs > _MANY_EPOCHS and math.isfinite(epochs) and not outlook.config.training.patience:
        return (
            f"{outlook.num_updates:,.0f} updates are {epochs:,.0f} epochs of {pairs}, of which "
            f"most will make the model worse on other text; set training.patience, or less."
        )
    return ""


def _no_end(outlook: Outlook) -> str:
    if math.isfinite(outlook.num_updates) or outlook.config.training.patience:
        return ""
    return "training has no end: set training.max_steps, max_epochs, max_minutes or patience."


def _label_smoothing(outlook: Outlook) -> str:
    smoothing = outlook.config.training.label_smoothing
    if 0 < smoothing <= 0.2:
        return ""
    return (
        f"training.label_smoothing is {smoothing:g}, in the paper 0.1, with 25.8 BLEU; 0 gave 25.3 "
        f"and 0.2 gave 25.7 (Vaswani 2017, table 3)."
    )


def _dropout(outlook: Outlook) -> str:
    model = outlook.config.model
    if model.dropout == 0:
        return (
            "model.dropout is 0, in the paper 0.1, with 25.8 BLEU; 0 gave 24.6 (Vaswani 2017, "
            "table 3)."
        )
    if model.d_model >= 1024 and model.dropout < 0.2 and outlook.num_pairs < 10_000_000:
        return (
            f"model.dropout is {model.dropout:g} with d_model {model.d_model} and "
            f"{outlook.num_pairs:,} pairs; for 4.5 million the paper's big model has 0.3 (Vaswani "
            f"2017, 6.1 and table 3)."
        )
    return ""


def _rates(outlook: Outlook) -> tuple[float, float]:
    """Return the paper's peak learning rate for this model and warm-up, and that for our batch."""
    training = outlook.config.training
    paper = float((outlook.config.model.d_model * training.warmup_steps) ** -0.5)
    return paper, paper * math.sqrt(training.batch_tokens / _PAPER_TOKENS)
