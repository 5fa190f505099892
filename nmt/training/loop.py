"""The training loop: updates, validation, checkpoints, and when to stop; the same on every rank."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from tqdm import tqdm

from nmt.config import Config
from nmt.device import (
    choose_device,
    choose_dtype,
    compute_alike,
    describe_precision,
    keep_kernels,
    keep_memory,
)
from nmt.errors import UserError
from nmt.lines import write_lines
from nmt.model.transformer import Transformer, compute_in
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import Vocabs
from nmt.training.checkpoint import (
    Progress,
    Whole,
    init_weights,
    restore,
    save_checkpoint,
)
from nmt.training.display import (
    describe_update,
    describe_validation,
    duration,
    progress_bar,
    table,
)
from nmt.training.distributed import Ranks
from nmt.training.feed import Feed, dev_groups
from nmt.training.limits import StopSignal, why_finished
from nmt.training.metrics import Metrics
from nmt.training.probe import fit_largest_group
from nmt.training.step import Learner, UpdateResult
from nmt.training.validation import Translations, validate

_MAX_SKIPPED_IN_A_ROW = 3


@dataclass(frozen=True)
class Hooks:
    """What the loop asks of later stages, and of whom it tells what it does."""

    translate_dev: Callable[[Transformer], Translations]
    """Translates the dev set with a model that is ready to decode; on all ranks at once."""
    say: Callable[[str], None]


class Trainer:
    """Trains the model of a run from its last checkpoint, or from the start."""

    def __init__(
        self,
        config: Config,
        run: RunFolder,
        whole: Whole | None,
        vocabs: Vocabs,
        hooks: Hooks,
        ranks: Ranks,
    ) -> None:
        """Take the checkpoint to go on from, if there is one."""
        keep_memory()
        keep_kernels()
        self.training, self.folder, self.hooks, self.ranks = config.training, run, hooks, ranks
        device = choose_device(self.training.device)
        compute_alike(device)
        self.dtype = choose_dtype(self.training.precision, device)
        torch.manual_seed(self.training.seed)
        model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
        if whole is None and self.training.init_from:
            init_weights(model, run, RunFolder(Path(self.training.init_from)))
        self.learner = Learner(model.to(device), self.training, self.dtype, ranks)
        self.progress = Progress()
        if whole:
            self.progress = whole.progress
            restore(whole.folder, self.learner)
        self.feed = Feed(config, run, vocabs, ranks)
        if device.type == "cuda":
            self.feed.work_ahead()
        if not self.training.device_tokens and self.progress.device_tokens:
            self.feed.device_tokens = self.progress.device_tokens
        self.dev_store = TokenStore(run.dev_store)
        self.dev_groups = dev_groups(self.dev_store, self.training.group_tokens)
        self.stop = StopSignal()
        self.stopped_by = 0
        """The signal that all ranks have agreed to stop for."""
        self._num_skipped_in_a_row = 0
        self._clock = time.monotonic()
        self._since_log = (0, 0.0)
        if ranks.is_first:
            self.metrics = Metrics(run, self.progress.step, self.training)

    def describe(self) -> Iterator[str]:
        """Yield what is about to happen; the largest group is tried, which takes a moment."""
        training = self.training
        num_parameters = sum(weight.numel() for weight in self.learner.weights.values())
        precision = describe_precision(training.precision, self.dtype)
        seconds_per_token = fit_largest_group(self.learner, self.feed)
        seconds = self._seconds_left(seconds_per_token * training.batch_tokens / self.ranks.size)
        self.progress.device_tokens = self.feed.device_tokens
        updates = self.feed.epoch(self.progress.epoch)
        limit = self._max_steps()
        at_most = "" if math.isinf(limit) else f"at most {limit:,} updates, "
        about = "until it is stopped" if math.isinf(seconds) else f"about {duration(seconds)}"
        processes = f", in {self.ranks.size} processes" if self.ranks.size > 1 else ""
        rows = {
            "model": f"{num_parameters:,} parameters, on {self.learner.device} in {precision}"
            f"{processes}",
            "update": f"{training.batch_tokens:,} tokens with padding; "
            f"{self.feed.num_tokens(updates) / max(1, len(updates)):,.0f} of the target are real; "
            f"{self.feed.device_tokens:,} at once",
            "epoch": f"{len(updates):,} updates",
            "training": f"{at_most}{about}, and validations",
        }
        yield from table(rows)
        if self.progress.step:
            yield f"going on from update {self.progress.step:,}"

    def run(self) -> int:
        """Train until a limit or a signal; return 0, or 128 + the signal, the same on all ranks."""
        progress, training = self.progress, self.training
        with self.stop.watching(), self._bar() as bar:
            self._clock = time.monotonic()
            is_finished = bool(why_finished(progress, training))
            if is_finished and progress.score is None:  # a signal had stopped it at its limit
                self._validate()
                self._save()
            while not self.stopped_by and not is_finished:
                result = self._update()
                bar.set_postfix_str(self._postfix(result), refresh=False)
                bar.update()
                if progress.step % training.log_every == 0:
                    self._log(result)
                is_finished = bool(why_finished(progress, training))
                if progress.step % training.validate_every == 0 or is_finished:
                    self._validate()
                    is_finished = is_finished or bool(why_finished(progress, training))
                is_due = progress.step % training.save_every == 0
                is_best = progress.best_step == progress.step
                if is_best or is_due or is_finished or self.stopped_by:
                    self._save()
        return 128 + self.stopped_by if self.stopped_by else 0

    def _update(self) -> UpdateResult:
        """Train on the next update and count it."""
        progress = self.progress
        batches = self.feed.next_update(progress)
        progress.step += 1
        progress.score = None
        result = self.learner.update(batches, progress.step)
        progress.tokens += result.num_tokens
        tokens, seconds = self._since_log
        self._since_log = (tokens + result.num_tokens, seconds + self._tick())
        if result.trouble:
            self._skip(result.trouble)
        else:
            self._num_skipped_in_a_row = 0
        return result

    def _tick(self) -> float:
        """Add the time since the last tick to the run's, and return it.

        The first rank's clock counts, and a signal to any rank: all stop at the same update.
        """
        now = time.monotonic()
        passed, self._clock = now - self._clock, now
        if self.ranks.is_abandoned:
            self.stop.number = signal.SIGTERM
        told = self.ranks.gather([self.progress.elapsed_s + passed, self.stop.number])
        self.progress.elapsed_s = float(told[0, 0])
        self.stopped_by = int(told[:, 1].max())
        return passed

    def _skip(self, trouble: str) -> None:
        """Count an update that changed nothing, and keep its pairs for a person to look at."""
        self.progress.skipped += 1
        self._num_skipped_in_a_row += 1
        step = self.progress.step
        file = self.folder.path / "skipped" / f"step-{step:06d}.tsv"
        if self.ranks.is_first:
            write_lines(file, self.feed.describe_update())
            self.hooks.say(f"update {step:,}: {trouble}; skipped, its pairs are in {file}")
        if self._num_skipped_in_a_row == _MAX_SKIPPED_IN_A_ROW:
            raise UserError(
                f"update {step:,}: {trouble}, as in the two updates before; lower "
                f"{'training.device_tokens' if 'memory' in trouble else 'training.lr'}, or look at "
                f"the pairs in {file.parent}. The last checkpoint is as it was."
            )

    def _log(self, result: UpdateResult) -> None:
        tokens, seconds = self._since_log
        self._since_log = (0, 0.0)
        if not self.ranks.is_first:
            return
        is_whole = not result.trouble
        self.metrics.write(
            {
                "kind": "train",
                "step": self.progress.step,
                "epoch": self.progress.epoch,
                "loss": result.mean_loss if is_whole else None,
                "ppl": result.ppl if is_whole else None,
                "lr": result.lr,
                "grad_norm": result.grad_norm if is_whole else None,
                "tokens": self.progress.tokens,
                "tokens_per_s": round(tokens / seconds, 1),
                "skipped": self.progress.skipped,
                "elapsed_s": round(self.progress.elapsed_s, 3),
            }
        )

    def _validate(self) -> None:
        """Measure loss and scores on the dev set, with the weights that decode."""
        progress = self.progress
        model = compute_in(self.learner.decoding_model(), self.dtype)
        dev = validate(model, self.dev_store, self.dev_groups, self.ranks)
        found = self.hooks.translate_dev(model)
        score = {"bleu": found.bleu, "chrf": found.chrf, "loss": dev.loss}[self.training.best_by]
        is_best = math.isfinite(score) and self._is_better(score)
        progress.score = score if math.isfinite(score) else None
        progress.bad_validations = 0 if is_best else progress.bad_validations + 1
        if is_best:
            progress.best_score, progress.best_step = score, progress.step
        self._tick()
        if not self.ranks.is_first:
            return
        elapsed_s = progress.elapsed_s
        for line in describe_validation(dev, found, progress.step, elapsed_s, is_best=is_best):
            self.hooks.say(line)
        self.metrics.write(
            {
                "kind": "dev",
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": dev.loss if math.isfinite(dev.loss) else None,
                "ppl": dev.ppl if math.isfinite(dev.loss) else None,
                "accuracy": dev.accuracy,
                "bleu": found.bleu,
                "chrf": found.chrf,
                "elapsed_s": round(elapsed_s, 3),
            }
        )

    def _is_better(self, score: float) -> bool:
        best = self.progress.best_score
        if best is None:
            return True
        return score < best if self.training.best_by == "loss" else score > best

    def _save(self) -> None:
        if self.ranks.is_first:
            save_checkpoint(self.folder, self.learner, self.progress, self.training)
        self._tick()

    def _max_steps(self) -> float:
        by_epochs = self.training.max_epochs * len(self.feed.epoch(self.progress.epoch))
        return min(limit for limit in (self.training.max_steps, by_epochs, math.inf) if limit)

    def _seconds_left(self, seconds_per_update: float) -> float:
        by_steps = (self._max_steps() - self.progress.step) * seconds_per_update
        limit_s = self.training.max_minutes * 60 or math.inf
        return max(0.0, min(by_steps, limit_s - self.progress.elapsed_s))

    def _bar(self) -> "tqdm[NoReturn]":
        return progress_bar(self._max_steps(), self.progress.step, is_shown=self.ranks.is_first)

    def _postfix(self, result: UpdateResult) -> str:
        tokens, seconds = self._since_log
        left = self._seconds_left(self.progress.elapsed_s / self.progress.step)
        return describe_update(result, tokens / max(seconds, 1e-9), left)
