"""A config that was resolved and written down is read back as the same."""

import dataclasses
import random
import typing
from pathlib import Path
from typing import Any, Literal

import pytest

from nmt.config import Config, CorpusSpec, FilePath, dump_config, flatten
from nmt.run_folder import RunFolder

ODD_TEXTS = [
    "a",
    "no",
    "1e-4",
    "null",
    "2020-01-01",
    "größe",
    "a: b",
    "#x",
    " x ",
    "é\u2028",
    "'\"",
]
SYMBOLS = ["<2de>", "no", "1e-4", "null", "2020-01-01", "größe", "a:b", "#x", ",", "'\""]


def random_value(rng: random.Random, kind: Any) -> Any:
    """Return a value of the type of a key, within the ranges that the rules allow."""
    if typing.get_origin(kind) is Literal:
        return rng.choice(typing.get_args(kind))
    if kind == tuple[int, int]:
        return (rng.randint(1, 9), rng.randint(1, 9))
    if kind == tuple[CorpusSpec, ...]:
        return tuple(random_spec(rng) for _ in range(rng.randint(1, 3)))
    if kind == tuple[str, ...]:
        return tuple(rng.sample(SYMBOLS, rng.randint(0, 4)))
    if dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind)
        return kind(**{name: random_value(rng, inner) for name, inner in types.items()})  # type: ignore[operator]
    plain: dict[Any, Any] = {
        bool: rng.random() < 0.5,
        int: rng.randint(1, 10**6),
        float: rng.choice([1e-5, 0.1, rng.random(), 10 ** -rng.uniform(1, 12)]),
        str: rng.choice(ODD_TEXTS),
        FilePath: f"/{rng.choice(ODD_TEXTS)}",
    }
    return plain[kind]


def random_spec(rng: random.Random) -> CorpusSpec:
    path = FilePath(f"/x/{rng.choice(ODD_TEXTS)}")
    weight = rng.choice([1.0, 0.5, 2.0, 1e-3])
    return rng.choice(
        [
            CorpusSpec(name=rng.choice(ODD_TEXTS), weight=weight),
            CorpusSpec(src=path, tgt=path, weight=weight),
            CorpusSpec(tsv=path),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_dumped_config_is_read_back_as_the_same(tmp_path: Path, seed: int) -> None:
    config: Config = random_value(random.Random(seed), Config)
    model = dataclasses.replace(config.model, d_model=8, num_heads=2, tie="none", dropout=0.1)
    given = {"user_symbols": ()} if seed % 2 else {"model": FilePath("")}
    vocab = dataclasses.replace(config.vocab, separate=False, **given)
    clean = dataclasses.replace(config.clean, max_ratio=2.5)
    training = config.training
    if vocab.model:
        training = dataclasses.replace(training, init_from=FilePath(""))
    config = dataclasses.replace(config, model=model, vocab=vocab, clean=clean, training=training)
    run = RunFolder(tmp_path)
    run.save_config(config)
    assert run.load_config() == config
    assert run.config_file.read_text(encoding="utf-8") == dump_config(config)


def test_the_dump_holds_every_key() -> None:
    lines = [line.strip() for line in dump_config(Config()).splitlines()]
    flat = flatten(Config())
    assert {"src", "data.train", "training.lr", "model.num_layers"} <= set(flat)
    for key in flat:
        assert any(line.startswith(f"{key.rpartition('.')[2]}:") for line in lines), key
