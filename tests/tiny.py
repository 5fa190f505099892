"""Tiny tasks for tests: made-up words to be copied or reversed by a model of 45,000 weights."""

import random
from collections.abc import Callable
from pathlib import Path

CONFIG = """\
# {task} of made-up words, seconds on one core.
src: xa
tgt: xb
data:
  train: [{{src: train.src, tgt: train.tgt}}]
  dev: [{{src: dev.src, tgt: dev.tgt}}]
  test: [{{src: test.src, tgt: test.tgt}}]
clean: {{drop_copies: false}}
vocab: {{size: 60, byte_fallback: false}}
model: {{d_model: 32, d_ff: 64, num_heads: 2, num_layers: 2, dropout: 0.0}}
training:
  batch_tokens: 1000
  lr: 0.006
  warmup_steps: 100
  max_steps: 800
  validate_every: 400
  save_every: 400
decoding: {{beam: 1}}
"""
SIZES = {"train": 3000, "dev": 50, "test": 100}


def copy(words: list[str]) -> list[str]:
    return words


def reverse(words: list[str]) -> list[str]:
    return words[::-1]


def write_task(
    folder: Path, task: Callable[[list[str]], list[str]], sizes: dict[str, int] = SIZES
) -> Path:
    """Write the text files of a task and a config that trains it, and return the config."""
    rng = random.Random(3)
    words = [consonant + vowel for consonant in "bdfgklmn" for vowel in "aeiou"]
    for split, size in sizes.items():
        rows = [rng.choices(words, k=rng.randint(3, 9)) for _ in range(size)]
        for side, change in (("src", copy), ("tgt", task)):
            text = "".join(f"{' '.join(change(row))}\n" for row in rows)
            (folder / f"{split}.{side}").write_text(text, encoding="utf-8")
    config = folder / f"{task.__name__}.yaml"
    config.write_text(CONFIG.format(task=task.__name__), encoding="utf-8")
    return config
