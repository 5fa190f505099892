"""nmt average: the mean of the weights of several checkpoints, as one more to decode with."""

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.training.checkpoint import MODEL, best_first, find_checkpoint, step_folders
from nmt.training.sealed import (
    load_tensors,
    misfit,
    remove_partial,
    save_tensors,
    seal,
    whole_folder,
)


def choose_checkpoints(
    run: RunFolder, last: int = 0, best: int = 0, names: Sequence[str] = ()
) -> list[str]:
    """Return the names of the last N, the best N or the named checkpoints, oldest first.

    Raises UserError where not one of the three is asked for, or there are not so many.
    """
    best_by = run.load_config().training.best_by
    if sum(map(bool, (last, best, names))) != 1 or min(last, best) < 0:
        raise UserError("nmt average takes one of --last N, --best N and --checkpoint NAME.")
    folders = step_folders(run)
    if not folders:
        raise UserError(f"{run.path}: has no checkpoint yet; train it first.")
    if names:
        chosen = [_named(run, name, folders) for name in names]
    elif last:
        chosen = _as_many("", folders[-last:], last, run)
    else:
        chosen = _as_many(" with a score", best_first(folders, best_by)[:best], best, run)
    twice = [folder.name for folder in chosen if chosen.count(folder) > 1]
    if twice:
        raise UserError(f"{run.path}: {twice[0]} is named twice, perhaps as best or last.")
    return [folder.name for folder in folders if folder in chosen]


def average_checkpoints(run: RunFolder, names: Sequence[str], output: str = "average") -> Path:
    """Write the mean of checkpoints as checkpoints/OUTPUT, whole or not at all, and return it.

    The sum is made in double precision, so that the mean of equal weights is those weights.
    """
    if not re.fullmatch(r"\w[\w.-]*", output) or re.match(r"(step-|broken-|(best|last)$)", output):
        raise UserError(
            f"--output {output}: this name cannot be taken, as training writes best, last and "
            f"step-NNNNNN; take another one, such as average."
        )
    folders = [find_checkpoint(run, name) for name in names]
    mean = _mean(folders)
    final = run.checkpoints / output
    try:
        remove_partial(run.checkpoints, output)
        with whole_folder(final) as partial:
            save_tensors(mean, partial / MODEL)
            seal(partial, {"average_of": list(names)})
    except (OSError, SafetensorError) as error:
        raise UserError(f"{final}: this average could not be written ({error}).") from None
    return final


def _mean(folders: Sequence[Path]) -> dict[str, Tensor]:
    first = load_tensors(folders[0] / MODEL)
    sums = {name: tensor.double() for name, tensor in first.items()}
    for folder in folders[1:]:
        tensors = load_tensors(folder / MODEL)
        if wrong := misfit(tensors, sums):
            raise UserError(
                f"{folder}: its weights are not of the model of {folders[0].name}: {wrong}."
            )
        for name, tensor in tensors.items():
            sums[name] += tensor
    return {name: (total / len(folders)).to(torch.float32) for name, total in sums.items()}


def _named(run: RunFolder, name: str, folders: Sequence[Path]) -> Path:
    found = find_checkpoint(run, name).resolve().name
    for folder in folders:
        if folder.name == found:
            return folder
    raise UserError(f"{run.checkpoints / name}: only checkpoints that training saved are averaged.")


def _as_many(what: str, folders: list[Path], wanted: int, run: RunFolder) -> list[Path]:
    if len(folders) < wanted:
        raise UserError(
            f"{run.path}: has only {len(folders)} checkpoints{what}, {wanted} were asked for; "
            f"training.keep and training.keep_best say how many stay."
        )
    return folders
