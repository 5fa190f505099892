"""nmt export: writes the model of a run for CTranslate2, if it translates there as it does here."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from nmt.config import Config
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.ctranslate2_model import QUANTIZATIONS, write_model
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translate import Engine, Trained, Translator, load_trained
from nmt.errors import UserError
from nmt.evaluation.score import corpus_bleu
from nmt.lines import read_lines
from nmt.run_folder import RunFolder
from nmt.training.sealed import whole_folder

_NUM_LINES = 200
_MIN_ALIKE = 0.95
_MIN_BLEU = 80.0


class Difference(Exception):
    """What was exported translates otherwise than the run does; says how much."""


@dataclass(frozen=True)
class Parity:
    """How the translations of two engines agree."""

    beam: int
    num_lines: int
    num_alike: int
    bleu: float
    """Of the other engine's lines, with ours as the reference."""

    def describe(self) -> str:
        name = "greedy" if self.beam == 1 else f"beam {self.beam}"
        return (
            f"{name}: {self.num_alike} of {self.num_lines} lines alike, BLEU of one against the "
            f"other {self.bleu:.2f}"
        )


def export(run: RunFolder, out: Path, quantization: str, checkpoint: str = "") -> Iterator[str]:
    """Write the folder `out` and yield what to tell of it; it appears only if it translates alike.

    Raises Difference where it does not, and UserError where it cannot be made.
    """
    if quantization not in QUANTIZATIONS:
        known = " or ".join(QUANTIZATIONS)
        raise UserError(f'quantization "{quantization}" is not known; take {known}.')
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UserError(f"{out}: is there already; give another folder, or delete this one.")
    config = run.load_config()
    trained = load_trained(run, checkpoint)
    with whole_folder(out) as partial:
        write_model(trained.model, trained.vocabs, partial, quantization)
        for side, vocab in zip(("src", "tgt"), trained.vocabs, strict=True):
            vocab.save(RunFolder(partial).vocab_file(side, is_separate=config.vocab.separate))
        for parity in _compare(run, config, trained, partial):
            yield parity.describe()
            _judge(parity, quantization)
    yield f"{out}: {trained.checkpoint}, quantization {quantization}"


def _compare(run: RunFolder, config: Config, trained: Trained, folder: Path) -> Iterator[Parity]:
    """Translate dev lines by our own search and by the model in a folder, greedy and by beam."""
    lines = list(islice(read_lines(run.lines_file("dev", "src")), _NUM_LINES))
    ours: Engine = TorchEngine(trained.model)
    theirs = CTranslate2Engine(folder, trained.vocabs, trained.model.max_positions)
    for beam in sorted({1, config.decoding.beam}):
        texts = []
        for engine in (ours, theirs):
            translator = Translator(engine, trained.vocabs, config.decoding)
            options = translator.options(beam, None, None)
            # Not by `stream`, which warns of each line that reached its length cap.
            texts.append([best[0].text for best in translator.stream_n_best(lines, options, 1)])
        num_alike = sum(one == other for one, other in zip(*texts, strict=True))
        bleu = corpus_bleu(texts[1], [texts[0]], tgt_lang=config.tgt)
        yield Parity(beam, len(lines), num_alike, bleu)


def _judge(parity: Parity, quantization: str) -> None:
    if quantization == "none":
        is_alike = parity.num_alike >= _MIN_ALIKE * parity.num_lines
        expected = f"{_MIN_ALIKE:.0%} of the lines alike"
    else:
        is_alike, expected = parity.bleu >= _MIN_BLEU, f"a BLEU of {_MIN_BLEU:.0f}"
    if not is_alike:
        raise Difference(
            f"the exported model translates otherwise than the run ({parity.describe()}); "
            f"expected at least {expected}, so nothing was written."
        )
