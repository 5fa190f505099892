"""Which changes of the config a run may go on under."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config import Config, CorpusSpec, DataConfig, TrainingConfig, flatten, load_config
from nmt.errors import UserError
from nmt.strict_yaml import FilePath
from nmt.training.resume import check_resume

OLD = Config(src="en", tgt="de", data=DataConfig((CorpusSpec(name="a"),), (CorpusSpec(name="b"),)))
Changed = Callable[..., Config]
HARMLESS = {
    "training.max_steps": "7",
    "training.max_epochs": "7",
    "training.max_minutes": "7",
    "training.patience": "7",
    "training.log_every": "7",
    "training.save_every": "7",
    "training.keep": "7",
    "training.keep_best": "7",
    "training.keep_every": "7",
    "training.tensorboard": "true",
    "training.device": "cuda",
    "training.device_tokens": "7",
    "training.rank_timeout_minutes": "7",
    "decoding.beam": "7",
    "decoding.length_penalty": "7",
    "decoding.batch_size": "7",
}


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """Read OLD with overrides, through the real YAML."""
    file = tmp_path / "config.yaml"
    file.write_text("src: en\ntgt: de\ndata: {train: [a], dev: [b]}\n")

    def read(*overrides: str) -> Config:
        return load_config(file, overrides)

    return read


def test_what_did_not_change_passes(changed: Changed) -> None:
    assert check_resume(OLD, changed(), "runs/a") == []


@pytest.mark.parametrize(("key", "value"), HARMLESS.items())
def test_a_harmless_key_passes_in_silence(changed: Changed, key: str, value: str) -> None:
    new = changed(f"{key}={value}")
    assert new != OLD
    assert check_resume(OLD, new, "runs/a") == []


def test_every_other_key_is_refused_with_both_values() -> None:
    """Told by the flat keys themselves, so that a new key is refused until it is known harmless."""
    for section in ("training", "model", "vocab", "clean", "data"):
        part = getattr(OLD, section)
        for name, value in vars(part).items():
            key = f"{section}.{name}"
            if key in HARMLESS:
                continue
            new = replace(OLD, **{section: replace(part, **{name: "other"})})
            with pytest.raises(UserError) as caught:
                check_resume(OLD, new, "runs/a")
            shown = flatten(OLD)[key] if value != "" else '""'
            change = f"with another config: {key} was {shown}, is other. Set"
            assert change in str(caught.value)


def test_learning_rate_width_and_log_interval(changed: Changed) -> None:
    """Refused unless overridden; refused; accepted."""
    rate = changed("training.lr=0.002")
    with pytest.raises(UserError) as caught:
        check_resume(OLD, rate, "runs/a")
    assert str(caught.value) == (
        "runs/a: has checkpoints made with another config: training.lr was 0.0007, is 0.002. Set "
        "these back, go on all the same with --override training.lr, or give another folder with "
        "--run."
    )
    said = check_resume(OLD, rate, "runs/a", ["training.lr"])
    assert said == ["training.lr was 0.0007, is 0.002, as --override says"]
    wide = changed("model.d_model=256", "training.lr=0.002")
    for override in ([], ["training.lr"], ["model.d_model"], ["model.d_model", "training.lr"]):
        with pytest.raises(UserError, match="model.d_model was 512, is 256") as caught:
            check_resume(OLD, wide, "runs/a", override)
        assert str(caught.value).endswith("Set these back, or give another folder with --run.")
        said_so = "No --override admits model.d_model: the data" in str(caught.value)
        assert said_so == ("model.d_model" in override)
    assert check_resume(OLD, changed("training.log_every=7"), "runs/a") == []


def test_one_override_admits_its_own_key_only(changed: Changed) -> None:
    new = changed("training.lr=0.002", "training.seed=2", "model.dropout=0.3")
    with pytest.raises(UserError, match="config: training.seed was 1, is 2. Set"):
        check_resume(OLD, new, "runs/a", ["training.lr", "model.dropout"])
    keys = ["training.lr", "model.dropout", "training.seed"]
    assert check_resume(OLD, new, "runs/a", keys) == [
        "model.dropout was 0.1, is 0.3, as --override says",
        "training.lr was 0.0007, is 0.002, as --override says",
        "training.seed was 1, is 2, as --override says",
    ]


@pytest.mark.parametrize(
    "override",
    [
        "src=fr",
        "data.train=[c]",
        "clean.max_tokens=9",
        "vocab.size=9",
        "model.tie=none",
        "training.best_by=loss",
    ],
)
def test_what_would_not_fit_cannot_be_overridden(changed: Changed, override: str) -> None:
    key = override.partition("=")[0]
    with pytest.raises(UserError, match=f"No --override admits {key}: the data"):
        check_resume(OLD, changed(override), "runs/a", [key])


def test_the_run_that_it_began_with_cannot_be_overridden() -> None:
    new = replace(OLD, training=TrainingConfig(init_from=FilePath("runs/other")))
    with pytest.raises(UserError, match='training.init_from was "", is runs/other'):
        check_resume(OLD, new, "runs/a", ["training.init_from"])


def test_an_override_of_no_key_names_the_nearest_and_one_of_no_change_is_fine(
    changed: Changed,
) -> None:
    with pytest.raises(UserError, match='--override training.lrr: .*the nearest is "training.lr"'):
        check_resume(OLD, changed(), "runs/a", ["training.lrr"])
    assert check_resume(OLD, changed(), "runs/a", ["training.lr", "model.d_model"]) == []
