"""Checkpoints: written whole or not at all, without pickle; `best` and `last` are links."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.run_folder import RunFolder, write_json
from nmt.training.step import Learner

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class Progress:
    """How far a run has come: all that, with the weights and the optimiser, a resume needs."""

    step: int = 0
    """Updates done."""
    epoch: int = 0
    epoch_step: int = 0
    """Updates done of this epoch."""
    tokens: int = 0
    """Real target tokens trained on."""
    elapsed_s: float = 0.0
    best_bleu: float = -1.0
    best_step: int = 0
    bad_validations: int = 0
    """Validations since the best one."""
    skipped: int = 0
    """Updates whose gradient was not finite."""


def save_checkpoint(run: RunFolder, learner: Learner, progress: Progress, keep: int) -> None:
    """Write step-NNNNNN, then let `last` (and `best`, where this is it) point to it."""
    final = run.checkpoints / f"step-{progress.step:06d}"
    partial = run.checkpoints / f".{final.name}.{os.getpid()}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    _save(learner.decoding_weights(), partial / "model.safetensors")
    _save(_training_tensors(learner), partial / "optimizer.safetensors")
    write_json(partial / "state.json", asdict(progress))
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    _link(run.checkpoints / "last", final.name)
    if progress.best_step == progress.step:
        _link(run.checkpoints / "best", final.name)
    _prune(run, keep)


def find_checkpoint(run: RunFolder, name: str = "") -> Path:
    """Return the folder of a checkpoint: `name`, or the best, else the last one."""
    for candidate in [name] if name else ["best", "last"]:
        folder = run.checkpoints / candidate
        if (folder / "model.safetensors").exists():
            return folder
    there = sorted(path.name for path in run.checkpoints.glob("[!.]*"))
    raise UserError(
        f"{run.path}: has no checkpoint {name or 'yet'}; there are: {', '.join(there) or 'none'}."
    )


def load_model(model: nn.Module, folder: Path) -> None:
    """Put the weights that decode into a model."""
    _fill(dict(model.named_parameters()), _load(folder / "model.safetensors"), folder)


def load_progress(run: RunFolder) -> Progress | None:
    """Return how far the run has come, or None before its first checkpoint."""
    state = run.checkpoints / "last" / "state.json"
    if not state.exists():
        return None
    return Progress(**json.loads(state.read_text(encoding="utf-8")))


def restore(run: RunFolder, learner: Learner) -> None:
    """Put weights, moments and average of the last checkpoint into the learner."""
    folder = run.checkpoints / "last"
    tensors = _load(folder / "optimizer.safetensors")
    _fill(learner.weights, {name: tensors[f"weight.{name}"] for name in learner.weights}, folder)
    if learner.average:
        _fill(learner.average, _load(folder / "model.safetensors"), folder)
    for name, weight in learner.weights.items():
        learner.optimizer.state[weight] = {
            moment: tensors[f"{moment}.{name}"].to(weight.device) for moment in _MOMENTS
        }


def _training_tensors(learner: Learner) -> dict[str, Tensor]:
    tensors = {f"weight.{name}": weight.detach() for name, weight in learner.weights.items()}
    for name, weight in learner.weights.items():
        state = learner.optimizer.state[weight]
        tensors |= {f"{moment}.{name}": state[moment] for moment in _MOMENTS}
    return tensors


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    save_file(tensors, path)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{path}: this is not a checkpoint that nmt wrote ({error}); take another one with "
            f"--checkpoint."
        ) from None


@torch.no_grad()
def _fill(into: Mapping[str, Tensor], tensors: Mapping[str, Tensor], folder: Path) -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    expected = {name: tuple(tensor.shape) for name, tensor in into.items()}
    if shapes != expected:
        wrong = sorted(name for name in shapes | expected if shapes.get(name) != expected.get(name))
        raise UserError(
            f"{folder}: its weights do not fit the model of config.yaml: {wrong[0]} is "
            f"{shapes.get(wrong[0])}, expected {expected.get(wrong[0])}: they are of another run."
        )
    for name, tensor in tensors.items():
        into[name].copy_(tensor)


def _link(link: Path, target: str) -> None:
    """Let a link point to another folder in one step, so that it is there at every moment."""
    partial = link.with_name(f".{link.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(link)


def _prune(run: RunFolder, keep: int) -> None:
    """Delete the oldest checkpoints beyond `keep`, never `best` or `last`."""
    linked = {(run.checkpoints / name).resolve().name for name in ("best", "last")}
    others = [path for path in sorted(run.checkpoints.glob("step-*")) if path.name not in linked]
    room = max(0, keep - len(linked))
    for path in others[: max(0, len(others) - room)]:
        shutil.rmtree(path)
