"""Where everything of a run lies, and run.json: what made it and what it scored."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import Config, CorpusSpec, dump_config, load_config
from nmt.errors import UserError
from nmt.lines import write_whole


@dataclass(frozen=True)
class RunFolder:
    """A run folder: config, vocabulary, data, checkpoints, metrics and run.json."""

    path: Path

    @property
    def config_file(self) -> Path:
        return self.path / "config.yaml"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def ledger(self) -> Path:
        return self.data / "ledger.tsv"

    @property
    def store(self) -> Path:
        return self.data / "train.arrow"

    @property
    def dev_store(self) -> Path:
        return self.data / "dev.arrow"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def run_json(self) -> Path:
        return self.path / "run.json"

    def clear_partial_files(self) -> None:
        """Delete what a killed command left half written."""
        for folder in (self.path, self.data):
            for file in folder.glob(".*.partial"):
                file.unlink()

    def vocab_file(self, side: str, *, is_separate: bool) -> Path:
        """Return the SentencePiece model of a side, src or tgt."""
        return self.path / (f"vocab.{side}.model" if is_separate else "vocab.model")

    def lines_file(self, name: str, side: str) -> Path:
        """Return the sentences of a held-out set: `dev`, or a test set such as multi30k/val."""
        return self.data / f"{name.strip('/').replace('/', '.')}.{side}"

    def translation_file(self, name: str) -> Path:
        """Return where `nmt eval` puts its translations of a test set."""
        return self.path / "translations" / self.lines_file(name, "hyp").name

    def load_config(self) -> Config:
        """Return the resolved config; UserError where this is no run folder."""
        if not self.config_file.exists():
            raise UserError(
                f"{self.path}: this is no run folder (it has no config.yaml); give the folder that "
                f"`nmt train CONFIG` wrote, such as runs/NAME."
            )
        return load_config(self.config_file)

    def save_config(self, config: Config) -> None:
        write_text(self.config_file, dump_config(config))

    def read_record(self) -> dict[str, Any]:
        """Return run.json, or an empty record where there is none yet."""
        if not self.run_json.exists():
            return {}
        record: dict[str, Any] = json.loads(self.run_json.read_text(encoding="utf-8"))
        return record

    def update_record(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Apply a change to run.json; the file is replaced whole."""
        record = self.read_record()
        change(record)
        write_json(self.run_json, record)


def set_name(spec: CorpusSpec) -> str:
    """Return what a test set is called: its catalogue name, or its file's without the folder."""
    return spec.name or Path(spec.tsv or spec.tgt).name


def write_text(path: Path, text: str) -> None:
    with write_whole(path) as stream:
        stream.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write strict JSON: a NaN is an error of ours, not a value."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def describe_command() -> dict[str, Any]:
    """Return what a reader needs to repeat a command: its line, versions, commit and hardware."""
    packages = ("nmt", "torch", "sentencepiece", "sacrebleu", "datasets", "numpy")
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "commit": _commit(),
        "hardware": f"{_processor()}, {os.cpu_count()} cores",
    }


def _commit() -> str:
    """Return the commit of the source tree, or "" where nmt runs from an installed package."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
