"""Trains configs/multi30k.en-de.yaml as a user would, and scores its test sets."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from record import write_result

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "configs" / "multi30k.en-de.yaml"


def nmt(*arguments: str) -> str:
    command = [sys.executable, "-m", "nmt", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "bench.multi30k.en-de")
    options = parser.parse_args()
    run = str(options.run)
    start = time.monotonic()
    mirror = ["--mirror", options.mirror] if options.mirror else []
    nmt("train", str(CONFIG), "--run", run, *mirror)
    train_s = time.monotonic() - start
    lines = (options.run / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    speeds = [record["tokens_per_s"] for record in records if record["kind"] == "train"]
    figures: dict[str, Any] = {
        "config": CONFIG.read_text(),
        "train_command_s": round(train_s, 1),
        "training_and_validation_s": records[-1]["elapsed_s"],
        "updates": records[-1]["step"],
        "target_tokens_per_s_median": statistics.median(speeds),
        "dev": [
            {key: record[key] for key in ("step", "elapsed_s", "ppl", "bleu")}
            for record in records
            if record["kind"] == "dev"
        ],
    }
    for name, flags in (("cased", []), ("lowercased", ["--lowercase"])):
        figures[name] = json.loads(nmt("eval", run, "--json", *flags))
    write_result("multi30k.en-de", figures)


if __name__ == "__main__":
    main()
