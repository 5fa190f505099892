"""Runs a toolkit's own training command, records its updates, and ends it when they suffice.

    python -P hook.py TOOLKIT RECORD FIRST_S MEASURED_S ARGUMENT...

It needs torch alone, as it runs in the environment of each toolkit. -P keeps this folder out of
the way of their imports.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

# At least so many updates do not count, and at least so many do.
MIN_FIRST, MIN_MEASURED = 2, 3
STATUS = "/proc/self/status"
Command = Callable[[], Any]


class Recorder:
    """Counts what the batches of each update hold; the first updates make memory warm."""

    def __init__(self, path: str, first_s: float, measured_s: float) -> None:
        self.path, self.first_s, self.measured_s = path, first_s, measured_s
        self.counts = [0, 0, 0, 0]
        self.updates: list[list[float]] = []
        """Of each: when it ended, and the counts."""
        self.num_first = 0
        """How many do not count; 0 until it is known."""

    def add(self, is_real_tgt: torch.Tensor, num_src: Any, src: torch.Tensor) -> None:
        """Add a batch: where its target is real, stop token included, and its source."""
        added = (is_real_tgt.sum(), is_real_tgt.numel(), num_src, src.shape[0] * src.shape[1])
        self.counts = [count + int(more) for count, more in zip(self.counts, added, strict=True)]

    def end_update(self, *_: object) -> None:
        """Note the end of an update, if it had a batch; end the process where that suffices."""
        if not any(self.counts):
            return
        now = time.time()
        self.updates.append([now, *self.counts])
        self.counts = [0, 0, 0, 0]
        if not self.num_first:
            if len(self.updates) >= MIN_FIRST and now - self.updates[0][0] >= self.first_s:
                self.num_first = len(self.updates)
            return
        begun = self.updates[self.num_first - 1][0]
        if len(self.updates) >= self.num_first + MIN_MEASURED and now - begun >= self.measured_s:
            self.write()
            os._exit(0)

    def write(self) -> None:
        with open(STATUS) as lines:
            peak_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        record = {
            "num_first": self.num_first,
            "num_threads": torch.get_num_threads(),
            "peak_mb": peak_kb / 1024,
            "updates": self.updates,
        }
        with open(self.path, "w") as stream:
            json.dump(record, stream)


def watch_nmt(recorder: Recorder) -> Command:
    from nmt.cli import main
    from nmt.tokens.vocab import PAD
    from nmt.training.step import Learner

    update = Learner.update

    def recorded(learner: Any, batches: Any, step: int) -> Any:
        for batch in batches:
            num_src = (batch.src_BS != PAD).sum()
            recorder.add(batch.tgt_out_BT != PAD, num_src, batch.src_BS)
        result = update(learner, batches, step)
        recorder.end_update()
        return result

    Learner.update = recorded  # type: ignore[method-assign]
    return main


def note(recorder: Recorder, owner: Any, method: str, add: Callable[[Any, Any], None]) -> None:
    """Let `add(self, batch or batches)` come before a method, and an update end with its step."""
    original = getattr(owner, method)

    def noted(self: Any, batch: Any, *arguments: Any) -> Any:
        add(self, batch)
        return original(self, batch, *arguments)

    setattr(owner, method, noted)
    register_optimizer_step_post_hook(recorder.end_update)


def watch_onmt(recorder: Recorder) -> Command:
    from onmt.bin.train import main
    from onmt.trainer import Trainer

    def add(trainer: Any, batches: Any) -> None:
        for batch in batches:
            is_real = batch["tgt"][:, 1:, 0] != trainer.train_loss.padding_idx
            recorder.add(is_real, batch["srclen"].sum(), batch["src"])

    note(recorder, Trainer, "_gradient_accumulation", add)
    return main


def watch_eole(recorder: Recorder) -> Command:
    from eole.bin.main import main
    from eole.trainer import BatchProcessor

    def add(processor: Any, batch: Any) -> None:
        is_real = batch["tgt"][:, 1:].flatten(1) != processor.train_loss.padding_idx
        recorder.add(is_real, batch["srclen"].sum(), batch["src"])

    note(recorder, BatchProcessor, "process_batch", add)
    return main


def watch_sockeye(recorder: Recorder) -> Command:
    from sockeye.train import main
    from sockeye.training import EarlyStoppingTrainer

    def add(_: Any, batch: Any) -> None:
        num_src = (batch.source[:, :, 0] != 0).sum()
        recorder.add(batch.labels["target_label"] != 0, num_src, batch.source)

    note(recorder, EarlyStoppingTrainer, "_step", add)
    return main


def watch_joeynmt(recorder: Recorder) -> Command:
    from joeynmt.__main__ import main
    from joeynmt.training import TrainManager

    def add(_: Any, batch: Any) -> None:
        recorder.add(batch.trg_mask[:, 0], batch.src_length.sum(), batch.src)

    note(recorder, TrainManager, "_train_step", add)
    return main


WATCH = {
    "nmt": watch_nmt,
    "onmt": watch_onmt,
    "eole": watch_eole,
    "sockeye": watch_sockeye,
    "joeynmt": watch_joeynmt,
}


def run() -> None:
    toolkit, path, first_s, measured_s, *arguments = sys.argv[1:]
    sys.argv = [toolkit, *arguments]
    WATCH[toolkit](Recorder(path, float(first_s), float(measured_s)))()


if __name__ == "__main__":
    run()
