"""Lines in, lines out: order, blanks, streaming, batches, devices of the real command line."""

import gzip
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from conftest import Cli
from torch import Tensor

import nmt
from nmt.config import DecodingConfig, ModelConfig, VocabConfig
from nmt.decoding.search import beam_search
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translate import Translator
from nmt.errors import UserError
from nmt.lines import normalise
from nmt.model.state import DecoderState
from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.padding import pad
from nmt.tokens.vocab import PAD, START, STOP, UNK, Vocabs, train_vocab

ODD_LINES = "ba be bi\n\n   \nko ku ma\n\u00a0\n\t\nmo mu ma"
ODD_RESULT = ["ba be bi", "", "", "ko ku ma", "", "", "mo mu ma"]


@pytest.fixture(scope="module")
def translator(copy_run: Path) -> Translator:
    return Translator.load(copy_run, precision="fp32")


@pytest.mark.parametrize("batch_size", [1, 64])
def test_blank_lines_stay_blank_and_order_is_kept(
    cli: Cli, copy_run: Path, tmp_path: Path, batch_size: int
) -> None:
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(ODD_LINES, encoding="utf-8")
    by_pipe = cli("translate", copy_run, "--batch-size", batch_size, input=ODD_LINES)
    assert by_pipe.stdout.split("\n") == [*ODD_RESULT, ""]
    cli("translate", copy_run, source, "-o", out, "--batch-size", batch_size)
    assert out.read_text(encoding="utf-8").split("\n") == [*ODD_RESULT, ""]
    with gzip.open(tmp_path / "in.txt.gz", "wb") as file:
        file.write(ODD_LINES.encode())
    zipped = cli("translate", copy_run, tmp_path / "in.txt.gz", "--batch-size", batch_size)
    assert zipped.stdout == by_pipe.stdout


def test_by_pipe_with_batch_1_a_line_comes_before_the_next_is_read(copy_run: Path) -> None:
    command = [sys.executable, "-m", "nmt", "translate", str(copy_run), "--batch-size", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for line in (b"ba be bi\n", b"\n", b"mo mu ma\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
    assert process.returncode == 0


def test_by_pipe_lines_come_out_while_others_are_still_to_be_read(copy_run: Path) -> None:
    """Eight batches are read ahead and no more, however many lines there are to come."""
    command = [sys.executable, "-m", "nmt", "translate", str(copy_run), "--batch-size", "4"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for _ in range(3):
            process.stdin.write(b"ba be bi\nmo mu ma\n" * 16)
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(32)]
            assert lines == [b"ba be bi\n", b"mo mu ma\n"] * 16
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_lines(copy_run: Path, tmp_path: Path) -> None:
    """A window of lines is held at a time, however many there are: here 256."""
    few, many = (peak_kb(copy_run, tmp_path / "in.txt", times) for times in (40, 400))
    assert many < 1.05 * few, (few, many)


def peak_kb(run: Path, source: Path, times: int) -> int:
    """Return the peak memory of translating the same 30 lines so many times."""
    source.write_text("".join(f"{line}\n" for line in random_lines()) * times, encoding="utf-8")
    command = [sys.executable, "-m", "nmt", "translate", str(run), str(source)]
    with subprocess.Popen(
        [*command, "--beam", "1", "--batch-size", "32"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


def test_to_translate_nothing_heavy_is_loaded_but_torch(copy_run: Path) -> None:
    code = (
        "import sys\n"
        "from nmt import Translator\n"
        f"print(len(Translator.load({str(copy_run)!r}).translate(['ba be'])))\n"
        "heavy = {'datasets', 'pyarrow', 'sacrebleu', 'torch._dynamo', 'nmt.training.step'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_lines_do_not_depend_on_how_many_lanes_translate_them(
    copy_run: Path,
) -> None:
    lines, before = random_lines() * 2, torch.get_num_threads()
    results = []
    for num_cores in (1, 3):
        torch.set_num_threads(num_cores)
        translator = Translator.load(copy_run, precision="fp32")
        options = DecodingConfig(beam=3, batch_size=5)
        results.append([best[0].text for best in translator.stream_n_best(lines, options, 1)])
    torch.set_num_threads(before)
    assert results[0] == results[1]


def test_line_ends_inside_a_line_are_blanks(cli: Cli, copy_run: Path) -> None:
    text = "ba\u2028be\x85bi\nko\rku\x0cma\r\nmo\x00mu\n"
    said = cli("translate", copy_run, input=text).stdout
    assert said == "ba be bi\nko ku ma\nmo mu\n"


def random_lines() -> list[str]:
    generator = torch.Generator().manual_seed(5)
    words = [consonant + vowel for consonant in "bdfgklmn" for vowel in "aeiou"]
    return [
        " ".join(words[index] for index in torch.randint(40, (length,), generator=generator))
        for length in range(1, 31)
    ]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_its_neighbours(translator: Translator, beam: int) -> None:
    """In fp32 for batches of any size and order; up to two hypotheses that score alike."""
    lines = random_lines()
    results = {}
    for batch_size in (1, 7, 30):
        options = DecodingConfig(beam=beam, batch_size=batch_size)
        results[batch_size] = list(translator.stream_n_best(lines, options, 1))
        backwards = list(translator.stream_n_best(lines[::-1], options, 1))[::-1]
        for one, other in zip(results[batch_size], backwards, strict=True):
            assert one[0].text == other[0].text or abs(one[0].score - other[0].score) < 1e-4
    for one, other in zip(results[1] * 2, results[7] + results[30], strict=True):
        assert one[0].text == other[0].text or abs(one[0].score - other[0].score) < 1e-4


def test_beam_1_is_greedy_and_beam_search_agrees_with_it(translator: Translator) -> None:
    src_ids = translator._vocabs.src.encode(random_lines())
    greedy = translator.engine.search(src_ids, DecodingConfig(beam=1))
    with torch.inference_mode():
        src_BS = pad(src_ids)
        keep_B11S = keep_real(src_BS)
        searched = beam_search(
            translator.engine._stepper.step,
            translator.engine._stepper.start(src_BS, keep_B11S),
            max_lengths_B=2 * keep_B11S.flatten(1).sum(1) + 10,
            beam=1,
            length_penalty=1.0,
            start=START,
            stop=STOP,
            banned=(UNK, START, PAD),
        )
    assert [best[0].ids for best in greedy] == [best[0].ids for best in searched]


def test_the_n_best_come_by_line_with_scores_that_fall(cli: Cli, copy_run: Path) -> None:
    said = cli(
        "translate", copy_run, "--beam", 4, "--nbest", 3, input="ba be bi\n\nko ku ma\n"
    ).stdout
    rows = [line.split("\t") for line in said.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    for number in ("1", "3"):
        scores = [float(row[1]) for row in rows if row[0] == number]
        assert scores == sorted(scores, reverse=True)
        assert len({row[2] for row in rows if row[0] == number}) == 3
    assert rows[0][2] == "ba be bi"
    refused = cli("translate", copy_run, "--beam", 2, "--nbest", 3, input="ba\n", status=2)
    assert "need a beam of at least 3" in refused.stderr


def test_the_score_of_the_best_is_its_forced_score(translator: Translator) -> None:
    [[best]] = translator.engine.search(
        [translator._vocabs.src.encode(["ba be bi"])[0]], DecodingConfig()
    )
    src_BS = torch.tensor(translator._vocabs.src.encode(["ba be bi"]))
    forced = torch.tensor([[*best.ids, STOP]])
    inputs = torch.tensor([[START, *best.ids]])
    log_probs_TV = translator.engine._stepper._model(src_BS, inputs)[0].log_softmax(-1)
    total = log_probs_TV.gather(1, forced.T).sum().item()
    assert best.score == pytest.approx(total / forced.shape[1], abs=1e-5)


def test_an_output_file_appears_only_when_it_is_whole(
    cli: Cli, copy_run: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"ba be\n" * 3 + b"caf\xe9\n")
    refused = cli("translate", copy_run, source, "-o", out, status=2)
    assert f"{source}, line 4: byte 0xe9 at position 4 is not UTF-8" in refused.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_a_translation_that_never_ends_is_cut_and_said(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = translator.engine._stepper.step

    def endless(ids_BW: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        logits_BWV, state = step(ids_BW, state)
        return logits_BWV.index_fill(2, torch.tensor([STOP]), -1e9), state

    monkeypatch.setattr(translator.engine._stepper, "step", endless)
    src_ids = translator._vocabs.src.encode(["ba be bi"])
    for beam in (1, 3):
        options = DecodingConfig(beam=beam)
        [[best]] = translator.engine.search(src_ids, options)
        assert not best.is_finished
        assert len(best.ids) == 2 * len(src_ids[0]) + 10
        with pytest.warns(UserWarning, match="line 1: the translation was cut at its length cap"):
            assert len(list(translator.stream(["ba be bi"], options))) == 1


def test_the_python_interface(copy_run: Path) -> None:
    translator = nmt.Translator.load(copy_run)
    assert translator.translate(["ba be bi", "", "ko ku ma"], beam=4) == [
        "ba be bi",
        "",
        "ko ku ma",
    ]
    with pytest.raises(UserError, match="beam and batch size must be at least 1"):
        translator.translate(["ba"], beam=0)


def test_any_bytes_a_model_may_say_are_one_valid_line(tmp_path: Path) -> None:
    """A model of random weights over byte pieces says bytes at random, line ends among them."""
    vocab = train_vocab(["a b c"] * 9, VocabConfig(size=265))
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(1, 1))
    model = Transformer(config, src_vocab=len(vocab), tgt_vocab=len(vocab)).eval()
    torch.nn.init.normal_(model.output.weight, std=3.0)
    translator = Translator(TorchEngine(model), Vocabs(vocab, vocab), DecodingConfig(beam=3))
    lines = ["\U0001f600 \u0283 \u0449 \u4f60\u597d", *("abc" * n for n in range(1, 60))]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        translations = translator.translate(lines)
    assert len(translations) == len(lines)
    for text in translations:
        assert text == normalise(text)
        assert "\n" not in text
        assert "\u2047" not in text  # the mark of an unknown piece
        assert text.encode("utf-8").decode("utf-8") == text


@pytest.mark.parametrize("beam", [1, 3])
def test_learned_positions_end_and_what_is_beyond_is_said(beam: int) -> None:
    vocab = train_vocab(["a b c"] * 9, VocabConfig(size=265))
    config = ModelConfig(
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_layers=(1, 1),
        positions="learned",
        max_positions=12,
    )
    model = Transformer(config, src_vocab=len(vocab), tgt_vocab=len(vocab)).eval()
    translator = Translator(TorchEngine(model), Vocabs(vocab, vocab), DecodingConfig(beam=beam))
    with pytest.warns(UserWarning) as caught:
        assert len(translator.translate(["a b", "a b c " * 10])) == 2
    said = [str(warning.message) for warning in caught]
    assert any("line 2: has 51 tokens, more than the 12 positions" in text for text in said)


@pytest.mark.parametrize("device", ["cuda", "mps", "cuda:7"])
def test_a_device_that_is_not_there_is_refused(cli: Cli, copy_run: Path, device: str) -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine has the device")
    refused = cli("translate", copy_run, "--device", device, input="ba\n", status=2)
    assert f'device "{device}" is not there' in refused.stderr
