"""nmt export writes a folder that CTranslate2 reads alone, after both engines said the same."""

import re
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
from conftest import Cli

import nmt.cli
import nmt.export
from nmt.decoding.ctranslate2_model import write_model
from nmt.export import Difference, export
from nmt.model.transformer import Transformer
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import load_vocab


@pytest.mark.parametrize("quantization", ["none", "int8"])
def test_an_export_is_compared_and_can_be_used_without_nmt(
    cli: Cli, copy_run: Path, tmp_path: Path, quantization: str
) -> None:
    out = tmp_path / "exported"
    options = ["--format", "ctranslate2", "--quantization", quantization]
    said = cli("export", copy_run, out, *options).stdout.splitlines()
    found = re.fullmatch(r"greedy: (\d+) of 50 lines alike, BLEU of .* other (\d+\.\d\d)", said[0])
    assert found
    if quantization == "none":
        assert found.groups() == ("50", "100.00")
    assert said[1] == f"{out}: step-000800, quantization {quantization}"
    assert [path.name for path in tmp_path.iterdir()] == ["exported"]
    vocab = load_vocab(out / "vocab.model")
    translator = ctranslate2.Translator(str(out))
    assert ("int8" in translator.compute_type) == (quantization == "int8")
    [result] = translator.translate_batch([vocab.pieces(vocab.encode(["ba be bi"])[0][:-1])])
    assert "".join(result.hypotheses[0]).replace("▁", " ").strip() == "ba be bi"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "onnx"], 'format "onnx" is not known; take ctranslate2.'),
        (["--quantization", "int4"], 'quantization "int4" is not known; take none or int8.'),
        ([], "exported: is there already; give another folder, or delete this one."),
    ],
)
def test_a_wrong_option_is_a_sentence(
    cli: Cli, copy_run: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    there = tmp_path / "exported"
    there.mkdir()
    (there / "notes").touch()
    refused = cli("export", copy_run, there, *options, status=2)
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert [path.name for path in there.iterdir()] == ["notes"]


@pytest.mark.parametrize(
    ("quantization", "expected"), [("none", "95% of the lines"), ("int8", "a BLEU of 80")]
)
def test_what_translates_otherwise_is_not_written(
    copy_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quantization: str,
    expected: str,
) -> None:
    def write_wrongly(model: Transformer, *rest: Any) -> None:
        weight = model.output.weight.data
        right = weight.clone()
        weight[5:] = weight[5:].roll(1, dims=0)
        write_model(model, *rest)
        weight.copy_(right)

    monkeypatch.setattr(nmt.export, "write_model", write_wrongly)
    lines = export(RunFolder(copy_run), tmp_path / "exported", quantization)
    assert "of 50 lines alike" in next(lines)
    with pytest.raises(Difference, match=f"expected at least {expected}"):
        next(lines)
    assert list(tmp_path.iterdir()) == []


def test_a_difference_ends_with_status_1(
    copy_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(nmt.export, "_MIN_ALIKE", 1.1)  # more than there can be
    monkeypatch.setattr("sys.argv", ["nmt", "export", str(copy_run), str(tmp_path / "exported")])
    with pytest.raises(SystemExit) as ended:
        nmt.cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert said.out.startswith("greedy: 50 of 50 lines alike")
    assert said.err.startswith(f"error: {tmp_path / 'exported'}: the exported model translates")
    assert said.err.count("\n") == 1
