"""scripts/bench/gpu.py runs, on a CPU at least, and says where there is no GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parent.parent / "scripts" / "bench" / "gpu.py"


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so() -> None:
    done = bench()
    assert done.returncode == 2
    assert done.stderr.startswith('error: device "cuda" is not there')
    assert done.stderr.count("\n") == 1


def test_it_measures_on_a_cpu() -> None:
    short = ("--models", "tiny", "--cells", "fp32", "tf32", "bf16+compile", "--seconds", "0.1")
    done = bench("--device", "cpu", *short, "--limit", "30")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    cells = found["models"]["tiny"]
    assert [*cells] == ["fp32", "bf16+compile"]
    assert "left_out" in cells["bf16+compile"]  # it would have taken too long
    fp32 = cells["fp32"]
    assert 800 < fp32["tgt_tokens_per_update"] < 1500
    assert fp32["updates_measured"] >= 3
    # By hand, both sides of 29 tokens: 3 * (1.108 + 0.262 + 1.430 + 2.560) MFLOP a target token.
    assert fp32["tflops"] * 1e6 / fp32["tgt_tokens_per_s"] == pytest.approx(16.1, rel=0.1)
    share = fp32["tflops"] / found["device"]["peak_tflops"]
    assert fp32["model_flop_utilisation"] == pytest.approx(share, abs=1e-4)
