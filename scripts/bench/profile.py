"""Prints where an update's time goes by kind of operation, and keeps the table under a label."""

import sys

if __name__ != "__main__":
    # torch imports the standard library's module of this name, which this folder hides from it.
    import sysconfig
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec(__name__, [sysconfig.get_path("stdlib")])
    assert spec and spec.loader
    sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[__name__])

import argparse
import json
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import torch
from operations import KINDS, PYTHON, Places, is_backward, kind_of
from record import RESULTS, write_result
from sizes import SIZES, Size
from torch import nn
from torch.autograd.profiler import record_function
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.profiler import ProfilerActivity

from nmt.config import load_config
from nmt.data.sources.corpora import Sources
from nmt.run_folder import RunFolder, describe_command
from nmt.tokens.batches import Batch
from nmt.train import train_run
from nmt.training.step import Learner, UpdateResult

NUM_TOP = 5


class Watch:
    """Stands around Learner.update: lets some updates pass, times some, then profiles as many."""

    def __init__(self, num_first: int, num_measured: int) -> None:
        self.first, self.middle = num_first, num_first + num_measured
        self.last = self.middle + num_measured
        self.profiler = torch.profiler.profile(
            activities=[ProfilerActivity.CPU], record_shapes=True
        )
        self.num_weights = 0
        self.num_tokens: list[int] = []
        """Real target tokens of each update."""
        self.times: list[float] = []
        """When the plain updates began and ended, and when the profiled ones did."""
        self.num_faults: list[int] = []
        """Pages that were new to the process, at the same moments."""
        self._update = Learner.update
        self._scopes: list[record_function] = []

    def update(self, learner: Learner, batches: Sequence[Batch], step: int) -> UpdateResult:
        result = self._update(learner, batches, step)
        self.num_tokens.append(result.num_tokens)
        if step in (self.first, self.middle, self.last):
            self._note()
        if step == self.middle:
            self.num_weights = sum(weight.numel() for weight in learner.weights.values())
            register_module_forward_pre_hook(self._enter)
            register_module_forward_hook(self._leave, always_call=True)
            self.profiler.start()
            self._note()
        elif step == self.last:
            self.profiler.stop()
            signal.raise_signal(signal.SIGUSR1)
        return result

    def describe(self, moment: int, first: int) -> dict[str, int]:
        """Return what the updates after `first` came to, which began at a moment of `times`."""
        num_updates = self.last - self.middle
        num_tokens = sum(self.num_tokens[first : first + num_updates])
        begun, ended = self.times[moment : moment + 2]
        faults, all_faults = self.num_faults[moment : moment + 2]
        return {
            "tgt_tokens_per_update": round(num_tokens / num_updates),
            "tgt_tokens_per_s": round(num_tokens / (ended - begun)),
            "ms_per_update": round((ended - begun) * 1000 / num_updates),
            "page_faults_per_update": round((all_faults - faults) / num_updates),
        }

    def _note(self) -> None:
        self.times.append(time.perf_counter())
        self.num_faults.append(getrusage(RUSAGE_SELF).ru_minflt)

    def _enter(self, module: nn.Module, _: object) -> None:
        self._scopes.append(record_function(type(module).__name__))
        self._scopes[-1].__enter__()

    def _leave(self, *_: object) -> None:
        self._scopes.pop().__exit__(None, None, None)


def profile_size(size: Size, options: argparse.Namespace) -> dict[str, Any]:
    """Train as `nmt train` does, in this process; return the table of an update."""
    watch = Watch(options.first, options.updates)
    with tempfile.TemporaryDirectory() as folder:
        config, run = size.prepare(Path(folder), options.mirror)
        Learner.update = lambda *arguments: watch.update(*arguments)  # type: ignore[method-assign]
        train_run(load_config(config), RunFolder(run), Sources.from_environment())
    profiled_s = watch.times[3] - watch.times[2]
    return {
        "commit": describe_command()["commit"],
        "updates": options.updates,
        "without_profiler": watch.describe(0, watch.first),
        "profiled": watch.describe(2, watch.middle),
        "kinds": make_table(watch, size.vocab, profiled_s * 1e6),
    }


def make_table(watch: Watch, num_pieces: int, wall_us: float) -> dict[str, Any]:
    """Return of each kind its share, its milliseconds an update, and its first operators."""
    events = watch.profiler.events()
    assert events is not None
    places = Places(events)
    forward, backward = (dict.fromkeys(KINDS, 0.0) for _ in range(2))
    names: dict[str, defaultdict[str, float]] = {kind: defaultdict(float) for kind in KINDS}
    for event in events:
        kind = kind_of(event, places.of(event), num_pieces, watch.num_weights)
        if kind == PYTHON:
            continue
        (backward if is_backward(event) else forward)[kind] += event.self_cpu_time_total
        names[kind][event.name.removeprefix("aten::")] += event.self_cpu_time_total
    # Python is what is left, wherever it stood.
    forward[PYTHON] = wall_us - sum(forward.values()) - sum(backward.values())
    num_updates = watch.last - watch.middle

    def ms(microseconds: float) -> float:
        return round(microseconds / 1000 / num_updates, 2)

    return {
        kind: {
            "share": round((forward[kind] + backward[kind]) / wall_us, 4),
            "ms": ms(forward[kind] + backward[kind]),
            "of_it_backward_ms": ms(backward[kind]),
            "first_operators_ms": {
                name: ms(spent)
                for name, spent in sorted(names[kind].items(), key=lambda item: -item[1])[:NUM_TOP]
            },
        }
        for kind in KINDS
    }


def show(tables: dict[str, Any]) -> None:
    """Print the tables of one size, a column pair a label."""
    labels = list(tables)
    print(f"{'':42}" + "".join(f"{label + ', ms':>16}{'share':>8}" for label in labels))
    for kind in KINDS:
        cells = (tables[label]["kinds"][kind] for label in labels)
        print(f"{kind:42}" + "".join(f"{cell['ms']:16.1f}{cell['share']:8.1%}" for cell in cells))
    for part in ("without_profiler", "profiled"):
        for name in tables[labels[0]][part]:
            cells = (tables[label][part][name] for label in labels)
            row = "".join(f"{cell:16,}{'':8}" for cell in cells)
            print(f"{name + ', ' + part:42}{row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", help="a folder or URL with the corpora's files")
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument(
        "--label", default="now", help="before, after, ...: tables stand side by side"
    )
    parser.add_argument("--first", type=int, default=30, help="updates that do not count")
    parser.add_argument("--updates", type=int, default=10, help="timed, and as many profiled")
    options = parser.parse_args()
    kept = RESULTS / "profile.json"
    tables = json.loads(kept.read_text())["figures"] if kept.exists() else {}
    table = profile_size(SIZES[options.model], options)
    tables.setdefault(options.model, {})[options.label] = table
    write_result("profile", tables)
    show(tables[options.model])


if __name__ == "__main__":
    main()
