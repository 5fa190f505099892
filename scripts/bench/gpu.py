"""Measures training on a GPU, on made-up pairs: tokens/s, share of the peak, memory, by precision.

One command of at most 4 minutes that needs no corpus. `--device cpu` shows that it works.
"""

import argparse
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from record import write_result
from sizes import ON_GPU, Size

from nmt.config import ModelConfig, TrainingConfig
from nmt.data.shards import Ints
from nmt.device import choose_device, choose_dtype, compute_alike, keep_memory
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, Planner, Update, shift
from nmt.tokens.vocab import PAD, STOP
from nmt.training.step import Learner

# FLOP/s in bf16 without sparsity, from the data sheets.
PEAKS = {"A100": 312e12, "H100 80GB HBM3": 989e12, "H200": 989e12}
# As in WMT14 English-German: 28 pieces a side, and 95 of 100 sentences below 65.
MEAN_LENGTH, SPREAD, SPREAD_OF_RATIO, MAX_LENGTH = 28, 0.55, 0.2, 250
FIRST_ID = 4
NUM_UPDATES, MIN_UPDATES = 12, 3
CELLS = ("bf16", "bf16+compile", "tf32", "fp32", "bf16 in groups of 4096")
# What a cell may take beside its warm-up and its measurement: to be built, to be compiled.
SLACK_S = {False: 5, True: 45}


@dataclass(frozen=True)
class Cell:
    """A model, and how it computes."""

    model: str
    name: str

    @property
    def precision(self) -> str:
        return self.name[:4]

    @property
    def is_compiled(self) -> bool:
        return self.name.endswith("+compile")

    @property
    def group_tokens(self) -> int:
        """As large as an update, but where the name says another size."""
        size = self.name.rpartition(" ")[2]
        return int(size) if size.isdigit() else ON_GPU[self.model].batch_tokens


class Work(NamedTuple):
    """An update as groups of ids, and what the model's own arithmetic for it comes to."""

    batches: list[Batch]
    flops: float
    padding: float


def make_work(size: Size, group_tokens: int, device: torch.device) -> list[Work]:
    """Return some updates of made-up pairs."""
    rng = np.random.default_rng(1)
    num_pairs = NUM_UPDATES * size.batch_tokens // MEAN_LENGTH
    middle = np.log(MEAN_LENGTH) - SPREAD**2 / 2
    src_lengths = _whole(rng.lognormal(middle, SPREAD, num_pairs))
    tgt_lengths = _whole(src_lengths * rng.lognormal(0, SPREAD_OF_RATIO, num_pairs))
    planner = Planner(
        src_lengths, tgt_lengths, np.ones(num_pairs), size.batch_tokens, group_tokens, seed=1
    )

    def make(update: Update) -> Work:
        batches = []
        for rows in update:
            src_BS, tgt_BT = (
                make_ids(lengths[rows], size.vocab, rng) for lengths in (src_lengths, tgt_lengths)
            )
            batch = Batch(src_BS, *shift(tgt_BT))
            batches.append(batch.pin() if device.type == "cuda" else batch)
        rows = np.concatenate(update)
        pairs = zip(src_lengths[rows].tolist(), tgt_lengths[rows].tolist(), strict=True)
        num_real = int(src_lengths[rows].sum() + tgt_lengths[rows].sum())
        num_cells = sum(batch.src_BS.numel() + batch.tgt_out_BT.numel() for batch in batches)
        flops = sum(size.training_flops(*pair) for pair in pairs)
        return Work(batches, flops, 1 - num_real / num_cells)

    return [make(update) for update in planner.epoch(0)[:NUM_UPDATES]]


def make_ids(lengths: Ints, vocab: int, rng: np.random.Generator) -> torch.Tensor:
    """Return random pieces with stop token and padding, shape (rows, longest)."""
    columns = np.arange(lengths.max())
    ids = rng.integers(FIRST_ID, vocab, (len(lengths), len(columns)))
    ids[columns == lengths[:, None] - 1] = STOP
    ids[columns >= lengths[:, None]] = PAD
    return torch.from_numpy(ids)


def _whole(lengths: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Ints:
    return np.clip(np.rint(lengths), 2, MAX_LENGTH).astype(np.int64)


class Taken(NamedTuple):
    """What some updates came to."""

    num_updates: int
    tgt_tokens: int
    """Real ones."""
    flops: float
    elapsed_s: float


def train(
    learner: Learner, works: Iterable[Work], steps: Iterator[int], seconds: float = 0.0
) -> Taken:
    """Train for so long, and three updates at least, or until the work is done."""
    num_updates, tgt_tokens, flops = 0, 0, 0.0
    wait(learner.device)
    start = time.perf_counter()
    for work in works:
        result = learner.update(work.batches, next(steps))
        if result.trouble:
            raise UserError(result.trouble)
        num_updates, tgt_tokens = num_updates + 1, tgt_tokens + result.num_tokens
        flops += work.flops
        if num_updates >= MIN_UPDATES and time.perf_counter() - start >= seconds:
            break
    wait(learner.device)
    return Taken(num_updates, tgt_tokens, flops, time.perf_counter() - start)


def wait(device: torch.device) -> None:
    """Wait until a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(cell: Cell, device: torch.device, seconds: float) -> dict[str, Any]:
    """Train as nmt train does, and return the figures of what follows a warm-up."""
    size = ON_GPU[cell.model]
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    dtype = choose_dtype(cell.precision, device)
    torch.manual_seed(1)
    layers = size.num_layers, size.num_layers
    config = ModelConfig(size.d_model, size.d_ff, size.num_heads, layers)
    model = Transformer(config, src_vocab=size.vocab, tgt_vocab=size.vocab).to(device)
    learner = Learner(model, TrainingConfig(compile=cell.is_compiled), dtype)
    works = make_work(size, cell.group_tokens, device)
    steps = itertools.count(1)
    first = train(learner, works[:1], steps)
    train(learner, works, steps, seconds)  # so that each shape was seen once, if time allows
    taken = train(learner, itertools.cycle(works), steps, seconds)
    figures = {
        "tgt_tokens_per_s": round(taken.tgt_tokens / taken.elapsed_s),
        "ms_per_update": round(taken.elapsed_s * 1000 / taken.num_updates, 1),
        "tgt_tokens_per_update": round(taken.tgt_tokens / taken.num_updates),
        "groups_per_update": round(statistics.mean(len(work.batches) for work in works), 1),
        "padding": round(statistics.mean(work.padding for work in works), 4),
        "tflops": round(taken.flops / taken.elapsed_s / 1e12, 3),
        "updates_measured": taken.num_updates,
        "first_update_s": round(first.elapsed_s, 2),
    }
    if device.type == "cuda":
        figures["peak_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    return figures


def measure_product(precision: str, device: torch.device) -> float:
    """Return the FLOP/s of a large matrix product, the best of some."""
    dtype = choose_dtype(precision, device)
    size, num_repeats = (8192, 20) if device.type == "cuda" else (1024, 5)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    best = 0.0
    for _ in range(num_repeats):
        wait(device)
        start = time.perf_counter()
        torch.mm(a, b)
        wait(device)
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def describe_device(device: torch.device, precisions: Iterable[str]) -> dict[str, Any]:
    """Return name and peaks; the one that counts is of the data sheet, else as measured."""
    products = {precision: measure_product(precision, device) for precision in precisions}
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    known = [peak for part, peak in PEAKS.items() if part in name]
    return {
        "name": name,
        "measured_product_tflops": {key: round(flops / 1e12, 3) for key, flops in products.items()},
        "peak_tflops": (known[0] if known else max(products.values())) / 1e12,
        "peak_is": "of bf16, by the data sheet" if known else "the best measured product",
    }


def run(cells: list[Cell], device: torch.device, seconds: float, limit_s: float) -> dict[str, Any]:
    """Measure the cells in their order while there is time, and print a line for each."""
    end = time.monotonic() + limit_s
    about = describe_device(device, dict.fromkeys(cell.precision for cell in cells))
    found: dict[str, dict[str, Any]] = {cell.model: {} for cell in cells}
    for cell in cells:
        if time.monotonic() + 2 * seconds + SLACK_S[cell.is_compiled] > end:
            figures: dict[str, Any] = {"left_out": f"no time left of {limit_s:g} s"}
        else:
            try:
                figures = measure(cell, device, seconds)
                share = figures["tflops"] / about["peak_tflops"]
                figures["model_flop_utilisation"] = round(share, 4)
            except UserError as error:
                figures = {"trouble": str(error)}
        print(f"{cell.model} {cell.name}: {figures}", file=sys.stderr, flush=True)
        found[cell.model][cell.name] = figures
    return {"device": about, "seconds": seconds, "models": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+", choices=ON_GPU, default=["base", "big"])
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--seconds", type=float, default=7, help="a cell is measured, and warmed")
    parser.add_argument("--limit", type=float, default=225, help="seconds that all may take")
    options = parser.parse_args()
    try:
        device = choose_device(options.device)
        names = [name for name in options.cells if device.type == "cuda" or name != "tf32"]
        keep_memory()
        compute_alike(device)
        cells = [Cell(model, name) for name in names for model in options.models]
        figures = run(cells, device, options.seconds, options.limit)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    if device.type == "cuda":
        write_result("gpu", figures)
    else:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
