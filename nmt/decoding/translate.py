"""Translates lines: text in, the same number of lines out, in order."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from nmt.config import DecodingConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.search import Hypothesis
from nmt.decoding.torch_engine import TorchEngine
from nmt.device import choose_device, choose_dtype, keep_kernels
from nmt.errors import UserError
from nmt.lines import normalise
from nmt.model.blank import without_weights
from nmt.model.transformer import Transformer, compute_in
from nmt.run_folder import RunFolder
from nmt.tokens.vocab import STOP, Vocabs, load_vocabs
from nmt.training.checkpoint import find_checkpoint, load_model

# Sentences of like length are decoded together: so many batches are read ahead to find them.
_BATCHES_AHEAD = 8
# A batch holds fewer sentences where they are long, so that memory stays bounded.
_MAX_BATCH_TOKENS = 8192


class Translation(NamedTuple):
    """A translation of a line; its score is log p per token to the power of the length penalty."""

    text: str
    score: float
    is_finished: bool
    """False where the length cap came before the stop token."""


class Trained(NamedTuple):
    """What a run folder holds of a translator; the model is in fp32 and evaluation mode."""

    model: Transformer
    vocabs: Vocabs
    decoding: DecodingConfig
    checkpoint: str


class Engine(Protocol):
    """What finds translations of ids: our own search, or CTranslate2."""

    @property
    def precision(self) -> str: ...

    @property
    def max_positions(self) -> int | None:
        """How long a sequence may be; None where there is no end."""

    def search_batches(
        self, batches: Sequence[list[list[int]]], options: DecodingConfig, num_best: int
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield for each batch of sentences, longest first, the best hypotheses of each."""


class Translator:
    """A trained model that turns lines of text into lines of text."""

    def __init__(
        self, engine: Engine, vocabs: Vocabs, decoding: DecodingConfig, checkpoint: str = ""
    ) -> None:
        self.recipe = {"checkpoint": checkpoint, "precision": engine.precision}
        self.engine = engine
        self._vocabs = vocabs
        self._decoding = decoding

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        checkpoint: str = "",
        device: str = "auto",
        precision: str = "auto",
        engine: str = "torch",
    ) -> Self:
        """Load a run folder; the best checkpoint unless another is named, such as last.

        `engine` is torch or ctranslate2, which is converted to at each start.
        Raises UserError where the folder, the checkpoint or the device is not there.
        """
        if engine not in ("torch", "ctranslate2"):
            raise UserError(f'engine "{engine}" is not known; take torch or ctranslate2.')
        keep_kernels()
        trained = load_trained(RunFolder(Path(run)), checkpoint)
        found: Engine
        if engine == "ctranslate2":
            found = CTranslate2Engine.convert(trained.model, trained.vocabs, device, precision)
        else:
            place = choose_device(device)
            model = compute_in(trained.model, choose_dtype(precision, place)).to(place)
            found = TorchEngine(model)
        return cls(found, trained.vocabs, trained.decoding, trained.checkpoint)

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        batch_size: int | None = None,
    ) -> list[str]:
        """Return one translation for each line, blank for a blank one.

        What is not given is as in the run's config; beam 1 is greedy.
        """
        return list(self.stream(lines, self.options(beam, length_penalty, batch_size)))

    def options(
        self, beam: int | None, length_penalty: float | None, batch_size: int | None
    ) -> DecodingConfig:
        """Return the run's decoding options with those replaced that are given."""
        given = {"beam": beam, "length_penalty": length_penalty, "batch_size": batch_size}
        changes = {key: value for key, value in given.items() if value is not None}
        options = replace(self._decoding, **changes)  # type: ignore[arg-type]
        if options.beam < 1 or options.batch_size < 1 or options.length_penalty < 0:
            raise UserError(
                f"beam and batch size must be at least 1 and the length penalty at least 0, found "
                f"{options.beam}, {options.batch_size} and {options.length_penalty}."
            )
        return options

    def stream(self, lines: Iterable[str], options: DecodingConfig) -> Iterator[str]:
        """Yield translations as they come; lines are read a few batches ahead.

        With batch size 1, a line is translated before the next one is read.
        """
        for number, best in enumerate(self.stream_n_best(lines, options, 1), start=1):
            if not best[0].is_finished:
                warnings.warn(
                    f"line {number}: the translation was cut at its length cap of twice the "
                    f"source's tokens plus 10.",
                    stacklevel=2,
                )
            yield best[0].text

    def stream_n_best(
        self, lines: Iterable[str], options: DecodingConfig, num_best: int
    ) -> Iterator[list[Translation]]:
        """Yield for each line its best translations, best first; a blank line has one, blank."""
        if num_best > options.beam:
            raise UserError(f"{num_best} best translations need a beam of at least {num_best}.")
        ahead = options.batch_size * (_BATCHES_AHEAD if options.batch_size > 1 else 1)
        remaining = iter(lines)
        number = 1
        while chunk := list(islice(remaining, ahead)):
            src_ids = self._encode(chunk, number)
            yield from self._translate_chunk(src_ids, options, num_best)
            number += len(chunk)

    def stream_rows(
        self, lines: Iterable[str], options: DecodingConfig, num_best: int
    ) -> Iterator[str]:
        """Yield the n best as rows: line number, score and text, with tabs between."""
        for number, best in enumerate(self.stream_n_best(lines, options, num_best), start=1):
            for translation in best:
                yield f"{number}\t{translation.score:.6f}\t{translation.text}"

    def _translate_chunk(
        self, src_ids: list[list[int]], options: DecodingConfig, num_best: int
    ) -> list[list[Translation]]:
        results = [[Translation("", 0.0, True)] for _ in src_ids]
        # What is blank holds the stop token alone.
        rows = [row for row, ids in enumerate(src_ids) if len(ids) > 1]
        batches = list(_batches(rows, src_ids, options.batch_size))
        ids = [[src_ids[row] for row in batch] for batch in batches]
        results_of_batches = self.engine.search_batches(ids, options, num_best)
        for batch, found in zip(batches, results_of_batches, strict=True):
            texts = iter(self._vocabs.tgt.decode([best.ids for row in found for best in row]))
            for row, hypotheses in zip(batch, found, strict=True):
                results[row] = [
                    Translation(next(texts), best.score, best.is_finished) for best in hypotheses
                ]
        return results

    def _encode(self, lines: Sequence[str], first_number: int) -> list[list[int]]:
        """Return the ids of lines, cropped to the positions that the model has."""
        src_ids = self._vocabs.src.encode([normalise(line) for line in lines])
        limit = self.engine.max_positions
        for number, ids in enumerate(src_ids, start=first_number):
            if limit and len(ids) > limit:
                warnings.warn(
                    f"line {number}: has {len(ids)} tokens, more than the {limit} positions that "
                    f"the model has; the rest is not translated.",
                    stacklevel=2,
                )
                ids[limit - 1 :] = [STOP]
        return src_ids


def load_trained(run: RunFolder, checkpoint: str) -> Trained:
    """Load the best checkpoint of a run unless another is named; UserError where it is not."""
    config = run.load_config()
    weights = find_checkpoint(run, checkpoint)
    vocabs = load_vocabs(config, run)
    with without_weights():
        model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
    load_model(model, weights)
    return Trained(model.eval(), vocabs, config.decoding, weights.resolve().name)


def _batches(
    rows: Sequence[int], src_ids: Sequence[Sequence[int]], batch_size: int
) -> Iterator[list[int]]:
    """Cut rows into batches of like length, longest first, bounded in sentences and in tokens."""
    remaining = sorted(rows, key=lambda row: -len(src_ids[row]))
    while remaining:
        room = max(1, min(batch_size, _MAX_BATCH_TOKENS // len(src_ids[remaining[0]])))
        yield remaining[:room]
        remaining = remaining[room:]
