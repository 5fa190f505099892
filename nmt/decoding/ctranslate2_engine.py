"""Finds translations with CTranslate2, by the rules of our own search."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch

from nmt.config import DecodingConfig
from nmt.decoding.ctranslate2_model import (
    MAX_POSITIONS,
    all_pieces,
    load_ctranslate2,
    write_model,
)
from nmt.decoding.search import Hypothesis
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.tokens.vocab import PAD, START, STOP, Vocabs

_QUANTIZATIONS = {"auto": "none", "fp32": "none", "int8": "int8"}
# So many hypotheses are searched at once, in fp32 and in int8, whose products are fastest with few;
# half as many sentences by greedy search. Twice or half of that is up to 8 % slower.
_ROWS, _INT8_ROWS = 256, 64
# Scoring holds the logits of all positions.
_SCORED_AT_ONCE = 16
# With 0 CTranslate2 would stop at other times than our search; this rounds to it.
_NO_PENALTY = 1e-9

Again = list[tuple[int, Callable[[], list[Hypothesis]]]]
"""Rows of a batch that are done again, and what to wait with for their hypotheses."""


class CTranslate2Engine:
    """A model in CTranslate2's format, searched by a worker of one thread for each core."""

    def __init__(self, folder: Path, vocabs: Vocabs, max_positions: int | None) -> None:
        """Load what `write_model` wrote; `max_positions` is that of the model."""
        self._translator = load_ctranslate2("ctranslate2").Translator(
            str(folder),
            device="cpu",
            inter_threads=torch.get_num_threads(),
            intra_threads=1,
            max_queued_batches=-1,
        )
        self.max_positions: int | None = max_positions or MAX_POSITIONS
        self._src_pieces = all_pieces(vocabs.src)
        self._tgt_pieces = all_pieces(vocabs.tgt)
        self._tgt_ids = {piece: number for number, piece in enumerate(self._tgt_pieces)}
        self._banned = [[self._tgt_pieces[START]], [self._tgt_pieces[PAD]]]

    @classmethod
    def convert(cls, model: Transformer, vocabs: Vocabs, device: str, precision: str) -> Self:
        """Write a model into a folder that is there until it is loaded, and load it."""
        if device not in ("auto", "cpu"):
            raise UserError(
                f'device "{device}": --engine ctranslate2 runs on the CPU; take --device cpu, or '
                f"--engine torch."
            )
        if precision not in _QUANTIZATIONS:
            raise UserError(
                f'precision "{precision}" is not known to --engine ctranslate2; take auto, fp32 or '
                f"int8."
            )
        with tempfile.TemporaryDirectory() as folder:
            write_model(model, vocabs, Path(folder), _QUANTIZATIONS[precision])
            return cls(Path(folder), vocabs, model.max_positions)

    @property
    def precision(self) -> str:
        return f"{self._translator.compute_type} by ctranslate2"

    def search_batches(
        self, batches: Sequence[list[list[int]]], options: DecodingConfig, num_best: int
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield the best hypotheses of each batch; all batches are given to the workers at once."""
        room = self._room(sum(map(len, batches)), options.beam)
        jobs = [self._submit(batch, room, options) for batch in batches]
        # A cap is one number a call. What ended within its own cap did not depend on it.
        correct = self._cut if options.beam == 1 else self._search_again
        corrected = []
        for batch, job in zip(batches, jobs, strict=True):
            found = list(map(self._wait, job))
            corrected.append((found, correct(batch, found, options)))
        for found, rows in corrected:
            for row, wait in rows:
                found[row] = wait()
            yield [pool[:num_best] for pool in found]

    def _room(self, num_sentences: int, beam: int) -> int:
        """Return how many sentences to search at once, so that every worker has some."""
        rows = _INT8_ROWS if self._translator.compute_type.startswith("int8") else _ROWS
        share = -(-num_sentences // self._translator.num_translators)
        return max(1, min(rows // max(beam, 2), share))

    def _submit(self, batch: list[list[int]], room: int, options: DecodingConfig) -> list[Any]:
        """Begin to translate a batch, longest sentence first; a part has the cap of its longest."""
        parts = [batch[first : first + room] for first in range(0, len(batch), room)]
        return [
            result for part in parts for result in self._translate(part, options, is_last=False)
        ]

    def _beyond(self, batch: list[list[int]], found: list[list[Hypothesis]]) -> list[int]:
        """Return the rows with a hypothesis longer than their own cap."""
        return [
            row
            for row, (src_ids, pool) in enumerate(zip(batch, found, strict=True))
            if max(map(_length, pool)) > self._cap(src_ids)
        ]

    def _cut(
        self, batch: list[list[int]], found: list[list[Hypothesis]], options: DecodingConfig
    ) -> Again:
        """Begin to score what greedy search says up to the cap: it went there without the rest."""
        rows = self._beyond(batch, found)
        cut = [found[row][0].ids[: self._cap(batch[row])] for row in rows]
        results = self._translator.score_batch(
            [self._src(batch[row]) for row in rows],
            [[self._tgt_pieces[piece_id] for piece_id in ids] for ids in cut],
            max_batch_size=_SCORED_AT_ONCE,
            max_input_length=0,
            asynchronous=True,
        )

        def wait(ids: list[int], result: Any) -> list[Hypothesis]:
            total = sum(result.result().log_probs[: len(ids)])
            return [Hypothesis(ids, total / len(ids) ** options.length_penalty, False)]

        return [(row, partial(wait, *each)) for row, *each in zip(rows, cut, results, strict=True)]

    def _search_again(
        self, batch: list[list[int]], found: list[list[Hypothesis]], options: DecodingConfig
    ) -> Again:
        """Begin to search again, each up to its own cap."""
        by_length: dict[int, list[int]] = {}
        for row in self._beyond(batch, found):
            by_length.setdefault(len(batch[row]), []).append(row)
        again: Again = []
        for rows in by_length.values():
            results = self._translate([batch[row] for row in rows], options, is_last=True)
            again += [
                (row, partial(self._wait, result))
                for row, result in zip(rows, results, strict=True)
            ]
        return again

    def _translate(
        self, batch: list[list[int]], options: DecodingConfig, *, is_last: bool
    ) -> list[Any]:
        """Begin to translate sentences up to the cap of the first.

        T counts the stop token only where CTranslate2 is to return it. At a cap that is known to
        end the search (`is_last`), twice the beam are left, all of which are to be ranked; what
        CTranslate2 calls patience lets it return so many, and has no other effect there.
        """
        factor = 2 if is_last and options.beam > 1 else 1
        results: list[Any] = self._translator.translate_batch(
            list(map(self._src, batch)),
            asynchronous=True,
            beam_size=options.beam,
            patience=factor,
            num_hypotheses=factor * options.beam,
            length_penalty=options.length_penalty or _NO_PENALTY,
            max_input_length=0,
            max_decoding_length=self._cap(batch[0]),
            min_decoding_length=0,
            disable_unk=True,
            suppress_sequences=self._banned,
            return_end_token=True,
            return_scores=True,
        )
        return results

    def _src(self, src_ids: list[int]) -> list[str]:
        """Return the pieces of a source; CTranslate2 adds the stop token."""
        return [self._src_pieces[piece_id] for piece_id in src_ids[:-1]]

    def _cap(self, src_ids: list[int]) -> int:
        assert self.max_positions
        return min(2 * len(src_ids) + 10, self.max_positions)

    def _wait(self, job: Any) -> list[Hypothesis]:
        """Return all hypotheses of a sentence, best first, once they are there."""
        result = job.result()
        found = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [self._tgt_ids[piece] for piece in pieces]
            is_finished = ids[-1] == STOP
            found.append(Hypothesis(ids[:-1] if is_finished else ids, score, is_finished))
        return sorted(found, key=lambda h: (h.is_finished, h.score), reverse=True)


def _length(hypothesis: Hypothesis) -> int:
    return len(hypothesis.ids) + hypothesis.is_finished
