"""metrics.jsonl: a line of strict JSON for each logged update and each validation."""

import json
from pathlib import Path
from typing import Any

from nmt.run_folder import write_text


class Metrics:
    """Appends to the file; lines of updates that a resume will do again are taken out first."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in lines if _step_of(line) <= step]
        write_text(path, "".join(f"{line}\n" for line in kept))

    def write(self, record: dict[str, Any]) -> None:
        """Add a record; a NaN in it is an error of ours."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, allow_nan=False) + "\n")


def _step_of(line: str) -> int:
    return int(json.loads(line)["step"])
