"""A device that is not there is an error, auto finds one, and bf16 is taken where it is native."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import Cli
from prepared import write_small

from nmt.device import (
    check_number,
    choose_device,
    choose_dtype,
    describe_precision,
    keep_kernels,
    keep_memory,
)
from nmt.errors import UserError

NO_GPU = not torch.cuda.is_available() and not torch.backends.mps.is_available()
needs_no_gpu = pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")


def test_the_cpu_is_always_there() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


@needs_no_gpu
def test_auto_is_the_cpu_where_nothing_else_is() -> None:
    assert choose_device("auto") == torch.device("cpu")


@needs_no_gpu
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps"])
def test_a_device_that_is_not_there(name: str) -> None:
    kind = name.partition(":")[0]
    with pytest.raises(UserError) as caught:
        choose_device(name)
    assert str(caught.value) == (
        f'device "{name}" is not there: this torch sees 0 {kind} devices; '
        "take --device auto or cpu."
    )


def test_a_second_cpu_is_not_there() -> None:
    with pytest.raises(UserError, match='"cpu:1" is not there: this torch sees 1 cpu devices'):
        choose_device("cpu:1")


@pytest.mark.parametrize("name", ["", "gpu", "CUDA", "cuda:x", "cuda:-1", "meta", "xpu", "cpu "])
def test_a_device_that_is_not_known(name: str) -> None:
    with pytest.raises(UserError, match=f'device "{name}" is not known; take auto, cpu, cuda'):
        choose_device(name)


def test_precision() -> None:
    cpu = torch.device("cpu")
    assert choose_dtype("bf16", cpu) == torch.bfloat16
    assert choose_dtype("fp32", cpu) == torch.float32
    cpuinfo = Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
    is_native = not flags.isdisjoint({"avx512_bf16", "amx_bf16"})
    assert choose_dtype("auto", cpu) == (torch.bfloat16 if is_native else torch.float32)


def test_a_precision_that_is_not_known() -> None:
    with pytest.raises(UserError):
        choose_dtype("fp16", torch.device("cpu"))


def test_tf32_is_of_gpus_alone() -> None:
    with pytest.raises(UserError) as caught:
        choose_dtype("tf32", torch.device("cpu"))
    assert str(caught.value) == (
        'precision "tf32" is of GPUs by NVIDIA from the A100 on, and "cpu" is none; '
        "take auto, bf16 or fp32."
    )
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_a_person_reads_of_the_precision() -> None:
    assert describe_precision("tf32", torch.float32) == "tf32"
    assert describe_precision("auto", torch.bfloat16) == "bfloat16"


@pytest.mark.parametrize("command", ["train", "plan"])
def test_tf32_on_a_cpu_ends_before_anything_is_prepared(
    cli: Cli, tmp_path: Path, command: str
) -> None:
    config = write_small(tmp_path)
    options = ["--run", tmp_path / "run", "--device", "cpu", "--precision", "tf32"]
    done = cli(command, config, *options, status=2)
    assert done.stderr.startswith('error: precision "tf32" is of GPUs')
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_keeping_memory_changes_no_result() -> None:
    keep_memory()
    assert torch.ones(1 << 20).sum().item() == 1 << 20


@pytest.mark.parametrize("by_user", ["", "9"])
def test_torch_keeps_no_kernels_unless_the_user_says_how_many(
    by_user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"LRU_CACHE_CAPACITY": by_user} if by_user else {})
    keep_kernels()
    assert os.environ == {"LRU_CACHE_CAPACITY": by_user or "1"}


@needs_no_gpu
def test_training_ends_before_it_begins_where_the_device_is_not_there(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("train", write_small(tmp_path), "--device", "cuda", status=2, cwd=tmp_path)
    assert done.stderr.startswith('error: device "cuda" is not there')
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@needs_no_gpu
def test_training_on_auto_says_that_it_is_on_the_cpu(cli: Cli, tmp_path: Path) -> None:
    done = cli("train", write_small(tmp_path), "--device", "auto", cwd=tmp_path)
    assert "on cpu" in done.stdout
    assert (tmp_path / "runs/small/config.yaml").exists()


def test_a_gpu_computes_alike() -> None:
    """The switches alone: whether the bytes are the same is for a machine with a GPU to show."""
    command = [
        sys.executable,
        "-c",
        "import os, torch, nmt.device as d; d.compute_alike(torch.device('cpu')); "
        "print(torch.are_deterministic_algorithms_enabled()); "
        "d.compute_alike(torch.device('cuda')); "
        "print(torch.are_deterministic_algorithms_enabled(), os.environ['CUBLAS_WORKSPACE_CONFIG'],"
        " torch.backends.cuda.cudnn_sdp_enabled())",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue :4096:8 False\n"


def test_several_processes_take_a_kind_of_device() -> None:
    check_number(9, torch.device("cpu"))
    with pytest.raises(UserError, match="name the kind alone, such as --device cpu"):
        check_number(2, torch.device("cpu:0"))
