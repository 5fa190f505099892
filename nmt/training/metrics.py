"""metrics.jsonl: a line of strict JSON for each logged update and each validation."""

import json
from pathlib import Path
from typing import Any

from nmt.config import TrainingConfig
from nmt.errors import UserError
from nmt.run_folder import RunFolder, write_text


class Metrics:
    """Appends to the file; lines of updates that a resume will do again are taken out first."""

    def __init__(self, run: RunFolder, step: int, training: TrainingConfig) -> None:
        self._path = run.metrics
        self._board = _tensorboard(run.path / "tensorboard", step) if training.tensorboard else None
        write_text(self._path, "".join(f"{line}\n" for line in _lines_until(step, self._path)))

    def write(self, record: dict[str, Any]) -> None:
        """Add a record; a NaN in it is an error of ours.

        Raises UserError where the disk does not take it.
        """
        line = json.dumps(record, allow_nan=False) + "\n"
        try:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(line)
        except OSError as error:
            raise UserError(
                f"{self._path}: cannot be written ({error.strerror}); free space on that disk. The "
                f"same command goes on from the last checkpoint."
            ) from None
        if self._board is None:
            return
        for name, value in record.items():
            if isinstance(value, int | float) and name != "step":
                self._board.add_scalar(f"{record['kind']}/{name}", value, record["step"])
        self._board.flush()


def _lines_until(step: int, path: Path) -> list[str]:
    """Return the lines up to an update; one that a kill cut short has no end and is none."""
    if not path.exists():
        return []
    kept = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line.decode())
        except (ValueError, TypeError, KeyError):
            raise UserError(
                f"{path}, line {number}: this is no line that nmt wrote; delete the line."
            ) from None
    return kept


def _tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "training.tensorboard needs a package that is not here; install it with "
            "`pip install 'nmt[tensorboard]'`, or set the key to false."
        ) from None
    # Events of updates that are done again are hidden.
    return SummaryWriter(str(folder), purge_step=step + 1)
