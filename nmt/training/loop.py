"""The training loop: updates, progress, validation, checkpoints, and when to stop."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import torch
from tqdm import tqdm

from nmt.config import Config, TrainingConfig
from nmt.device import choose_device, choose_dtype, keep_memory
from nmt.errors import UserError
from nmt.model.transformer import Transformer, compute_in
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import Vocabs
from nmt.training.checkpoint import Progress, load_progress, restore, save_checkpoint
from nmt.training.feed import Feed, dev_groups
from nmt.training.metrics import Metrics
from nmt.training.step import Learner, UpdateResult
from nmt.training.validation import validate

DevBleu = Callable[[Transformer], float]
"""Translates the dev set with a model that is ready to decode, and returns its BLEU."""

_MAX_SKIPPED_IN_A_ROW = 3


def why_finished(progress: Progress, training: TrainingConfig) -> str:
    """Return the limit that a run has reached, or ""."""
    limits = {
        f"{training.max_steps:,} updates": (progress.step, training.max_steps),
        f"{training.max_epochs} epochs": (progress.epoch, training.max_epochs),
        f"{training.max_minutes:g} minutes": (progress.elapsed_s, training.max_minutes * 60),
        f"{training.patience} validations without a better BLEU": (
            progress.bad_validations,
            training.patience,
        ),
    }
    return next((name for name, (now, limit) in limits.items() if 0 < limit <= now), "")


@dataclass(frozen=True)
class Hooks:
    """What the loop asks of later stages, and of whom it tells what it does."""

    dev_bleu: DevBleu
    say: Callable[[str], None]


class Trainer:
    """Trains the model of a run from its last checkpoint, or from the start."""

    def __init__(self, config: Config, run: RunFolder, vocabs: Vocabs, hooks: Hooks) -> None:
        keep_memory()
        self.training, self.folder, self.hooks = config.training, run, hooks
        device = choose_device(self.training.device)
        self.dtype = choose_dtype(self.training.precision, device)
        torch.manual_seed(self.training.seed)
        model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
        self.learner = Learner(model.to(device), self.training, self.dtype)
        self.progress = load_progress(run) or Progress()
        if self.progress.step:
            restore(run, self.learner)
        self.metrics = Metrics(run.metrics, self.progress.step)
        self.feed = Feed(config, run, vocabs)
        self.dev_store = TokenStore(run.dev_store)
        self.dev_groups = dev_groups(self.dev_store, self.training.group_tokens)
        self._signal = 0
        self._num_skipped_in_a_row = 0
        self._clock = time.monotonic()
        self._since_log = (0, 0.0)

    def describe(self) -> Iterator[str]:
        """Yield what is about to happen; the largest group is tried, which takes a moment."""
        num_parameters = sum(weight.numel() for weight in self.learner.weights.values())
        precision = str(self.dtype).removeprefix("torch.")
        yield f"model: {num_parameters:,} parameters, on {self.learner.device} in {precision}"
        per_epoch = len(self.feed.epoch(self.progress.epoch))
        seconds = self._seconds_left(self._try_largest_group())
        limit = self._max_steps()
        updates = "no limit of" if math.isinf(limit) else f"at most {limit:,}"
        yield (
            f"training: {per_epoch:,} updates of {self.training.batch_tokens:,} tokens an epoch, "
            f"{updates} updates, about {_duration(seconds)} and validations"
        )
        if self.progress.step:
            yield f"going on from update {self.progress.step:,}"

    def run(self) -> int:
        """Train until a limit or a signal; return 0, or 128 + the signal."""
        progress, training = self.progress, self.training
        with self._signals(), self._bar() as bar:
            self._clock = time.monotonic()
            is_finished = bool(why_finished(progress, training))
            while not self._signal and not is_finished:
                result = self._update()
                bar.set_postfix_str(self._postfix(result), refresh=False)
                bar.update()
                if progress.step % training.log_every == 0:
                    self._log(result)
                if progress.step % training.validate_every == 0 or why_finished(progress, training):
                    self._validate()
                # Asked once: between this and the end of the loop time passes.
                is_finished = bool(why_finished(progress, training))
                is_best = progress.best_step == progress.step
                is_due = progress.step % training.save_every == 0
                if is_best or is_due or is_finished or self._signal:
                    save_checkpoint(self.folder, self.learner, progress, training.keep)
                self._tick()
        return 128 + self._signal if self._signal else 0

    def _update(self) -> UpdateResult:
        """Train on the next update and count it."""
        progress = self.progress
        batches = self.feed.next_update(progress)
        progress.step += 1
        result = self.learner.update(batches, progress.step)
        progress.tokens += result.num_tokens
        self._count_skipped(result)
        tokens, seconds = self._since_log
        self._since_log = (tokens + result.num_tokens, seconds + self._tick())
        return result

    def _count_skipped(self, result: UpdateResult) -> None:
        if result.is_finite:
            self._num_skipped_in_a_row = 0
            return
        self.progress.skipped += 1
        self._num_skipped_in_a_row += 1
        if self._num_skipped_in_a_row == _MAX_SKIPPED_IN_A_ROW:
            raise UserError(
                f"update {self.progress.step}: the gradient was not finite in "
                f"{_MAX_SKIPPED_IN_A_ROW} updates in a row; lower training.lr or raise "
                f"training.warmup_steps. The last checkpoint is as it was."
            )

    def _log(self, result: UpdateResult) -> None:
        tokens, seconds = self._since_log
        self._since_log = (0, 0.0)
        self.metrics.write(
            {
                "kind": "train",
                "step": self.progress.step,
                "epoch": self.progress.epoch,
                "loss": result.mean_loss if result.is_finite else None,
                "ppl": result.ppl if result.is_finite else None,
                "lr": result.lr,
                "grad_norm": result.grad_norm if result.is_finite else None,
                "tokens": self.progress.tokens,
                "tokens_per_s": round(tokens / seconds, 1),
                "skipped": self.progress.skipped,
                "elapsed_s": round(self.progress.elapsed_s, 3),
            }
        )

    def _validate(self) -> None:
        """Measure loss and BLEU on the dev set, with the weights that decode."""
        progress = self.progress
        model = compute_in(self.learner.decoding_model(), self.dtype)
        dev = validate(model, self.dev_store, self.dev_groups)
        bleu = self.hooks.dev_bleu(model)
        is_better = bleu > progress.best_bleu
        progress.bad_validations = 0 if is_better else progress.bad_validations + 1
        if is_better:
            progress.best_bleu, progress.best_step = bleu, progress.step
        self._tick()
        self.hooks.say(
            f"update {progress.step:,}: dev loss {dev.loss:.3f}, perplexity {dev.ppl:.2f}, "
            f"BLEU {bleu:.2f}{' (best)' if is_better else ''}, "
            f"after {_duration(progress.elapsed_s)}"
        )
        if dev.contradicts(bleu):
            self.hooks.say(
                f"warning: given the reference so far, {dev.accuracy:.0%} of the next pieces are "
                f"right, but the translations score BLEU {bleu:.2f}: these contradict each other; "
                f"the decoder may see what it is to predict, or the data repeat themselves."
            )
        self.metrics.write(
            {
                "kind": "dev",
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": dev.loss,
                "ppl": dev.ppl,
                "accuracy": dev.accuracy,
                "bleu": bleu,
                "elapsed_s": round(progress.elapsed_s, 3),
            }
        )

    def _tick(self) -> float:
        """Add the time since the last tick to the run's, and return it."""
        now = time.monotonic()
        passed, self._clock = now - self._clock, now
        self.progress.elapsed_s += passed
        return passed

    def _try_largest_group(self) -> float:
        """Train on the largest group twice without learning; return the seconds of an update."""
        batch, padded_size = self.feed.largest_group()
        for _ in range(2):
            start = time.monotonic()
            self.learner.add_gradient(batch)
            elapsed = time.monotonic() - start
        self.learner.forget_gradient()
        return elapsed * self.training.batch_tokens / padded_size

    def _max_steps(self) -> float:
        by_epochs = self.training.max_epochs * len(self.feed.epoch(self.progress.epoch))
        return min(limit for limit in (self.training.max_steps, by_epochs, math.inf) if limit)

    def _seconds_left(self, seconds_per_update: float) -> float:
        by_steps = (self._max_steps() - self.progress.step) * seconds_per_update
        limit_s = self.training.max_minutes * 60 or math.inf
        return max(0.0, min(by_steps, limit_s - self.progress.elapsed_s))

    def _bar(self) -> "tqdm[NoReturn]":
        total = self._max_steps()
        return tqdm(
            total=None if math.isinf(total) else int(total),
            initial=self.progress.step,
            unit="update",
            bar_format="{desc}{n_fmt}/{total_fmt} updates{postfix}",
            disable=None,
        )

    def _postfix(self, result: UpdateResult) -> str:
        tokens, seconds = self._since_log
        left = self._seconds_left(self.progress.elapsed_s / self.progress.step)
        return (
            f"loss {result.mean_loss:.3f}, {tokens / max(seconds, 1e-9):,.0f} tokens/s, "
            f"{_duration(left)} left"
        )

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM wait for the end of the update; a second one acts at once."""

        def remember(number: int, _: FrameType | None) -> None:
            self._signal = number
            signal.signal(number, previous[signal.Signals(number)])

        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, remember) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "no end"
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
        if minutes >= 60
        else f"{minutes}:{rest:02d}"
    )
