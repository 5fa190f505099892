"""What a person sees: a bar on a terminal alone, the start-up table, and validations."""

import math
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny import copy, write_task

from nmt.training.display import (
    describe_update,
    describe_validation,
    duration,
    progress_bar,
    table,
)
from nmt.training.step import UpdateResult
from nmt.training.validation import DevResult, Translations

SMALL = {"train": 120, "dev": 5, "test": 5}
RESULT = UpdateResult(loss=460.0, nll=200.0, num_tokens=100, grad_norm=1.234, lr=0.001)


class Terminal:
    """A terminal of our own, and what was written to it."""

    def __init__(self, width: int) -> None:
        self._reader, self.writer = pty.openpty()
        termios.tcsetwinsize(self.writer, (24, width))

    def close(self) -> str:
        os.close(self.writer)
        said = b""
        while True:
            try:
                part = os.read(self._reader, 65536)
            except OSError:  # Linux: the other side is closed
                part = b""
            if not part:
                os.close(self._reader)
                return said.decode()
            said += part


def draw(monkeypatch: pytest.MonkeyPatch, total: float, *, is_shown: bool, width: int = 100) -> str:
    """Return what a bar writes to a terminal in one update."""
    terminal = Terminal(width)
    with os.fdopen(os.dup(terminal.writer), "w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        draw_on_stderr(total, is_shown=is_shown)
    return terminal.close()


def draw_on_stderr(total: float, *, is_shown: bool) -> None:
    with progress_bar(total, 6, is_shown=is_shown) as bar:
        bar.set_postfix_str(describe_update(RESULT, 1234.5, 3661), refresh=False)
        bar.update()
        bar.refresh()


def test_the_bar_says_all_that_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    said = draw(monkeypatch, 10, is_shown=True)
    assert "70% " in said
    assert "7/10, 1:01:01 left, loss 4.600, ppl 7.4, 1,234 tokens/s, grad norm 1.23" in said


def test_the_bar_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that wraps cannot be drawn over, and the screen fills."""
    said = draw(monkeypatch, 10, is_shown=True, width=60)
    assert "7/10, 1:01:01 left, loss 4.600" in said
    assert max(map(len, re.split(r"[\r\n]+", said))) <= 60


def test_a_training_without_end_has_a_bar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "7/?, 1:01:01 left" in draw(monkeypatch, math.inf, is_shown=True)
    assert describe_update(RESULT, 1234.5, math.inf).startswith("no end, loss 4.600")


def test_other_ranks_draw_nothing_on_the_same_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draw(monkeypatch, 10, is_shown=False) == ""


def test_an_update_that_was_skipped_says_why() -> None:
    result = UpdateResult(math.nan, math.nan, 0, math.nan, 0.001, "rank 1 ran out of memory")
    assert describe_update(result, 0.0, 60.0) == "rank 1 ran out of memory, skipped"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """What two ranks that train together on a terminal write: standard output, and the terminal."""
    folder = tmp_path_factory.mktemp("display")
    config = write_task(folder, copy, SMALL)
    keys = ["training.max_steps=40", "training.batch_tokens=300", "training.validate_every=20"]
    options = [word for key in keys for word in ("--set", key)]
    command = [sys.executable, "-m", "nmt", "train", str(config), "--run", str(folder / "run")]
    terminal = Terminal(width=100)
    done = subprocess.run(
        [*command, "--devices", "2", *options],
        stdout=subprocess.PIPE,
        stderr=terminal.writer,
        encoding="utf-8",
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    yield done.stdout, terminal.close()


def test_a_real_training_draws_one_bar(trained: tuple[str, str]) -> None:
    said = trained[1]
    assert re.search(r"0:\d\d left, loss \d\.\d{3}, ppl [\d.]+, [\d,]+ tokens/s, grad", said)
    counts = [int(count) for count in re.findall(r"(\d+)/40, ", said)]
    assert counts[-1] == 40
    assert counts == sorted(counts)  # two bars would mix


def test_a_real_training_begins_with_a_table(trained: tuple[str, str]) -> None:
    said = trained[0]
    assert re.search(r"^model +[\d,]+ parameters, on cpu in \w+, in 2 processes$", said, re.M)
    assert re.search(r"^update +300 tokens with padding; [\d,]+ of the target are real", said, re.M)
    assert re.search(r"^epoch +\d+ updates$", said, re.M)
    assert re.search(r"^training +at most 40 updates, about \d:\d\d, and validations$", said, re.M)


def test_a_real_validation_shows_three_samples(trained: tuple[str, str]) -> None:
    said = trained[1]
    for step in (20, 40):
        line = rf"update {step}: dev loss [\d.]+, perplexity [\d.]+, BLEU [\d.]+, chrF [\d.]+"
        assert re.search(line, said)
    for side in ("source", "reference", "translation"):
        assert len(re.findall(rf"  {side}: +\w", said)) == 2 * 3


def test_nothing_is_drawn_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "stderr").open("w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        draw_on_stderr(10, is_shown=True)
    assert (tmp_path / "stderr").read_text() == ""


def test_a_validation_that_contradicts_itself_warns() -> None:
    found = Translations(bleu=3.2, chrf=20.0, samples=[("a b", "c d", "d")])
    lines = [*describe_validation(DevResult(0.1, 0.97), found, 1500, 65.0, is_best=True)]
    assert lines[0] == (
        "update 1,500: dev loss 0.100, perplexity 1.11, BLEU 3.20, chrF 20.00 (best), after 1:05"
    )
    assert lines[1:4] == ["  source:      a b", "  reference:   c d", "  translation: d"]
    assert "97% of the next pieces" in lines[4]
    assert "BLEU 3.20" in lines[4]
    for accuracy, bleu in ((0.97, 60.0), (0.5, 3.2)):
        calm = describe_validation(
            DevResult(0.1, accuracy), found._replace(bleu=bleu), 1500, 65.0, is_best=False
        )
        assert not any("warning" in line for line in calm)


def test_a_table_has_two_columns() -> None:
    assert [*table({"a": "1", "long": "2"})] == ["a     1", "long  2"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01"), (math.inf, "no end")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
