"""Clones the repository into an empty folder and times what the README promises a newcomer."""

import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from record import write_result

ROOT = Path(__file__).resolve().parent.parent.parent


def timed(folder: Path, *command: str) -> tuple[float, str]:
    """Run a command as a newcomer would, without what is set for nmt here."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NMT_")}
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    done.check_returncode()
    return round(time.monotonic() - start, 1), done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "nmt"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        demo_s, said = timed(folder, "make", "demo")
        metrics = (folder / "runs/demo/metrics.jsonl").read_text().splitlines()
        record = json.loads((folder / "runs/demo/run.json").read_text())
        again_s, said_again = timed(folder, "make", "demo")
        test_s, said_test = timed(folder, "make", "test")
    figures: dict[str, Any] = {
        "demo_from_nothing_s": demo_s,
        "demo_training_s": json.loads(metrics[-1])["elapsed_s"],
        "demo_scores": record["scores"],
        "demo_output": said.splitlines(),
        "second_demo_s": again_s,
        "second_demo_output": said_again.splitlines(),
        "test_after_setup_s": test_s,
        "test_summary": re.findall(r"^=+ (.* passed.*) =+$", said_test, re.MULTILINE)[-1],
    }
    write_result("fresh_clone", figures)


if __name__ == "__main__":
    main()
