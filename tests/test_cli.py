"""The command line starts fast, and what a user did wrong is one sentence and exit status 2."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import Cli
from prepared import write_small

import nmt
from nmt.data.sources.catalogue import CATALOGUE

HEAVY = ["torch", "datasets", "sentencepiece", "pyarrow", "numpy", "sacrebleu"]


def loaded_by(code: str) -> list[str]:
    """Return which of the heavy packages a fresh Python has loaded after some code."""
    code = f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def running(*arguments: str) -> str:
    return (
        "import contextlib, sys, nmt.cli\n"
        f"sys.argv = {['nmt', *arguments]}\n"
        "with contextlib.suppress(SystemExit):\n"
        "    nmt.cli.main()"
    )


@pytest.mark.parametrize("code", ["import nmt", "import nmt.cli", "import nmt.config"])
def test_imports_that_load_nothing_heavy(code: str) -> None:
    assert loaded_by(code) == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["corpora"], ["train", "--help"]])
def test_commands_that_load_nothing_heavy(arguments: list[str]) -> None:
    assert loaded_by(running(*arguments)) == []


def test_the_translator_loads_torch_when_it_is_asked_for() -> None:
    assert "torch" in loaded_by("from nmt import Translator\nassert Translator.load")


def test_nmt_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="module nmt has no attribute 'Transaltor'"):
        nmt.Transaltor  # noqa: B018


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"nmt {version('nmt')}\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command(cli: Cli, option: str) -> None:
    said = cli(option).stdout
    for command in ("prepare", "train", "translate", "eval", "corpora"):
        assert f" {command} " in said


def test_corpora_says_name_licence_and_size_of_each(cli: Cli) -> None:
    said = cli("corpora").stdout
    for entry in CATALOGUE:
        assert f"{entry.name} (" in said
        assert f"licence: {entry.licence}\n" in said
    assert "multi30k (cs, de, en, fr): 2.6 MB, licence: for research" in said
    assert "splits: train, val, test_2016_flickr" in said


def test_corpora_leave_no_gap_for_what_is_not_known(cli: Cli) -> None:
    for line in cli("corpora").stdout.splitlines():
        assert ", ," not in line
        assert line == line.rstrip()


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        (
            "prepare",
            "training: {lable_smoothing: 0.1}",
            'unknown key "training.lable_smoothing"; the nearest is "label_smoothing".',
        ),
        (
            "train",
            'training:\n  batch_tokens: "4k"',
            'training.batch_tokens expects a whole number, found "4k".',
        ),
    ],
)
def test_a_wrong_key_is_named_with_its_line(
    cli: Cli, tmp_path: Path, command: str, text: str, message: str
) -> None:
    config = tmp_path / "wrong.yaml"
    config.write_text(f"src: en\ntgt: de\n\n{text}\n")
    done = cli(command, config, status=2, cwd=tmp_path)
    line = 4 + text.count("\n")
    assert done.stderr == f"error: {config}, line {line}: {message}\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "x.yaml", "--sett", "a=1"], "No such option"),
        (["prepare"], "Missing argument 'CONFIG'"),
        (["prepair", "x.yaml"], "No such command 'prepair'"),
        (["translate", "run", "--beam", "0"], "Invalid value for '--beam'"),
        (["eval", "--beam", "x"], "Invalid value for '--beam'"),
    ],
)
def test_a_wrong_option_ends_with_status_2(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli(*arguments, status=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepare", "none.yaml"], "none.yaml: cannot read this config"),
        (["eval"], "nmt eval takes either RUN, or --hyp FILE with --ref FILE."),
        (["eval", "--hyp", "h.txt"], "nmt eval takes either RUN, or --hyp FILE with --ref FILE."),
        (["eval", "--hyp", "h", "--ref", "r"], "r: cannot be read (No such file or directory)"),
    ],
)
def test_a_users_mistake_is_one_line(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = cli(*arguments, status=2, cwd=tmp_path)
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_the_run_folder_is_named_for_the_config(cli: Cli, tmp_path: Path) -> None:
    write_small(tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    # The corpora of the config lie beside it; those of --set in the current folder.
    override = "data.test=[{src: ../dev.en, tgt: ../dev.de}]"
    done = cli("prepare", "../small.yaml", "--set", override, cwd=here)
    assert (here / "runs/small/data/train.arrow").exists()
    assert (here / "runs/small/data/test.dev.de.src").exists()
    assert "60 pairs, 60 kept" in done.stdout
    assert done.stderr == ""


def test_a_reader_who_has_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m nmt corpora | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("captions")
    assert done.stderr == ""


def test_a_run_folder_that_cannot_be_made_is_one_line(cli: Cli, tmp_path: Path) -> None:
    config = write_small(tmp_path)
    done = cli("prepare", config, "--run", config, status=2)
    assert done.stderr.count("\n") == 1
