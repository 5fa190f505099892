"""Folders of tensors: whole or not there, without pickle, sealed by hashes that tell a change."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from nmt.errors import UserError
from nmt.run_folder import write_json

STATE = "state.json"


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """Yield a folder to write in, which appears as `final` only when the block ends well."""
    partial = _partial(final)
    _remove(partial)
    partial.mkdir(parents=True)
    try:
        yield partial
        _sync(partial)
        if final.exists():
            remove_whole(final)
        partial.rename(final)
        _sync(final.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_whole(folder: Path) -> None:
    """Delete a folder so that it is at no moment there in part."""
    gone = folder.with_name(f".{folder.name}.{os.getpid()}.gone.partial")
    _remove(gone)
    folder.rename(gone)
    shutil.rmtree(gone)


def remove_partial(parent: Path, name: str) -> None:
    """Delete what killed processes left of folders and links of this name, `step-*` say."""
    for path in parent.glob(f".{name}.*.partial"):
        _remove(path)


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    save_file(tensors, path)
    # safetensors writes files that only their owner may read; a folder's mode follows the umask.
    path.chmod(path.parent.stat().st_mode & 0o666)
    _sync(path)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file of tensors; UserError where it is none. No code in it is ever run."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{path}: this is not a checkpoint that nmt wrote ({error}); take another one with "
            f"--checkpoint."
        ) from None


def misfit(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """Return the first tensor whose shape is not the expected one, with both, or ""."""
    shapes, right = _shapes(tensors), _shapes(expected)
    wrong = sorted(name for name in shapes | right if shapes.get(name) != right.get(name))
    if not wrong:
        return ""
    name = wrong[0]
    found = shapes[name] if name in shapes else "not there"
    return f"{name} is {found}, expected {right[name] if name in right else 'no such weight'}"


@torch.no_grad()
def copy_into(into: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        into[name].copy_(tensor)


def seal(folder: Path, values: dict[str, Any]) -> None:
    """Write state.json: values, and the hashes of them and of every file of tensors."""
    hashes = {path.name: _hash_of_file(path) for path in sorted(folder.glob("*.safetensors"))}
    write_json(folder / STATE, values | {"sha256": hashes | {STATE: _hash_of(values)}})


def read_seal(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of state.json and the hashes of the files.

    Raises ValueError where it is not as it was written, OSError where it cannot be read.
    """
    values = json.loads((folder / STATE).read_text(encoding="utf-8"))
    if not isinstance(values, dict) or not isinstance(values.get("sha256"), dict):
        raise ValueError(f"{folder}: no hashes")
    hashes = values.pop("sha256")
    if hashes.get(STATE) != _hash_of(values):
        raise ValueError(f"{folder}: another hash")
    return values, hashes


def flaw(folder: Path, files: Sequence[str]) -> str:
    """Say why files of a folder are not what was sealed, or return ""; reads all of them."""
    try:
        _, hashes = read_seal(folder)
    except FileNotFoundError:
        return f"{STATE} is not there"
    except (OSError, ValueError):
        return f"{STATE} is not what was written"
    for name in files:
        try:
            found = _hash_of_file(folder / name)
        except FileNotFoundError:
            return f"{name} is not there"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        if found != hashes.get(name):
            expected = str(hashes.get(name))
            return f"{name} is not what was written: sha256 {found[:12]}, not {expected[:12]}"
    return ""


def link(path: Path, target: str) -> None:
    """Let a link point to a folder beside it in one step, so that it is there at every moment."""
    partial = _partial(path)
    _remove(partial)
    partial.symlink_to(target)
    if path.is_dir() and not path.is_symlink():
        remove_whole(path)  # a program that copied the run made a folder of the link
    partial.replace(path)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _partial(final: Path) -> Path:
    return final.with_name(f".{final.name}.{os.getpid()}.partial")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk: power may fail too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _hash_of(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
