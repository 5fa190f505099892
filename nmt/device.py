"""Picks the device and the precision, and keeps freed memory for the next update."""

import ctypes
import gc
import os
import sys
from pathlib import Path

import torch

from nmt.errors import UserError

# The options of glibc's mallopt, from malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_KEPT_BYTES = 1 << 30


def choose_device(name: str) -> torch.device:
    """Return the device of a name such as auto, cpu, cuda, cuda:1, mps.

    auto takes CUDA, then MPS, then the CPU. One of several processes that train together takes the
    GPU of its number. Raises UserError for a device that is not there.
    """
    if name == "auto":
        has_mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda", "mps"):
        raise UserError(f'device "{name}" is not known; take auto, cpu, cuda, cuda:1 or mps.')
    if (device.index or 0) >= count_devices(device):
        raise UserError(
            f'device "{name}" is not there: this torch sees {count_devices(device)} {device.type} '
            f"devices; take --device auto or cpu."
        )
    return device


def count_devices(device: torch.device) -> int:
    """Return how many devices of this kind there are; the CPUs are one."""
    if device.type == "cuda":
        return torch.cuda.device_count()
    return int(torch.backends.mps.is_available()) if device.type == "mps" else 1


def check_number(devices: int, chosen: torch.device) -> None:
    """Raise UserError where so many processes cannot have a device of the chosen kind each."""
    if chosen.index is not None:
        raise UserError(
            f"--devices {devices} takes the first {devices} devices of a kind: name the kind "
            f"alone, such as --device {chosen.type}."
        )
    if chosen.type != "cpu" and devices > count_devices(chosen):
        raise UserError(
            f"--devices {devices}: this machine has {count_devices(chosen)} {chosen.type} "
            f"devices; take at most so many."
        )


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Return what the model computes in: auto is bf16 where the device does it natively.

    tf32 is fp32 whose matrix products round what goes into them: from now on, in all this process.
    Raises UserError where it is not known, or the device does not have it.
    """
    if precision == "auto":
        return torch.bfloat16 if _has_native_bf16(device) else torch.float32
    dtypes = {"bf16": torch.bfloat16, "tf32": torch.float32, "fp32": torch.float32}
    if precision not in dtypes:
        raise UserError(f'precision "{precision}" is not known; take auto, bf16, tf32 or fp32.')
    if precision == "tf32" and (device.type != "cuda" or not _has_native_bf16(device)):
        raise UserError(
            f'precision "tf32" is of GPUs by NVIDIA from the A100 on, and "{device}" is none; take '
            f"auto, bf16 or fp32."
        )
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return dtypes[precision]


def describe_precision(precision: str, dtype: torch.dtype) -> str:
    """Return what a person reads: bfloat16, float32 or tf32."""
    return precision if precision == "tf32" else str(dtype).removeprefix("torch.")


def compute_alike(device: torch.device) -> None:
    """Let a GPU give the same bytes each time, as a run that goes on must be the same run.

    Called before anything is computed on it. Attention of cuDNN is off: it makes a plan for each
    new shape, which takes a second, and every batch has another one.
    """
    if device.type != "cuda":
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.enable_cudnn_sdp(False)


def seed(device: torch.device, number: int) -> None:
    """Seed the generators that training on a device draws from.

    torch.manual_seed seeds those of all devices there might be, which takes 0.5 ms each time.
    """
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
    if device.type == "mps":
        torch.mps.manual_seed(number)


def keep_memory() -> None:
    """Tell glibc to keep what is freed: pages given back to the kernel come back zeroed, slowly.

    Worth about 20 % of an update on CPUs. Elsewhere than on glibc nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_TOP_PAD, 64 << 20)


def keep_kernels() -> None:
    """Let oneDNN alone keep kernels, of which it makes one for each shape: 1,024 of them.

    torch keeps as many before it, which takes 0.3 GB and saves no time. With 64, decoding many
    lines takes 0.2 GB less, but 5 % more time and greedy 25 %; training with 256 takes 3 % more.
    Called before anything is computed, as it is read once; the user's environment goes first.
    """
    os.environ.setdefault("LRU_CACHE_CAPACITY", "1")


def give_back_memory() -> None:
    """Give freed memory back to the kernel after all, so that its pieces do not add up for ever."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)


def settle() -> None:
    """Prepare a process that has loaded all and will do one thing many times over.

    Python's garbage collector leaves alone what is there by now, which is a twentieth of the time
    of decoding: torch has many objects.
    """
    keep_memory()
    gc.freeze()


def _has_native_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    cpuinfo = Path("/proc/cpuinfo")
    if device.type != "cpu" or not cpuinfo.exists():
        return False
    flags = set(cpuinfo.read_text().split())
    return bool(flags & {"avx512_bf16", "amx_bf16"})
