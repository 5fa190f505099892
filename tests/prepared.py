"""Small corpora in files, a config for them, and what preparation makes of them."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt.chain import Plan
from nmt.config import FilePath, VocabConfig, load_config
from nmt.data.sources.corpora import Sources
from nmt.prepare import Statistics, prepare
from nmt.run_folder import RunFolder
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import PAD, STOP, Vocab, train_vocab

SRC_WORDS = "ant bat cat den eel fan gnat hat inn lad mail".split()
TGT_WORDS = "lo mi na ota pel rus sal tor udo vil wen".split()

CONFIG = """\
# Made-up sentences, word by word.
src: en
tgt: de
data:
  train: [{src: train.en, tgt: train.de}]
  dev: [{src: dev.en, tgt: dev.de}]
  test: [{src: test.en, tgt: test.de}]
vocab: {type: bpe, size: 100, byte_fallback: false}
model: {d_model: 16, d_ff: 32, num_heads: 2, num_layers: 1}
training: {batch_tokens: 200, max_steps: 1}
"""

Pairs = Sequence[tuple[str, str]]


def some_pairs(num_pairs: int, seed: int) -> list[tuple[str, str]]:
    """Return random sentences and their translations, word by word."""
    rng = random.Random(seed)
    drawn = [rng.choices(range(len(SRC_WORDS)), k=rng.randint(4, 8)) for _ in range(num_pairs)]
    return [
        (" ".join(SRC_WORDS[i] for i in row), " ".join(TGT_WORDS[i] for i in row)) for row in drawn
    ]


def write_corpus(folder: Path, name: str, pairs: Pairs) -> None:
    """Write NAME.en and NAME.de."""
    for side, ending in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{ending}").write_bytes(text.encode())


def corpora(folder: Path, *names: str) -> str:
    """Return the override that trains on the corpora NAME.en, NAME.de of a folder."""
    files = (f"{{src: {folder}/{name}.en, tgt: {folder}/{name}.de}}" for name in names)
    return f"data.train=[{', '.join(files)}]"


def write_small(folder: Path, train: Pairs = ()) -> Path:
    """Write three corpora, `train` as their training pairs if given, and return the config."""
    write_corpus(folder, "train", train or some_pairs(60, seed=1))
    write_corpus(folder, "dev", some_pairs(5, seed=2))
    write_corpus(folder, "test", some_pairs(4, seed=3))
    config = folder / "small.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    return config


def write_vocab(path: Path, size: int = 350) -> FilePath:
    """Write a vocabulary with byte fallback, for corpora too small to train one."""
    text = [side for pair in some_pairs(60, seed=1) for side in pair]
    train_vocab(text, VocabConfig(type="bpe", size=size)).save(path)
    return FilePath(str(path))


def prepare_small(config: Path, *overrides: str) -> tuple[RunFolder, Statistics]:
    """Prepare in the folder `run` beside the config, in this process."""
    run = RunFolder(config.parent / "run")
    sources = Sources(config.parent / "cache")
    return run, prepare(load_config(config, overrides), run, sources, Plan(num_workers=1))


def stored_rows(run: RunFolder) -> list[tuple[int, int, str, str]]:
    """Return (corpus, line, source, target) of the training pairs, decoded."""
    store = TokenStore(run.store)
    vocab = Vocab(run.vocab_file("src", is_separate=False).read_bytes(), "small")
    rows: list[tuple[int, int, str, str]] = []
    for row in range(len(store)):
        texts = vocab.decode([stored_ids(store, side, row)[:-1] for side in ("src", "tgt")])
        rows.append((*store.origin(row), texts[0], texts[1]))
    return rows


def stored_ids(store: TokenStore, side: str, row: int) -> list[int]:
    ids: list[int] = store.gather(side, np.array([row]), PAD)[0].tolist()
    assert ids[-1] == STOP
    return ids


def ledger_rows(run: RunFolder) -> list[list[str]]:
    """Return the columns of each row of the ledger, header included."""
    return [line.split("\t") for line in run.ledger.read_text(encoding="utf-8").splitlines()]
