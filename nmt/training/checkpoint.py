"""Checkpoints of a run: saved, found whole, restored, and those that stay."""

import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from nmt.config import TrainingConfig
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.training.sealed import (
    copy_into,
    flaw,
    link,
    load_tensors,
    misfit,
    read_seal,
    remove_partial,
    remove_whole,
    save_tensors,
    seal,
    whole_folder,
)

if TYPE_CHECKING:  # translate reads checkpoints too, and is sooner there without the training
    from nmt.training.step import Learner

MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"


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
    score: float | None = None
    """By training.best_by, of the validation at this very update; None where there was none."""
    best_score: float | None = None
    best_step: int = 0
    bad_validations: int = 0
    """Validations since the best one."""
    device_tokens: int = 0
    """What of a group a device took at once: the same again rounds in the same way."""
    skipped: int = 0
    """Updates that changed no weight, as memory ran out or the gradient was not finite."""


class Whole(NamedTuple):
    """A checkpoint of which every byte is as it was written."""

    folder: Path
    progress: Progress
    complaint: str
    """Which newer ones are not whole, and why; "" where none is."""


def save_checkpoint(
    run: RunFolder, learner: "Learner", progress: Progress, training: TrainingConfig
) -> None:
    """Write step-NNNNNN, let `last` (and `best`, where this is it) point to it, delete old ones.

    Raises UserError where the disk does not take it; all earlier ones are then as they were.
    """
    final = _folder_of(run, progress.step)
    try:
        with whole_folder(final) as partial:
            save_tensors(learner.decoding_weights(), partial / MODEL)
            save_tensors(_training_tensors(learner), partial / OPTIMIZER)
            seal(partial, asdict(progress))
        _link(run, progress)
        _prune(run, training)
    except (OSError, SafetensorError) as error:
        raise UserError(_could_not_save(run, final, error)) from None


def find_whole(run: RunFolder) -> Whole | None:
    """Return the newest checkpoint that is whole, or None before the first; reads every byte.

    Raises UserError where there are checkpoints and none of them is whole.
    """
    broken = []
    last = run.checkpoints / "last"
    if last.is_symlink() and not last.exists():
        broken.append(f"last points to {last.readlink()}, which is not there")
    # A copy of the run may hold folders for links, and `last` alone.
    folders = [*reversed(step_folders(run)), *([last] if last.is_dir() else [])]
    for number, folder in enumerate(folders):
        if why := flaw(folder, (MODEL, OPTIMIZER)):
            broken.append(f"{folder.name} is not whole ({why})")
        elif (progress := _read_progress(folder)) is None:
            broken.append(f"{folder.name} is of another version of nmt")
        else:
            return Whole(folder, progress, _complaint(broken, folder, folders[:number]))
    if broken:
        raise UserError(
            f"{run.checkpoints}: holds no whole checkpoint to go on from: {'; '.join(broken)}. "
            f"Put a copy of one back, or give another folder with --run."
        )
    return None


def clear_partial_checkpoints(run: RunFolder) -> None:
    """Delete what a process left that was killed while it saved."""
    for name in ("step-*", "last", "best"):
        remove_partial(run.checkpoints, name)


def go_on_from(run: RunFolder, whole: Whole) -> None:
    """Let `last` and `best` be as when this one was saved, and newer ones be out of the way.

    A newer one is broken, and is made again; until a person deletes it, it is broken-step-NNNNNN.
    """
    for folder in step_folders(run):
        if _step_of(folder) > whole.progress.step:
            aside = folder.with_name(f"broken-{folder.name}")
            if aside.exists():
                remove_whole(aside)
            folder.rename(aside)
    _link(run, whole.progress)


def find_checkpoint(run: RunFolder, name: str = "") -> Path:
    """Return the folder of a checkpoint to decode with: `name`, or the best, else the last one.

    Raises UserError where it is not there, or its weights are not those that were written.
    """
    candidates = [name] if name else ["best", "last"]
    folders = [run.checkpoints / candidate for candidate in candidates]
    # A `best` that points nowhere is an error: another checkpoint would give other translations.
    folder = next((path for path in folders if path.exists() or path.is_symlink()), None)
    why = flaw(folder, (MODEL,)) if folder else ""
    if folder and not why:
        return folder
    there = ", ".join(sorted(path.name for path in run.checkpoints.glob("[!.]*") if path.exists()))
    if not folder:
        raise UserError(
            f"{run.path}: has no checkpoint {name or 'yet'}; there are: {there or 'none'}."
        )
    target = f"{folder.readlink()}: " if folder.is_symlink() else ""
    raise UserError(
        f"{folder}: this checkpoint is not whole ({target}{why}); put a copy of it back, or name "
        f"another one with --checkpoint; there are: {there or 'none'}."
    )


def load_model(model: nn.Module, folder: Path) -> None:
    """Give a model, which may have been made on the meta device, the weights that decode."""
    weights, tensors = dict(model.named_parameters()), load_tensors(folder / MODEL)
    if wrong := misfit(tensors, weights):
        raise UserError(_misfit_of_run(folder, wrong))
    loaded = {weight: nn.Parameter(tensors[name]) for name, weight in weights.items()}
    for module in model.modules():  # by module, as a weight may stand in several
        for name, weight in module.named_parameters(recurse=False):
            setattr(module, name, loaded[weight])


def init_weights(model: nn.Module, run: RunFolder, other: RunFolder) -> None:
    """Put the best (else last) weights of another run into the model that a run begins with."""
    try:
        other.load_config()
        folder = find_checkpoint(other)
    except UserError as error:
        raise UserError(f"training.init_from: {error}") from None
    ours, theirs = (each.read_record().get("vocab") for each in (run, other))
    if ours != theirs:
        raise UserError(
            f"{run.path}: its vocabulary is not that of {other.path}, which training.init_from "
            f"names: sha256 {ours}, not {theirs}; prepare it again in another folder, with --run."
        )
    weights = dict(model.named_parameters())
    tensors = load_tensors(folder / MODEL)
    if wrong := misfit(tensors, weights):
        raise UserError(
            f"{run.path}: its model cannot begin with the weights of {other.path}, which "
            f"training.init_from names: there {wrong}; set the keys of model as in "
            f"{other.config_file}."
        )
    copy_into(weights, tensors)


def restore(folder: Path, learner: "Learner") -> None:
    """Put weights, moments and average of a checkpoint into the learner, on its device."""
    tensors = load_tensors(folder / OPTIMIZER)
    for kind, places in _kept(learner).items():
        prefix = f"{kind}."
        saved = {name: tensors[name] for name in tensors if name.startswith(prefix)}
        _fill({f"{prefix}{name}": place for name, place in places.items()}, saved, folder)
    # Of each weight, as other versions wrote it; they are the same.
    learner.num_steps = float(tensors[f"step.{next(iter(learner.weights))}"])
    if learner.average:
        _fill(learner.average, load_tensors(folder / MODEL), folder)


def step_folders(run: RunFolder) -> list[Path]:
    """Return the checkpoints of a run, oldest first."""
    found = [
        path for path in run.checkpoints.glob("step-*") if re.fullmatch(r"step-\d+", path.name)
    ]
    return sorted(found, key=_step_of)


def best_first(folders: list[Path], best_by: str) -> list[Path]:
    """Return the checkpoints that have a score, the best first, of equal ones the older first."""
    scores = {folder: _score_of(folder) for folder in folders}
    scored = {folder: score for folder, score in scores.items() if score is not None}
    return sorted(scored, key=lambda folder: scored[folder] * (1 if best_by == "loss" else -1))


def _training_tensors(learner: "Learner") -> dict[str, Tensor]:
    tensors = {
        f"{kind}.{name}": place
        for kind, places in _kept(learner).items()
        for name, place in places.items()
    }
    return tensors | {f"step.{name}": torch.tensor(learner.num_steps) for name in learner.weights}


def _kept(learner: "Learner") -> dict[str, dict[str, Tensor]]:
    weights = {name: weight.detach() for name, weight in learner.weights.items()}
    return {"weight": weights, **learner.moments}


def _fill(into: dict[str, Tensor], tensors: dict[str, Tensor], folder: Path) -> None:
    if wrong := misfit(tensors, into):
        raise UserError(_misfit_of_run(folder, wrong))
    copy_into(into, tensors)


def _misfit_of_run(folder: Path, wrong: str) -> str:
    return (
        f"{folder}: its weights do not fit the model of config.yaml: {wrong}: they are of another "
        f"run."
    )


def _link(run: RunFolder, progress: Progress) -> None:
    """Let `last` and `best` point to the checkpoints that progress names, where these are."""
    for name, step in (("last", progress.step), ("best", progress.best_step)):
        folder = _folder_of(run, step)
        if folder.exists():
            link(run.checkpoints / name, folder.name)


def _prune(run: RunFolder, training: TrainingConfig) -> None:
    """Delete all but the last, the best, each so manieth, and what a link points to."""
    folders = step_folders(run)
    stay = {
        *folders[-training.keep :],
        *best_first(folders, training.best_by)[: training.keep_best],
    }
    stay |= {(run.checkpoints / name).resolve() for name in ("best", "last")}
    every = training.keep_every
    names = {folder.name for folder in stay}
    for folder in folders:
        if folder.name not in names and not (every and _step_of(folder) % every == 0):
            remove_whole(folder)


def _complaint(broken: list[str], taken: Path, newer: list[Path]) -> str:
    if not broken:
        return ""
    aside = ", ".join(f"broken-{folder.name}" for folder in newer)
    kept = f" For you to delete: {aside}." if aside else ""
    return f"{'; '.join(broken)}; going on from {taken}, which is whole.{kept}"


def _could_not_save(run: RunFolder, final: Path, error: Exception) -> str:
    try:
        whole = find_whole(run)
        what_is_left = (
            f"The last checkpoint, {whole.folder.name}, is whole: the same command goes on from it."
            if whole
            else "There is no earlier one: the same command begins anew."
        )
    except UserError as none_is_whole:
        what_is_left = str(none_is_whole)
    why = error.strerror if isinstance(error, OSError) else error
    return (
        f"{final}: this checkpoint could not be saved ({why}); free space on that disk, or lower "
        f"training.keep. {what_is_left}"
    )


def _read_progress(folder: Path) -> Progress | None:
    values, _ = read_seal(folder)
    return Progress(**values) if values.keys() == {item.name for item in fields(Progress)} else None


def _score_of(folder: Path) -> float | None:
    try:
        progress = _read_progress(folder)
    except (OSError, ValueError):
        return None
    return progress.score if progress else None


def _folder_of(run: RunFolder, step: int) -> Path:
    return run.checkpoints / f"step-{step:06d}"


def _step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))
