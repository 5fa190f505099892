"""CTranslate2 finds what our own search finds, and keeps what nmt translate promises."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import Cli

from nmt.config import DecodingConfig, ModelConfig, VocabConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.ctranslate2_model import MAX_POSITIONS
from nmt.decoding.search import Hypothesis
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translate import Translator
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.tokens.vocab import PAD, START, STOP, UNK, Vocab, Vocabs, train_vocab

CONFIG = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(2, 1), tie="all")
ENGINE = ["--engine", "ctranslate2"]
VARIANTS = {
    "post, one matrix": {},
    "pre, decoder's two": {"norm": "pre", "tie": "decoder"},
    "post, none, other vocabularies": {"tie": "none"},
    "pre, learned": {"norm": "pre", "positions": "learned", "max_positions": 40},
    "post, learned, none": {"tie": "none", "positions": "learned", "max_positions": 40},
}


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return made_vocab("a b c d e ab bc cd de ea", 25)


@pytest.fixture(scope="module")
def other_vocab() -> Vocab:
    return made_vocab("v w x y z vw wx xy yz zv vwx wxy xyz", 30)


def made_vocab(text: str, size: int) -> Vocab:
    return train_vocab([text] * 9, VocabConfig(type="bpe", size=size, byte_fallback=False))


def random_model(config: ModelConfig, vocabs: Vocabs) -> Transformer:
    """A model of random weights that is sure of what it says, and says the stop token often.

    The banned pieces have next to no probability: CTranslate2 gives their share to the others.
    """
    torch.manual_seed(1)
    model = Transformer(config, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
        for matrix in (model.tgt_embedding.weight, model.output.weight):
            matrix.copy_(torch.randn_like(matrix))
            matrix[:, 0] = 0
            matrix[[UNK, START, PAD], 0] = -3
        bias = last_bias(model)
        bias += 3 * torch.nn.functional.normalize(model.output.weight[STOP], dim=0)
        bias[0] += 10
    return model


def last_bias(model: Transformer) -> torch.Tensor:
    """What is added to the decoder's output last."""
    norms = [module for module in model.decoder.modules() if isinstance(module, torch.nn.LayerNorm)]
    return (model.decoder_norm if model.config.norm == "pre" else norms[-1]).bias


def sentences(vocab: Vocab) -> list[list[int]]:
    generator = torch.Generator().manual_seed(7)
    lengths = torch.randint(1, 9, (24,), generator=generator)
    texts = [torch.randint(5, (int(length),), generator=generator) for length in lengths]
    return vocab.encode([" ".join("abcde"[letter] for letter in text) for text in texts])


def searched(
    engine: TorchEngine | CTranslate2Engine,
    src_ids: list[list[int]],
    options: DecodingConfig,
    num_best: int,
) -> list[list[Hypothesis]]:
    longest_first = sorted(range(len(src_ids)), key=lambda row: -len(src_ids[row]))
    batch = [src_ids[row] for row in longest_first]
    [found] = engine.search_batches([batch], options, num_best)
    by_row = dict(zip(longest_first, found, strict=True))
    return [by_row[row] for row in range(len(src_ids))]


@pytest.mark.parametrize("options", [(1, 1.0), (4, 1.0), (4, 0.0), (3, 0.6)], ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_finds_what_our_search_finds(
    variant: str, options: tuple[int, float], vocab: Vocab, other_vocab: Vocab
) -> None:
    config = replace(CONFIG, **VARIANTS[variant])  # type: ignore[arg-type]
    vocabs = Vocabs(vocab, other_vocab if config.tie == "none" else vocab)
    model = random_model(config, vocabs)
    beam, length_penalty = options
    decoding = DecodingConfig(beam=beam, length_penalty=length_penalty)
    src_ids = sentences(vocab)
    ours = searched(TorchEngine(model), src_ids, decoding, beam)
    engine = CTranslate2Engine.convert(model, vocabs, "cpu", "fp32")
    theirs = searched(engine, src_ids, decoding, beam)
    for one, other in zip(ours, theirs, strict=True):
        # At a cap our search keeps more of what was cut.
        num_finished = sum(hypothesis.is_finished for hypothesis in one)
        for mine, its in zip(one[: num_finished or 1], other, strict=False):
            assert (its.ids, its.is_finished) == (mine.ids, mine.is_finished)
            assert its.score == pytest.approx(mine.score, rel=1e-3, abs=1e-3)
        assert len(other) >= num_finished
    assert any(best[0].is_finished for best in ours)


@pytest.mark.parametrize("beam", [1, 4])
def test_each_sentence_is_cut_at_its_own_cap_and_it_is_said(beam: int, vocab: Vocab) -> None:
    vocabs = Vocabs(vocab, vocab)
    model = random_model(replace(CONFIG, tie="none"), vocabs)
    with torch.no_grad():
        model.output.weight[STOP] = 0  # so that nothing ends
    engine = CTranslate2Engine.convert(model, vocabs, "cpu", "fp32")
    options = DecodingConfig(beam=beam)
    src_ids = sentences(vocab)
    for ids, best in zip(src_ids, searched(engine, src_ids, options, 1), strict=True):
        assert not best[0].is_finished
        assert len(best[0].ids) == 2 * len(ids) + 10
    translator = Translator(engine, vocabs, options)
    with pytest.warns(UserWarning, match="line 2: the translation was cut at its length cap"):
        assert len(list(translator.stream(["", "a b"], options))) == 2


@pytest.mark.parametrize("beam", [1, 4])
def test_what_is_banned_is_never_said(beam: int, vocab: Vocab) -> None:
    vocabs = Vocabs(vocab, vocab)
    model = random_model(replace(CONFIG, tie="none", norm="pre"), vocabs)
    with torch.no_grad():
        model.decoder_norm.bias.fill_(3.0)  # type: ignore[union-attr, operator]
        model.output.weight[[UNK, START, PAD]] = 3.0
    src_ids = sentences(vocab)
    options = DecodingConfig(beam=beam)
    logits_11V = model(torch.tensor(src_ids[:1]), torch.tensor([[START]]))
    assert logits_11V.argmax().item() in (UNK, START, PAD)
    engine = CTranslate2Engine.convert(model, vocabs, "cpu", "fp32")
    for pool in searched(engine, src_ids, options, beam):
        for hypothesis in pool:
            assert not {UNK, START, STOP, PAD} & set(hypothesis.ids)


def test_positions_end_and_what_is_beyond_is_said(vocab: Vocab) -> None:
    vocabs = Vocabs(vocab, vocab)
    learned = replace(CONFIG, positions="learned", max_positions=12)
    for config, limit in ((learned, 12), (CONFIG, MAX_POSITIONS)):
        model = random_model(config, vocabs)
        engine = CTranslate2Engine.convert(model, vocabs, "cpu", "fp32")
        translator = Translator(engine, vocabs, DecodingConfig(beam=1))
        long = "a b c " * limit
        with pytest.warns(UserWarning) as caught:
            assert len(translator.translate(["a b", long])) == 2
        said = [str(warning.message) for warning in caught]
        assert any(f"more than the {limit} positions" in text for text in said)
        [[best]] = searched(engine, [[5] * (limit - 1) + [STOP]], DecodingConfig(beam=1), 1)
        assert len(best.ids) <= limit


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_translation_does_not_depend_on_its_neighbours(precision: str, vocab: Vocab) -> None:
    vocabs = Vocabs(vocab, vocab)
    engine = CTranslate2Engine.convert(random_model(CONFIG, vocabs), vocabs, "cpu", precision)
    src_ids = sentences(vocab)
    options = DecodingConfig(beam=4)
    # More than int8 takes at once.
    together = [best[0].ids for best in searched(engine, src_ids * 6, options, 1)]
    alone = [searched(engine, [ids], options, 1)[0][0].ids for ids in src_ids]
    assert together == alone * 6


def test_without_the_extra_its_command_is_named(
    copy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as if not installed
    with pytest.raises(UserError, match=r"install it with `pip install 'nmt\[ctranslate2\]'`"):
        Translator.load(copy_run, engine="ctranslate2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "onnx"], 'engine "onnx" is not known; take torch or ctranslate2.'),
        ([*ENGINE, "--device", "cuda"], "--engine ctranslate2 runs on the CPU; take --device cpu"),
        ([*ENGINE, "--precision", "bf16"], "not known to --engine ctranslate2; take auto, fp32 or"),
        (["--precision", "int8"], 'precision "int8" is not known; take auto, bf16, tf32'),
    ],
)
def test_a_wrong_option_is_a_sentence(
    cli: Cli, copy_run: Path, options: list[str], message: str
) -> None:
    refused = cli("translate", copy_run, *options, input="ba\n", status=2)
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_lines_keep_their_places_and_the_n_best_are_those_of_our_search(
    cli: Cli, copy_run: Path
) -> None:
    text = "ba be bi\n\n   \nko\u2028ku\x00\n\u00a0\nmo mu ma"
    ours = cli("translate", copy_run, "--precision", "fp32", input=text).stdout
    for precision in ("fp32", "int8"):
        said = cli("translate", copy_run, *ENGINE, "--precision", precision, input=text).stdout
        assert [number for number, line in enumerate(said.split("\n")) if line] == [0, 3, 5]
        assert said.count("\n") == 6
        assert precision == "int8" or said == ours
    n_best = [copy_run, "--beam", 4, "--nbest", 3, "--precision", "fp32"]
    ours, theirs = (
        [
            row.split("\t")
            for row in cli("translate", *n_best, *with_, input=text).stdout.split("\n")
        ]
        for with_ in ([], ENGINE)
    )
    assert len(theirs) == 3 + 1 + 1 + 3 + 1 + 3 + 1
    for one, other in zip(ours[:-1], theirs[:-1], strict=True):
        assert (one[0], one[2]) == (other[0], other[2])
        # Of 60 pieces the banned three have half a percent of the probability (see `_translate`).
        assert float(one[1]) == pytest.approx(float(other[1]), abs=0.02)


def test_by_pipe_with_batch_1_a_line_comes_before_the_next_is_read(copy_run: Path) -> None:
    command = [sys.executable, "-m", "nmt", "translate", str(copy_run), "--batch-size", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*command, *ENGINE], **pipes) as process:  # type: ignore[call-overload]
        for line in (b"ba be bi\n", b"\n", b"mo mu ma\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
    assert process.returncode == 0


def test_scores_say_which_engine_they_are_of(cli: Cli, copy_run: Path) -> None:
    scored = json.loads(cli("eval", copy_run, *ENGINE, "--precision", "int8", "--json").stdout)
    assert scored[0]["bleu"] > 95
    assert "int8" in scored[0]["precision"]
    assert scored[0]["precision"].endswith("by ctranslate2")
