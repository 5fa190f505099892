"""What the decoder remembers between steps: keys and values of its past and of the memory."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LayerState:
    """Of one decoder layer: keys and values of the positions so far and of the memory."""

    k_RHTK: Tensor
    v_RHTK: Tensor
    memory_k_BHSK: Tensor
    memory_v_BHSK: Tensor

    def extend(self, k_RH1K: Tensor, v_RH1K: Tensor) -> tuple[Tensor, Tensor]:
        """Append a position and return the keys and values of all so far."""
        self.k_RHTK = torch.cat((self.k_RHTK, k_RH1K), dim=2)
        self.v_RHTK = torch.cat((self.v_RHTK, v_RH1K), dim=2)
        return self.k_RHTK, self.v_RHTK


@dataclass
class DecoderState:
    """Of all layers, for B sentences of W beams each."""

    layers: list[LayerState]
    keep_B11S: Tensor
    num_beams: int
    num_positions: int

    def select(self, sentences_B: Tensor, beams_BW: Tensor) -> "DecoderState":
        """Return the state of these sentences with, in each, these beams, in this order.

        Sentences come in ascending order, none twice.
        """
        rows_R = (sentences_B[:, None] * self.num_beams + beams_BW).flatten()
        is_same = len(sentences_B) == len(self.keep_B11S)
        layers = [
            LayerState(
                layer.k_RHTK.index_select(0, rows_R),
                layer.v_RHTK.index_select(0, rows_R),
                layer.memory_k_BHSK if is_same else layer.memory_k_BHSK[sentences_B],
                layer.memory_v_BHSK if is_same else layer.memory_v_BHSK[sentences_B],
            )
            for layer in self.layers
        ]
        keep_B11S = self.keep_B11S if is_same else self.keep_B11S[sentences_B]
        return DecoderState(layers, keep_B11S, beams_BW.shape[1], self.num_positions)
