"""Training on several machines: torchrun agents on this one act as them, stand-ins as Slurm."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import Cli
from tiny import copy, write_task
from torch.distributed.run import get_args_parser

from nmt.cli import app

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "scripts" / "cluster"
# Some milliseconds an update, so that there is time to disturb it.
NUM_UPDATES = 250
SETTINGS = [
    "training.batch_tokens=200",
    f"training.max_steps={NUM_UPDATES}",
    "training.save_every=25",
    f"training.validate_every={NUM_UPDATES}",
    "training.log_every=1",
    "model.dropout=0.1",
]
LIMIT_S = 150

Process = subprocess.Popen[bytes]


@pytest.mark.parametrize("script", ["node.sh", "slurm.sh"])
def test_bash_can_read_the_scripts(script: str) -> None:
    subprocess.run(["bash", "-n", CLUSTER / script], check=True)


def test_every_option_in_the_script_exists() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (CLUSTER / "node.sh").read_text()))
    train = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    known = {option for parameter in train.params for option in parameter.opts}
    assert named - known <= get_args_parser()._option_string_actions.keys()
    assert "--run" in named & known


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = {"train": 1000, "dev": 5, "test": 5}
    return write_task(tmp_path_factory.mktemp("cluster"), copy, sizes)


@pytest.fixture(scope="module")
def undisturbed(cli: Cli, config: Path) -> bytes:
    """The weights that two processes end with when nobody disturbs them."""
    run = config.parent / "undisturbed"
    cli("train", config, "--run", run, *arguments(), "--devices", 2)
    return weights(run)


class Site:
    """Machines that train the config in one run folder; what each says is in NAME.log."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.folder, self.config, self.run = folder, config, folder / "run"
        self.started: list[Process] = []
        with socket.create_server(("localhost", 0)) as server:
            self.port = int(server.getsockname()[1])

    def start(self, name: str, script: str = "node.sh", **variables: str) -> Process:
        """Start a script as on a machine of its own."""
        environment = {
            **os.environ,
            "PATH": f"{self.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "PET_LOCAL_ADDR": "localhost",
            "FIRST": f"localhost:{self.port}",
            "PROCESSES": "1",
            **variables,
        }
        command = [str(CLUSTER / script), str(self.config), "--run", str(self.run), *arguments()]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def start_two(self) -> tuple[Process, Process]:
        """Start two machines, of which the first is where they meet."""
        first = self.start("first")
        self.wait_until(self.is_listening)
        return first, self.start("second")

    def is_listening(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("localhost", self.port)) == 0

    def wait_for_update(self, step: int) -> None:
        self.wait_until(lambda: any(record["step"] >= step for record in self.metrics()))

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            if time.monotonic() > deadline:
                logs = (f"{log.name}:\n{log.read_text()}" for log in self.folder.glob("*.log"))
                pytest.fail("\n".join(logs))
            time.sleep(0.05)

    def metrics(self) -> list[dict[str, Any]]:
        """Return the whole lines of a file that may be written to."""
        file = self.run / "metrics.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def check_saved(self) -> int:
        """See that the first stopped, and saved the last update; return that."""
        assert "stopped and saved" in (self.folder / "first.log").read_text()
        saved = json.loads((self.run / "checkpoints/last/state.json").read_text())["step"]
        assert saved == self.metrics()[-1]["step"] < NUM_UPDATES
        return int(saved)


@pytest.fixture
def site(config: Path, tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, config)
    yield site
    for process in site.started:
        if process.poll() is None:
            kill(process)


@pytest.mark.slow
def test_a_machine_that_is_killed_and_comes_back_changes_nothing(
    undisturbed: bytes, site: Site
) -> None:
    first, second = site.start_two()
    site.wait_for_update(80)
    kill(second)
    again = site.start("again")
    assert [finish(first), finish(again)] == [0, 0]
    # The first machine's torchrun was there all the time, and started its process anew.
    said = (site.folder / "first.log").read_text()
    assert "error: rank 1" in said
    assert re.search(r"^going on from update \d+$", said, re.MULTILINE)
    assert weights(site.run) == undisturbed


@pytest.mark.slow
def test_a_signal_to_torchrun_saves_and_the_same_command_goes_on(
    undisturbed: bytes, site: Site
) -> None:
    machines = site.start_two()
    site.wait_for_update(60)
    for machine in machines:  # as a batch system does
        machine.send_signal(signal.SIGUSR1)
    # torchrun's own status once its processes are done; killed by the signal it would be -10.
    assert [finish(machine) for machine in machines] == [1, 1]
    saved = site.check_saved()
    first, second = site.start_two()
    site.wait_for_update(saved + 60)
    second.send_signal(signal.SIGTERM)  # to one machine: all stop, and the other waits for it
    assert finish(second) == 1
    assert site.check_saved() >= saved + 60
    assert first.poll() is None
    again = site.start("again")
    assert [finish(first), finish(again)] == [0, 0]
    assert weights(site.run) == undisturbed


@pytest.mark.slow
def test_a_slurm_job_saves_and_queues_again_before_its_time_is_over(
    undisturbed: bytes, site: Site
) -> None:
    requeued = site.folder / "requeued"
    stand_in(site.folder / "srun", 'while [[ $1 == --* ]]; do shift; done; exec "$@"')
    stand_in(
        site.folder / "scontrol", f'[[ $1 == show ]] && echo localhost || echo "$*" >> {requeued}'
    )
    number = str(os.getpid())
    variables = {
        "SLURM_JOB_ID": number,
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_CPUS_PER_TASK": "2",
        "PROCESSES": "2",
    }
    job = site.start("first", "slurm.sh", **variables)
    site.wait_for_update(60)
    job.send_signal(signal.SIGUSR1)
    assert finish(job) == 1
    site.check_saved()
    assert requeued.read_text() == f"requeue {number}\n"
    assert finish(site.start("again", "slurm.sh", **variables)) == 0
    assert requeued.read_text() == f"requeue {number}\n"
    assert weights(site.run) == undisturbed


def arguments() -> list[str]:
    return ["--device", "cpu", *(word for setting in SETTINGS for word in ("--set", setting))]


def kill(agent: Process) -> None:
    """Kill torchrun and then its processes, as when a machine loses power."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    agent.kill()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    agent.wait()


def finish(process: Process) -> int:
    return process.wait(timeout=LIMIT_S)


def stand_in(file: Path, script: str) -> None:
    file.write_text(f"#!/usr/bin/env bash\n{script}\n")
    file.chmod(0o755)


def weights(run: Path) -> bytes:
    return (run / "checkpoints/last/optimizer.safetensors").read_bytes()
