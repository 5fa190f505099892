"""Memory that the processes of one machine share, so that they sum gradients without a network."""

import os
import uuid
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

_FOLDER = Path("/dev/shm")
_BYTES = 4  # of fp32


def is_one_machine() -> bool:
    """Return whether all ranks run on this machine, and it has memory to share."""
    sizes = [os.environ[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE") if name in os.environ]
    return len(sizes) == 2 and sizes[0] == sizes[1] and _FOLDER.is_dir()


def new_file(num_elements: int) -> str:
    """Reserve memory for so many fp32 numbers and return its name; "" where there is not enough."""
    path = _FOLDER / f"nmt-{os.getpid()}-{uuid.uuid4().hex}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, num_elements * _BYTES)  # else a write would kill us later
    except OSError:
        path.unlink()
        return ""
    finally:
        os.close(descriptor)
    return str(path)


def open_file(name: str, num_elements: int) -> Tensor:
    """Return the memory of a name, zeros at first."""
    return torch.from_file(name, shared=True, size=num_elements, dtype=torch.float32)


def forget_file(name: str) -> None:
    """Take the name away: the memory goes with the last process that has it open."""
    with suppress(FileNotFoundError):
        os.unlink(name)
