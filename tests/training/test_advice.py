"""Advice: none where a config follows the paper, and a sentence with numbers where it does not."""

import math
from pathlib import Path

import pytest

from nmt.config import Config, load_config
from nmt.training.advice import Outlook, advise

CONFIGS = Path(__file__).parents[2] / "configs"
BASE = CONFIGS / "wmt14.en-de.base.yaml"
SMALL_UPDATES = ("training.batch_tokens=3000", "training.lr=0.00024")
SHORT = ("training.warmup_steps=1000",)


def outlook(config: Config, num_pairs: int = 4_500_000, num_updates: float = 100_000) -> Outlook:
    return Outlook(config, num_pairs, num_pairs * 30 // config.training.batch_tokens, num_updates)


def advice_on(*overrides: str, num_pairs: int = 4_500_000, num_updates: float = 100_000) -> str:
    """Return the one advice on the paper's base model with some keys changed."""
    config = load_config(BASE, overrides)
    [advice] = advise(outlook(config, num_pairs, num_updates))
    return advice


# Pairs and updates as measured, or published.
@pytest.mark.parametrize(
    ("name", "num_pairs", "num_updates"),
    [
        ("wmt14.en-de.base", 4_500_000, 100_000),
        ("wmt14.en-de.big", 4_500_000, 300_000),
        ("wmt14.en-fr.base", 36_000_000, 100_000),
        ("multi30k.en-de", 29_000, 3_400),
        ("multi30k.en-fr", 29_000, 3_400),
        ("tatoeba.en-de", 167_000, 6_000),
        ("demo", 20_000, 1_000),
    ],
)
def test_our_own_configs_need_no_advice(name: str, num_pairs: int, num_updates: int) -> None:
    config = load_config(CONFIGS / f"{name}.yaml")
    assert [*advise(outlook(config, num_pairs, num_updates))] == []


@pytest.mark.parametrize(
    ("overrides", "numbers"),
    [
        (["training.lr=0.0021"], "training.lr is 0.0021, 3.0 times"),
        (["training.lr=0.0001"], "training.lr is 0.0001, 7 times below 0.0007"),
        (
            ["model.d_model=256", "training.batch_tokens=2000", "training.lr=0.0014"],
            "training.lr is 0.0014 with batches of 2,000 tokens, 5.0 times 0.00028",
        ),
        (["training.warmup_steps=60000", "training.lr=0.00018"], "training ends after 100,000"),
        (["training.warmup_steps=500", "training.lr=0.002"], "warm-up of 500 updates, not"),
        (["model.num_layers=[20, 6]"], "model.norm is post, with 20 layers"),
        (SMALL_UPDATES, "training.batch_tokens is 3,000, 8 times less"),
        (["training.validate_every=200000"], "the model is validated once"),
        (
            ["training.validate_every=200000", "training.save_every=200000"],
            "validated and saved once, at the end; 20,000 would",
        ),
        (["training.label_smoothing=0"], "training.label_smoothing is 0, in the paper 0.1"),
        (["training.label_smoothing=0.3"], "training.label_smoothing is 0.3"),
        (["model.dropout=0"], "0 gave 24.6"),
        (
            ["model.d_model=1024", "training.lr=0.0005"],
            "model.dropout is 0.1 with d_model 1024 and 4,500,000 pairs",
        ),
    ],
)
def test_what_disagrees_with_the_paper_is_said_in_one_sentence(
    overrides: list[str], numbers: str
) -> None:
    advice = advice_on(*overrides)
    assert numbers in advice
    assert advice.endswith(".")
    assert "\n" not in advice


def test_the_length_of_a_training_is_judged_by_the_data() -> None:
    assert "see 56% of the 4,500,000 pairs" in advice_on(*SHORT, num_updates=3000)
    assert "are 1,010 epochs of 83,333 pairs" in advice_on(num_pairs=83_333)
    patient = load_config(BASE, ["training.patience=10"])
    assert [*advise(outlook(patient, num_pairs=83_333))] == []
    assert "no end" in advice_on(num_updates=math.inf)
    assert [*advise(outlook(patient, num_updates=math.inf))] == []


def test_pre_norm_may_be_deep_and_fine_tuning_slow() -> None:
    for overrides in (
        ["model.norm=pre", "model.num_layers=[20, 6]"],
        ["model.norm=pre", "training.warmup_steps=500"],
        ["training.init_from=runs/other", "training.lr=0.00001"],
    ):
        config = load_config(BASE, overrides)
        assert [*advise(outlook(config))] == []
