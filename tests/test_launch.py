"""nmt train --devices N and torchrun, for real: what they say, return, and leave behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ranks import ENDLESS, Ranks, new_run, records, state, train, wait_for_update, write_prepared

import nmt.launch
from nmt.launch import launch

SAVING = ENDLESS | {"training.save_every": 5}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prepared(tmp_path_factory.mktemp("task"))


class Launcher(Ranks):
    """`nmt train --devices 2`, and what it says."""

    def __init__(self, config: Path, run: Path, keys: dict[str, Any]) -> None:
        super().__init__(config.parent, 1, [*train(config, run, keys), "--devices", "2"])

    @property
    def pid(self) -> int:
        pid = self.processes[0].pid
        assert pid
        return pid


def children(pid: int) -> list[int]:
    """Return the ids of the processes that one has started, in their order."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, check=False)
    return sorted(map(int, found.stdout.split()))


def wait_for_children(pid: int, timeout_s: float = 60) -> list[int]:
    deadline = time.monotonic() + timeout_s
    while len(children(pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return children(pid)


def wait_for_end(processes: list[int], timeout_s: float = 30) -> None:
    """Wait until processes are gone that are not ours to wait for."""
    deadline = time.monotonic() + timeout_s
    command = ["ps", "-o", "stat=", "-p", ",".join(map(str, processes))]
    while True:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if all(line.startswith("Z") for line in found.split()):
            return
        assert time.monotonic() < deadline, f"{processes} are left: {found}"
        time.sleep(0.05)


def open_things() -> list[int]:
    """Return how many files, threads and children this process has."""
    lists = [os.listdir(f"/proc/self/{name}") for name in ("fd", "task")]
    return [*map(len, lists), len(children(os.getpid()))]


def test_output_comes_once_and_nothing_is_left(capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["--version"], 3) == 0
    before = open_things()
    for _ in range(3):
        assert launch(["--version"], 3) == 0
    assert open_things() == before
    assert capfd.readouterr().out.count("nmt ") == 4


def test_what_all_find_wrong_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["eval"], 3) == 2
    said = capfd.readouterr().err
    assert said == "error: nmt eval takes either RUN, or --hyp FILE with --ref FILE.\n"


def test_an_unready_config_starts_no_process(config: Path, tmp_path: Path) -> None:
    for keys, why in (
        ({"training.lr": -1}, "training.lr must be above 0"),
        ({"data.dev": "[{src: no.src, tgt: no.tgt}]"}, "no.src"),
        ({"training.device": "cuda:64"}, 'device "cuda:64" is not there'),
    ):
        command = [*train(config, tmp_path / "run", keys), "--devices", "2"]
        launcher = Ranks(tmp_path, 1, command, forbid_launch)
        assert launcher.statuses() == [2], launcher.said()
        assert why in launcher.said()
        assert launcher.said().startswith("error: ")
        assert launcher.said().count("\n") == 1


def forbid_launch() -> None:
    nmt.launch.launch = None  # type: ignore[assignment]


def test_a_worker_s_message_and_status_are_given_back_once(config: Path) -> None:
    launcher = Launcher(config, new_run(config, "too-long"), {"training.group_tokens": 8})
    assert launcher.statuses() == [2]
    errors = launcher.said()[launcher.said().index("error: ") :]
    assert "its longer side has" in errors
    assert errors.count("\n") == 1


def test_kills_and_ctrl_c_leave_no_process_and_the_same_command_goes_on(config: Path) -> None:
    """Two launches run at the same time, which must not meet each other."""
    one, other = new_run(config, "one"), new_run(config, "other")
    interrupted, orphaned = Launcher(config, one, SAVING), Launcher(config, other, SAVING)
    for run in (one, other):
        wait_for_update(run, 7)
    workers = children(interrupted.pid) + children(orphaned.pid)
    assert len(workers) == 4
    os.kill(interrupted.pid, signal.SIGINT)
    os.kill(orphaned.pid, signal.SIGKILL)
    assert interrupted.statuses() == [128 + signal.SIGINT]
    wait_for_end(workers)
    for run, launcher in ((one, interrupted), (other, orphaned)):
        assert "stopped and saved; the same command goes on" in launcher.said()
        assert "error" not in launcher.said() and "Traceback" not in launcher.said()
        assert state(run)["step"] == records(run)[-1]["step"]

    step = state(one)["step"]
    crippled = Launcher(config, one, SAVING)
    wait_for_update(one, step + 2)
    workers = children(crippled.pid)
    os.kill(workers[1], signal.SIGKILL)
    assert crippled.statuses() == [128 + signal.SIGKILL]
    assert f"going on from update {step:,}" in crippled.said()
    assert "error: rank 1 was killed by SIGKILL, perhaps as memory ran out" in crippled.said()
    assert "Traceback" not in crippled.said()
    wait_for_end(workers)


def test_a_signal_before_training_ends_all_with_its_status(config: Path) -> None:
    launcher = Launcher(config, new_run(config, "early"), ENDLESS)
    workers = wait_for_children(launcher.pid)
    os.kill(launcher.pid, signal.SIGTERM)
    assert launcher.statuses() == [128 + signal.SIGTERM]
    assert "killed" not in launcher.said()
    wait_for_end(workers)


def test_a_kill_before_the_ranks_have_met_ends_all(config: Path) -> None:
    launcher = Launcher(config, new_run(config, "unmet"), ENDLESS)
    workers = wait_for_children(launcher.pid)
    os.kill(workers[1], signal.SIGKILL)
    assert launcher.statuses() == [128 + signal.SIGKILL]
    assert "error: rank 1 was killed by SIGKILL" in launcher.said()
    wait_for_end(workers)


def torchrun(*arguments: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
    options = ["--standalone", "--nproc-per-node", "2", *arguments]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
    )


def test_torchrun_hands_on_its_signal(config: Path) -> None:
    run = new_run(config, "runs/copy")
    _, _, _, _, *settings = train(config, run, ENDLESS)
    process = torchrun("-m", "nmt", "train", config.name, *settings, cwd=config.parent)
    wait_for_update(run, 3)
    workers = children(process.pid)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    wait_for_end(workers)
    assert "stopped and saved; the same command goes on" in said
    assert state(run)["step"] == records(run)[-1]["step"]


@pytest.mark.slow
def test_torchrun_starts_again_after_a_kill(config: Path) -> None:
    run = new_run(config, "again")
    # `--`, as torchrun takes `--run` for an option of its own.
    process = torchrun("--max-restarts", "1", "-m", "--", "nmt", *train(config, run, SAVING))
    wait_for_update(run, 7)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    wait_for_update(run, records(run)[-1]["step"] + 200)
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=60)
    assert "going on from update" in out
    assert "stopped and saved; the same command goes on" in said
    assert [line["step"] for line in records(run)] == [*range(1, state(run)["step"] + 1)]
