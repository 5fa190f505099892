"""Finds translations with CTranslate2, by the rules of our own search."""

import tempfile
from collections.abc import Iterator, Sequence
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
# With 0 CTranslate2 would stop at other times than our search; this rounds to it.
_NO_PENALTY = 1e-9


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
        tgt_pieces = all_pieces(vocabs.tgt)
        self._tgt_ids = {piece: number for number, piece in enumerate(tgt_pieces)}
        self._banned = [[tgt_pieces[START]], [tgt_pieces[PAD]]]

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
        results = [[result.result() for result in job] for job in jobs]
        again = [self._submit_again(*each, options) for each in zip(batches, results, strict=True)]
        for found, corrected in zip(results, again, strict=True):
            for row, result in corrected.items():
                found[row] = result.result()
            yield [self._read(result, num_best) for result in found]

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

    def _submit_again(
        self, batch: list[list[int]], results: list[Any], options: DecodingConfig
    ) -> dict[int, Any]:
        """Begin again, with their own cap, sentences whose hypotheses went beyond it.

        A cap is one number a call. What ended within its own cap did not depend on it.
        """
        beyond: dict[int, list[int]] = {}
        for row, (src_ids, result) in enumerate(zip(batch, results, strict=True)):
            if max(map(len, result.hypotheses)) > self._cap(src_ids):
                beyond.setdefault(len(src_ids), []).append(row)
        again: dict[int, Any] = {}
        for rows in beyond.values():
            sentences = [batch[row] for row in rows]
            again |= zip(rows, self._translate(sentences, options, is_last=True), strict=True)
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
            # CTranslate2 adds the stop token.
            [[self._src_pieces[piece_id] for piece_id in src_ids[:-1]] for src_ids in batch],
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

    def _cap(self, src_ids: list[int]) -> int:
        assert self.max_positions
        return min(2 * len(src_ids) + 10, self.max_positions)

    def _read(self, result: Any, num_best: int) -> list[Hypothesis]:
        found = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [self._tgt_ids[piece] for piece in pieces]
            is_finished = ids[-1] == STOP
            found.append(Hypothesis(ids[:-1] if is_finished else ids, score, is_finished))
        return sorted(found, key=lambda h: (h.is_finished, h.score), reverse=True)[:num_best]
