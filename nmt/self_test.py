"""nmt train --self-test: proves on this machine what training promises, by a few small updates."""

import filecmp
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nmt.config import Config
from nmt.data.sources.corpora import Sources
from nmt.device import choose_device, choose_dtype, describe_precision
from nmt.errors import UserError
from nmt.launch import is_worker
from nmt.lines import read_lines, write_lines
from nmt.prepare import prepare
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore, make_rows, write_store
from nmt.training.sealed import load_tensors

_BATCH_TOKENS = 512
# A run of the byte proofs takes about so long, but at least twice as many updates as to the stop.
_SECONDS_A_RUN, _STOP, _MAX_UPDATES = 4.0, 2, 20
_UPDATES_OF_RANKS = 2
_MAX_DIFFERENCE = 1e-6
_FILES = ("checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors")
_NEVER = 10**9

Updates = list[dict[str, Any]]
"""The train lines of metrics.jsonl."""


class Proof(NamedTuple):
    """What was tried, and what was seen."""

    name: str
    seen: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.seen if self.holds else f'FAILED, {self.seen}'}"


def prove(config: Config, run: RunFolder, sources: Sources, num_processes: int) -> int:
    """Print a line for each proof; return 0, or 1 where one fails.

    Prepares the run first where it has to. The updates are small, and made by real `nmt train`
    processes in a folder that is thrown away.
    """
    if is_worker():
        raise UserError("--self-test starts processes by itself; leave torchrun out.")
    prepare(config, run, sources)
    cut = _cut(config, run)
    all_hold = True
    with tempfile.TemporaryDirectory(prefix="nmt-self-test-") as name:
        folder = Path(name)
        for proof in chain(
            _same_bytes(cut, run, folder), _same_losses(cut, run, folder, num_processes)
        ):
            print(proof, flush=True)
            all_hold = all_hold and proof.holds
    return 0 if all_hold else 1


def _same_bytes(config: Config, run: RunFolder, folder: Path) -> Iterator[Proof]:
    """Compare a run with one that is stopped and goes on, and with itself once more."""
    where = _where(config)
    stopped, straight, again = (folder / name for name in ("stopped", "straight", "again"))
    _borrow(config, run, stopped)
    num_updates = _how_many(_train(stopped, _STOP))
    in_parts = _train(stopped, num_updates)
    _borrow(config, run, straight)
    whole = _train(straight, num_updates)
    name = f"resume ({where}), {num_updates} updates with a stop after {_STOP}"
    yield compare_bytes(name, straight, stopped, whole, in_parts)
    shutil.rmtree(stopped)  # checkpoints of a big model take GB
    _borrow(config, run, again)
    name = f"determinism ({where}), {num_updates} updates twice"
    yield compare_bytes(name, straight, again, whole, _train(again, num_updates))
    shutil.rmtree(straight)
    shutil.rmtree(again)


def _same_losses(
    config: Config, run: RunFolder, folder: Path, num_processes: int
) -> Iterator[Proof]:
    """Compare what one process and several see, of which each computes a part of an update."""
    # In bf16 the rounding alone would be more; dropout and sampling draw other numbers.
    training = replace(config.training, device="cpu", precision="fp32", subword_alpha=0.0)
    exact = replace(config, training=training, model=replace(config.model, dropout=0.0))
    _borrow(exact, run, folder / "one")
    _borrow(exact, run, folder / "several")
    one = _train(folder / "one", _UPDATES_OF_RANKS)
    several = _train(folder / "several", _UPDATES_OF_RANKS, num_processes)
    loss = max(_relative(ours, theirs, "loss") for ours, theirs in zip(one, several, strict=True))
    # Later ones are of other weights: where a gradient is all but 0, Adam goes by its rounding.
    grad_norm = _relative(one[0], several[0], "grad_norm")
    yield Proof(
        f"ranks ({_where(exact)}), {len(one)} updates by 1 and by {num_processes} processes",
        f"the losses differ by {loss:.1e} at most, the first gradient norm by {grad_norm:.1e}; "
        f"{_MAX_DIFFERENCE:g} may be",
        max(loss, grad_norm) <= _MAX_DIFFERENCE,
    )


def _relative(ours: dict[str, Any], theirs: dict[str, Any], key: str) -> float:
    return float(abs(theirs[key] - ours[key]) / abs(ours[key]))


def compare_bytes(name: str, one: Path, other: Path, ours: Updates, theirs: Updates) -> Proof:
    """Compare what two runs logged, and their last checkpoints byte for byte."""
    for mine, its in zip(ours, theirs, strict=True):
        for key in ("loss", "grad_norm", "lr", "tokens", "epoch"):
            if mine[key] != its[key]:
                seen = f"{key} of update {mine['step']} is {mine[key]}, and {its[key]}"
                return Proof(name, seen, holds=False)
    num_bytes = 0
    for file in _FILES:
        if not filecmp.cmp(one / file, other / file, shallow=False):
            return Proof(name, _largest_difference(one / file, other / file), holds=False)
        num_bytes += (one / file).stat().st_size
    seen = f"the same losses, the same {num_bytes:,} bytes of weights and moments"
    return Proof(name, seen, holds=True)


def _largest_difference(one: Path, other: Path) -> str:
    ours, theirs = load_tensors(one), load_tensors(other)
    differences = {
        name: float((tensor - theirs[name]).abs().max()) for name, tensor in ours.items()
    }
    name = max(differences, key=lambda name: differences[name])
    return f"{one.name} differs, most of all {name}, by {differences[name]:.1e}"


def _cut(config: Config, run: RunFolder) -> Config:
    """Return the config with small updates, of some groups each, that logs and never stops."""
    store = TokenStore(run.store)
    longest = max(int(store.lengths(side).max()) for side in ("src", "tgt"))
    training = replace(
        config.training,
        batch_tokens=max(_BATCH_TOKENS, longest),
        group_tokens=max(_BATCH_TOKENS // 3, longest),
        max_epochs=0,
        max_minutes=0.0,
        patience=0,
        validate_every=_NEVER,
        save_every=_NEVER,
        log_every=1,
        tensorboard=False,
    )
    return replace(config, training=training)


def _borrow(config: Config, run: RunFolder, folder: Path) -> None:
    """Make a run folder that uses the prepared data of another, but of the dev set one pair."""
    borrowed = RunFolder(folder)
    borrowed.data.mkdir(parents=True)
    borrowed.save_config(config)
    shutil.copy(run.run_json, borrowed.run_json)
    for path in (*run.path.glob("vocab*.model"), *run.data.glob("[!.]*")):
        (folder / path.relative_to(run.path)).symlink_to(path.resolve())
    store = TokenStore(run.dev_store)
    shortest = np.argmin(store.lengths("src"), keepdims=True)
    _, line = store.origin(int(shortest[0]))
    for side in ("src", "tgt"):
        lines = islice(read_lines(run.lines_file("dev", side)), line - 1, line)
        write_lines(borrowed.lines_file("dev", side), lines)
    src_ids, tgt_ids = (store.lists(side, shortest) for side in ("src", "tgt"))
    with write_store(borrowed.dev_store) as dev:
        dev.write(make_rows(src_ids, tgt_ids, 0, pa.array([1], pa.int64())))


def _train(folder: Path, num_updates: int, num_processes: int = 1) -> Updates:
    """Let `nmt train` train a run up to an update, and return what it logged."""
    run = RunFolder(folder)
    arguments = ["train", run.config_file, "--run", folder, "--offline"]
    arguments += ["--set", f"training.max_steps={num_updates}", "--devices", num_processes]
    command = [sys.executable, "-m", "nmt", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise UserError(
            f"nmt train ended with status {done.returncode} and said: {done.stderr.strip()}"
        )
    records = [json.loads(line) for line in run.metrics.read_text(encoding="utf-8").splitlines()]
    updates = [record for record in records if record["kind"] == "train"]
    if updates[-1]["skipped"]:
        raise UserError(f"an update was skipped, so nothing can be proven: {done.stderr.strip()}")
    return updates


def _how_many(updates: Updates) -> int:
    """Return how many updates a run of some seconds makes, by the last of those that were made."""
    seconds = updates[-1]["elapsed_s"] - updates[-2]["elapsed_s"]
    return max(2 * _STOP, min(_MAX_UPDATES, int(_SECONDS_A_RUN / max(seconds, 1e-3))))


def _where(config: Config) -> str:
    device = choose_device(config.training.device)
    dtype = choose_dtype(config.training.precision, device)
    return f"{device}, {describe_precision(config.training.precision, dtype)}"
