"""Finds translations with our own search, several batches side by side."""

from collections.abc import Iterator, Sequence

import torch

from nmt.config import DecodingConfig
from nmt.decoding.lanes import open_lanes
from nmt.decoding.search import Hypothesis, beam_search, greedy
from nmt.device import give_back_memory
from nmt.model.stepper import Stepper
from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.padding import pad
from nmt.tokens.vocab import PAD, START, STOP, UNK


class TorchEngine:
    """A model that is searched by torch, on the device where it is."""

    def __init__(self, model: Transformer) -> None:
        """Take a model in evaluation mode, in the precision in which it is to compute."""
        self.precision = str(model.output.weight.dtype).removeprefix("torch.")
        self.max_positions = model.max_positions
        self._stepper = Stepper(model)
        self._device = next(model.parameters()).device

    def search_batches(
        self, batches: Sequence[list[list[int]]], options: DecodingConfig, num_best: int
    ) -> Iterator[list[list[Hypothesis]]]:
        """Yield for each batch the best hypotheses of its sentences; several are searched at once.

        A single batch has all cores.
        """
        if len(batches) < 2:
            yield from (self.search(batch, options, num_best) for batch in batches)
            return
        with open_lanes(self._device) as lanes:
            yield from lanes.map(lambda batch: self.search(batch, options, num_best), batches)
        give_back_memory()

    @torch.inference_mode()
    def search(
        self, src_ids: list[list[int]], options: DecodingConfig, num_best: int = 1
    ) -> list[list[Hypothesis]]:
        """Search the translations of sentences given as ids that end with the stop token."""
        src_BS = pad(src_ids).to(self._device)
        keep_B11S = keep_real(src_BS)
        state = self._stepper.start(src_BS, keep_B11S)
        # The cap of T: twice the source's tokens plus 10.
        max_lengths_B = 2 * keep_B11S.flatten(1).sum(1) + 10
        if self.max_positions:
            max_lengths_B = max_lengths_B.clamp(max=self.max_positions)
        banned = (UNK, START, PAD)
        if options.beam == 1:
            best = greedy(
                self._stepper.step,
                state,
                max_lengths_B=max_lengths_B,
                start=START,
                stop=STOP,
                banned=banned,
                length_penalty=options.length_penalty,
            )
            return [[hypothesis] for hypothesis in best]
        return beam_search(
            self._stepper.step,
            state,
            max_lengths_B=max_lengths_B,
            beam=options.beam,
            length_penalty=options.length_penalty,
            start=START,
            stop=STOP,
            banned=banned,
            num_best=num_best,
        )
