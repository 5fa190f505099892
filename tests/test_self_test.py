"""nmt train --self-test: it proves what holds, and finds out what does not."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Cli
from prepared import write_small
from safetensors.torch import save_file
from tiny import copy, write_task

from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.self_test import compare_bytes, prove

SMALL = {"train": 400, "dev": 5, "test": 5}
# Put into every process of a self-test: another learning rate in each, and a rank that does the
# work of the first.
SABOTAGE = """
import os, sys
if "train" in sys.orig_argv:
    import nmt.training.schedule as schedule
    import nmt.tokens.batches as batches
    rate, share = schedule.learning_rate, batches.share
    schedule.learning_rate = lambda step, **keys: rate(step, **keys) * (1 + os.getpid() * 1e-9)
    batches.share = lambda update, rank, size: share(update, 0, size)
"""


def test_a_run_is_proven_and_stays_as_it_was(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, SMALL)
    run, scratch = tmp_path / "run", tmp_path / "scratch"
    scratch.mkdir()
    keys = ["model.dropout=0.1", "training.subword_alpha=0.2", "training.ema=0.9"]
    options = [word for key in keys for word in ("--set", key)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(scratch)}
    said = cli("train", config, "--run", run, "--self-test", *options, env=environment).stdout
    resume, determinism, ranks = said.splitlines()
    [stop] = re.findall(
        r"^resume \(cpu, \w+\), (\d+) updates with a stop after 2: the same", resume
    )
    assert 4 <= int(stop) <= 20
    assert re.search(r"the same losses, the same [\d,]{6,} bytes of weights and moments$", resume)
    assert determinism.startswith("determinism (cpu, ")
    assert f"), {stop} updates twice: the same losses, the same " in determinism
    pattern = (
        r"ranks \(cpu, float32\), 2 updates by 1 and by 2 processes: the losses differ by (\S+) at "
        r"most, the first gradient norm by (\S+); 1e-06 may be"
    )
    found = re.fullmatch(pattern, ranks)
    assert found, ranks
    assert max(map(float, found.groups())) <= 1e-6
    # The run is prepared, and nothing is trained; nothing else is left.
    assert not (run / "checkpoints").exists()
    assert not (run / "metrics.jsonl").exists()
    assert not any(path.is_symlink() for path in run.rglob("*"))
    assert len((run / "data/dev.src").read_text().splitlines()) == SMALL["dev"]
    assert [*scratch.glob("nmt-*")] == []


@pytest.mark.slow
def test_a_broken_engine_is_found_out(cli: Cli, tmp_path: Path) -> None:
    config = write_task(tmp_path, copy, SMALL)
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = ["train", config, "--run", tmp_path / "run", "--self-test"]
    said = cli(*command, status=1, env=environment).stdout.splitlines()
    assert len(said) == 3
    for line in said[:2]:
        assert re.search(r": FAILED, lr of update 1 is [\d.e-]+, and [\d.e-]+$", line)
    assert "FAILED, the losses differ by" in said[2]


def test_nothing_is_proven_where_training_breaks_down(tmp_path: Path) -> None:
    config = load_config(write_small(tmp_path), ["training.lr=1e+30"])
    with pytest.raises(UserError, match="skipped, so nothing can be proven: .*update 2: the grad"):
        prove(config, RunFolder(tmp_path / "run"), Sources(tmp_path), num_processes=2)


def test_torchrun_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(write_task(tmp_path, copy, SMALL))
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(UserError, match="leave torchrun out"):
        prove(config, RunFolder(tmp_path / "run"), Sources(tmp_path), num_processes=2)
    assert not (tmp_path / "run").exists()


def updates(loss: float) -> list[dict[str, Any]]:
    line = {"step": 1, "loss": loss, "grad_norm": 1.0, "lr": 0.1, "tokens": 9, "epoch": 0}
    return [json.loads(json.dumps(line))]


def write_run(folder: Path, weight: float, moment: float) -> Path:
    """Write the two files of a last checkpoint."""
    last = folder / "checkpoints/last"
    last.mkdir(parents=True)
    save_file({"a": torch.ones(3), "b": torch.tensor([1.0, weight])}, last / "model.safetensors")
    save_file({"step.a": torch.tensor([moment])}, last / "optimizer.safetensors")
    return folder


def test_what_differs_is_said_with_its_name_and_by_how_much(tmp_path: Path) -> None:
    one, same = (write_run(tmp_path / name, 2.0, 3.0) for name in ("one", "same"))
    other_weight = write_run(tmp_path / "weight", 2.25, 3.0)
    other_moment = write_run(tmp_path / "moment", 2.0, 3.5)
    ours = updates(4.5)
    proof = compare_bytes("x", one, same, ours, updates(4.5))
    assert proof.holds
    assert str(proof).startswith("x: the same losses, the same ")
    for other, theirs, seen in (
        (same, updates(4.25), "loss of update 1 is 4.5, and 4.25"),
        (other_weight, ours, "model.safetensors differs, most of all b, by 2.5e-01"),
        (other_moment, ours, "optimizer.safetensors differs, most of all step.a, by 5.0e-01"),
    ):
        proof = compare_bytes("x", one, other, ours, theirs)
        assert not proof.holds
        assert str(proof) == f"x: FAILED, {seen}"
