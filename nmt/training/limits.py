"""What ends a training: its limits, and signals."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nmt.config import TrainingConfig
from nmt.training.checkpoint import Progress

SCORE_NAMES = {"bleu": "BLEU", "chrf": "chrF", "loss": "loss"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


def why_finished(progress: Progress, training: TrainingConfig) -> str:
    """Return the limit that a run has reached, or ""."""
    name = SCORE_NAMES[training.best_by]
    limits = {
        f"{training.max_steps:,} updates": (progress.step, training.max_steps),
        f"{training.max_epochs} epochs": (progress.epoch, training.max_epochs),
        f"{training.max_minutes:g} minutes": (progress.elapsed_s, training.max_minutes * 60),
        f"{training.patience} validations without a better {name}": (
            progress.bad_validations,
            training.patience,
        ),
    }
    return next((name for name, (now, limit) in limits.items() if 0 < limit <= now), "")


class StopSignal:
    """Remembers a signal until the update is done; a second Ctrl-C acts at once."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that came, or 0."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        previous = {number: signal.getsignal(number) for number in _SIGNALS}

        def remember(number: int, _: FrameType | None) -> None:
            self.number = number
            # The others may come twice: from a batch system, and from the launcher that it warns.
            if number == signal.SIGINT:
                signal.signal(number, previous[signal.SIGINT])

        for number in _SIGNALS:
            signal.signal(number, remember)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
