"""Compares the losses that bf16 and fp32 reach from the same weights on the same batches."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import write_result
from sizes import SIZES

NUM_LAST = 10


def train(config: Path, run: Path, precision: str, settings: list[str]) -> dict[str, float]:
    """Return the mean training loss of the last updates, and the loss on the dev set after them."""
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "nmt", "train", config, "--run", run, *words]
    subprocess.run([*command, "--precision", precision], stdout=sys.stderr, check=True)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record["kind"] == "train"]
    (dev,) = (record["loss"] for record in records if record["kind"] == "dev")
    return {"train": statistics.mean(losses[-NUM_LAST:]), "dev": dev}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument("--updates", type=int, default=300)
    options = parser.parse_args()
    settings = [
        f"training.max_steps={options.updates}",
        "training.log_every=1",
        # The peak is reached at the end, so that the weights have moved far from the start.
        f"training.warmup_steps={options.updates}",
    ]
    losses: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for precision in ("fp32", "bf16"):
            folder = Path(name) / precision
            folder.mkdir()
            config, run = SIZES[options.model].prepare(folder, options.mirror)
            losses[precision] = train(config, run, precision, settings)
        figures = {
            "config": config.read_text(),
            "settings": settings,
            "losses": losses,
            "relative_difference": {
                kind: round(losses["bf16"][kind] / losses["fp32"][kind] - 1, 6)
                for kind in ("train", "dev")
            },
        }
    write_result("precision", figures)


if __name__ == "__main__":
    main()
