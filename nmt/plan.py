"""nmt plan: what a training will cost, from some real updates of a copy that is thrown away."""

import math
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from nmt.config import Config, TrainingConfig
from nmt.data.sources.corpora import Sources
from nmt.device import (
    choose_device,
    choose_dtype,
    compute_alike,
    describe_precision,
    keep_kernels,
    keep_memory,
)
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.prepare import prepare
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch
from nmt.tokens.vocab import PAD, load_vocabs
from nmt.training.advice import Outlook, advise
from nmt.training.checkpoint import Progress
from nmt.training.display import duration, table
from nmt.training.feed import Feed
from nmt.training.probe import fit_largest_group
from nmt.training.step import Learner

_MIN_UPDATES = 3
# A checkpoint holds the weights that decode, the raw ones and two moments, in fp32.
_BYTES_PER_PARAMETER = 4 * 4


@dataclass
class Measured:
    """What some updates took."""

    num_updates: int = 0
    elapsed_s: float = 0.0
    tgt_tokens: int = 0
    """Real ones."""
    real_places: int = 0
    places: int = 0
    """Of source and target, padding among them."""
    peak_bytes: int = 0

    @property
    def seconds_per_update(self) -> float:
        return self.elapsed_s / self.num_updates


def plan(config: Config, run: RunFolder, sources: Sources, seconds: float) -> Iterator[str]:
    """Yield what a training of the config from its start will take, and advice.

    Prepares the run first where it has to; nothing else is written.
    """
    # Preparation may take long: what cannot be computed in is refused before it.
    choose_dtype(config.training.precision, choose_device(config.training.device))
    statistics = prepare(config, run, sources)
    training = config.training
    keep_memory()
    keep_kernels()
    learner, feed = _throwaway(config, run)
    precision = describe_precision(training.precision, learner.dtype)
    num_parameters = sum(weight.numel() for weight in learner.weights.values())
    yield f"training a copy for {seconds:g} s, which is thrown away"
    measured = measure(learner, feed, seconds)
    updates_per_epoch = max(1, len(feed.epoch(0)))
    num_updates, end = _end(training, updates_per_epoch, measured.seconds_per_update)
    yield from table(
        {
            "model": f"{num_parameters:,} parameters, on {learner.device} in {precision}",
            "speed": f"{measured.tgt_tokens / measured.elapsed_s:,.0f} target tokens/s, "
            f"{measured.num_updates:,} updates in {measured.elapsed_s:.1f} s",
            "memory": f"{_size(measured.peak_bytes)} at the peak, with {feed.device_tokens:,} "
            f"tokens at once",
            "padding": f"{1 - measured.real_places / measured.places:.1%} of all tokens",
            "end": end,
            "epochs": _epochs(num_updates, updates_per_epoch),
            "disk": _disk(training, num_updates, num_parameters, run),
        }
    )
    outlook = Outlook(config, statistics.num_pairs, updates_per_epoch, num_updates)
    for advice in advise(outlook):
        yield f"advice: {advice}"


def measure(learner: Learner, feed: Feed, seconds: float) -> Measured:
    """Train for so long, and at least three updates, from the start of the data."""
    _forget_peak(learner.device)
    fit_largest_group(learner, feed)
    measured, progress = Measured(), Progress()
    start = time.monotonic()
    while measured.num_updates < _MIN_UPDATES or measured.elapsed_s < seconds:
        batches = feed.next_update(progress)
        measured.num_updates += 1
        result = learner.update(batches, measured.num_updates)
        if result.trouble:
            raise UserError(f"update {measured.num_updates}: {result.trouble}.")
        measured.tgt_tokens += result.num_tokens
        _count_places(batches, measured)
        measured.elapsed_s = time.monotonic() - start
    measured.peak_bytes = _peak(learner.device)
    return measured


def _throwaway(config: Config, run: RunFolder) -> tuple[Learner, Feed]:
    vocabs = load_vocabs(config, run)
    device = choose_device(config.training.device)
    compute_alike(device)  # as training does, which takes its time on a GPU
    torch.manual_seed(config.training.seed)
    model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
    dtype = choose_dtype(config.training.precision, device)
    feed = Feed(config, run, vocabs)
    if device.type == "cuda":
        feed.work_ahead()
    return Learner(model.to(device), config.training, dtype), feed


def _count_places(batches: list[Batch], measured: Measured) -> None:
    for batch in batches:
        for ids in (batch.src_BS, batch.tgt_out_BT):
            measured.places += ids.numel()
            measured.real_places += int((ids != PAD).sum())


def _end(
    training: TrainingConfig, updates_per_epoch: int, seconds_per_update: float
) -> tuple[float, str]:
    """Return how many updates the first of the limits means, and a text that says when it comes."""
    limits = {
        "max_steps": training.max_steps,
        "max_epochs": training.max_epochs * updates_per_epoch,
        "max_minutes": math.floor(training.max_minutes * 60 / seconds_per_update),
    }
    limits = {name: limit for name, limit in limits.items() if getattr(training, name)}
    if not limits:
        return math.inf, "no limit is set"
    name = min(limits, key=lambda name: limits[name])
    took = duration(limits[name] * seconds_per_update)
    if name == "max_minutes":
        text = f"after {took} (max_minutes), at most {limits[name]:,} updates and validations"
    else:
        text = f"after {limits[name]:,} updates ({name}), about {took} and validations"
    return limits[name], text


def _epochs(num_updates: float, updates_per_epoch: int) -> str:
    each = f"of {updates_per_epoch:,} updates"
    if math.isinf(num_updates):
        return f"no end, {each}"
    return f"{num_updates / updates_per_epoch:,.1f} {each}"


def _disk(training: TrainingConfig, num_updates: float, num_parameters: int, run: RunFolder) -> str:
    """Say what checkpoints and data take at most; one more checkpoint stands there in a save."""
    kept = training.keep + training.keep_best + 1
    if training.keep_every and math.isfinite(num_updates):
        kept += int(num_updates // training.keep_every)
    one = num_parameters * _BYTES_PER_PARAMETER
    data = sum(path.stat().st_size for path in run.data.rglob("*") if path.is_file())
    return (
        f"{_size(kept * one + data)} at most: {kept} checkpoints of {_size(one)}, one of them "
        f"while it is saved, and {_size(data)} of data"
    )


def _forget_peak(device: torch.device) -> None:
    """Let the peak be that of what follows, where the system can: preparation needs memory too."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):  # elsewhere than on Linux, or not allowed
        Path("/proc/self/clear_refs").write_text("5")  # proc(5)


def _peak(device: torch.device) -> int:
    """Return the peak of the GPU's memory, else of this process's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    # macOS counts bytes, the BSDs kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _size(num_bytes: float) -> str:
    """Return `_size(1_230_000_000) == "1.23 GB"`."""
    return f"{num_bytes / 1e9:,.2f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:,.1f} MB"
