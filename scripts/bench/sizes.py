"""The models that are measured on Multi30k, what they compute, and how much the machine can."""

import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

CONFIG = """\
# Made by scripts/bench: English-German captions, a model to measure and not to use.
src: en
tgt: de
data: {{train: [multi30k], dev: [multi30k/val]}}
vocab: {{size: {vocab}}}
model: {{d_model: {d_model}, d_ff: {d_ff}, num_heads: {num_heads}, num_layers: {num_layers}}}
training: {{batch_tokens: {batch_tokens}, lr: 0.0007, validate_every: 1000000, save_every: 1000000}}
"""
# Large enough for the limit of the machine; the best of them is the peak.
_PRODUCTS = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (4096, 512, 2048))


@dataclass(frozen=True)
class Size:
    """A model with one joint vocabulary, and its batches; the other settings are nmt's defaults."""

    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int
    """Of the encoder, and of the decoder."""
    vocab: int
    batch_tokens: int
    """Padded size of a batch."""

    def prepare(self, folder: Path, mirror: str | None) -> tuple[Path, Path]:
        """Let nmt prepare the corpus; return the config and the run folder."""
        config, run = folder / "config.yaml", folder / "run"
        config.write_text(CONFIG.format(**vars(self)))
        options = ["--mirror", mirror] if mirror else []
        command = [sys.executable, "-m", "nmt", "prepare", config, "--run", run, *options]
        subprocess.run(command, stdout=sys.stderr, check=True)
        return config, run

    def training_flops(self, src_length: float, tgt_length: float) -> float:
        """Return what one pair costs: three times the forward pass, two a multiply-add.

        Lengths count the stop token. Look-ups count nothing, causal attention counts as a whole.
        """
        d, ff, layers, src, tgt = self.d_model, self.d_ff, self.num_layers, src_length, tgt_length
        encoder = src * layers * (8 * d * d + 4 * d * ff + 4 * src * d)
        memory = src * layers * 4 * d * d
        decoder = tgt * layers * (12 * d * d + 4 * d * ff + 4 * tgt * d + 4 * src * d)
        return 3 * (encoder + memory + decoder + tgt * 2 * d * self.vocab)

    def flops_per_tgt_token(self, lengths: Iterable[tuple[int, int]]) -> float:
        """Return what a real target token costs, its source included, over pairs of lengths."""
        pairs = list(lengths)
        return sum(self.training_flops(*pair) for pair in pairs) / sum(tgt for _, tgt in pairs)


SIZES = {
    "small": Size(256, 1024, 4, 3, vocab=8000, batch_tokens=4096),
    "base": Size(512, 2048, 8, 6, vocab=8000, batch_tokens=4096),
    "tiny": Size(128, 256, 4, 4, vocab=10_000, batch_tokens=1500),
}
# As Vaswani et al. 2017 trained them on English-German; the tiny one is to try the script.
ON_GPU = {
    "base": Size(512, 2048, 8, 6, vocab=37_000, batch_tokens=25_000),
    "big": Size(1024, 4096, 16, 6, vocab=37_000, batch_tokens=25_000),
    "tiny": SIZES["tiny"],
}


def measure_peak(num_threads: int) -> float:
    """Return the most FLOP/s of any bf16 matrix product, of several sizes, each the best of 10."""
    torch.set_num_threads(num_threads)
    best = 0.0
    for rows, inner, columns in _PRODUCTS:
        a, b = (torch.randn(shape).bfloat16() for shape in ((rows, inner), (inner, columns)))
        for _ in range(10):
            start = time.perf_counter()
            torch.mm(a, b)
            best = max(best, 2 * rows * inner * columns / (time.perf_counter() - start))
    return best
