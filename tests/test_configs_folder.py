"""Every config in configs/ loads, is short, and begins with what it trains."""

from pathlib import Path

import pytest

from nmt.config import load_config

FOLDER = Path(__file__).resolve().parent.parent / "configs"
CONFIGS = sorted(FOLDER.iterdir())


def test_there_are_configs() -> None:
    assert CONFIGS
    assert [path for path in CONFIGS if path.suffix != ".yaml"] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_loads_and_names_corpora_of_the_catalogue(path: Path) -> None:
    config = load_config(path)
    specs = [*config.data.train, *config.data.dev, *config.data.test]
    assert config.data.test
    assert all(spec.name for spec in specs)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_is_short_and_begins_with_a_comment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("# ")
