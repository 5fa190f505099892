"""What the decoder remembers between steps: keys and values of its past and of the memory.

The past of all beams of a sentence lies together, in M slots: a step fills one slot a beam, and a
mask says which slots are a beam's own past. So a search that reorders beams moves the mask alone,
and the beams of a sentence are the queries of one attention.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import merge_heads

# Slots come in blocks of so many steps: few shapes, for which oneDNN makes a kernel each.
_STEPS_AT_ONCE = 8
# Heads times sentences.
_MAX_PRODUCTS_TO_FUSE = 32


@dataclass
class LayerState:
    """Of one decoder layer: keys (0) and values (1) of the past and of the memory."""

    past_2BHMK: Tensor
    memory_2BHSK: Tensor

    def select(self, sentences_B: Tensor) -> "LayerState":
        return LayerState(
            self.past_2BHMK.index_select(1, sentences_B),
            self.memory_2BHSK.index_select(1, sentences_B),
        )


@dataclass
class DecoderState:
    """Of all layers, for B sentences of W beams each. A step uses it up: it grows in place."""

    layers: list[LayerState]
    hidden_B1S: Tensor
    """What attention to the memory adds to its scores: 0, or -inf at padding."""
    hidden_BWM: Tensor
    """The same for the past: 0 where a slot is the past of a beam, else -inf."""
    num_positions: int = 0
    num_slots: int = 0
    """How many are filled, those of the step that is being made among them."""

    @property
    def first_slot(self) -> int:
        """The first of the slots that the step fills which is being made."""
        return self.num_slots - self.hidden_BWM.shape[1]

    def open_slots(self) -> None:
        """Begin a step: make room for a position of every beam, which that beam sees."""
        num_beams, room = self.hidden_BWM.shape[1:]
        self.num_slots += num_beams
        if self.num_slots > room:
            more = _STEPS_AT_ONCE * num_beams
            self.hidden_BWM = F.pad(self.hidden_BWM, (0, more), value=-torch.inf)
            for layer in self.layers:
                # Zeros: what is hidden must still be a number.
                layer.past_2BHMK = F.pad(layer.past_2BHMK, (0, 0, 0, more))
        new_BWW = self.hidden_BWM[:, :, self.first_slot : self.num_slots]
        new_BWW.diagonal(dim1=1, dim2=2).zero_()

    def select(self, sentences_B: Tensor, beams_BW: Tensor) -> "DecoderState":
        """Return the state of these sentences with, in each, these beams, in this order.

        Sentences come in ascending order, none twice.
        """
        is_same = len(sentences_B) == len(self.hidden_B1S)
        return DecoderState(
            self.layers if is_same else [layer.select(sentences_B) for layer in self.layers],
            self.hidden_B1S if is_same else self.hidden_B1S[sentences_B],
            self.hidden_BWM[sentences_B[:, None], beams_BW],
            self.num_positions,
            self.num_slots,
        )


def look(q_BHWK: Tensor, kv_2BHMK: Tensor, hidden_BWM: Tensor) -> Tensor:
    """Return the attention of W queries a sentence, the heads side by side, shape BWD.

    hidden is added to the scores: 0, or -inf where a query may not look. torch's fused kernel is
    four times as fast for one sentence, where each operation costs more than what it computes, and
    half as fast for many on a CPU. The softmax is in fp32 inside, whatever comes in.
    """
    k_BHMK, v_BHMK = kv_2BHMK.unbind()
    num_products = q_BHWK.shape[0] * q_BHWK.shape[1]
    if q_BHWK.is_cpu and num_products > _MAX_PRODUCTS_TO_FUSE:
        attended_BHWK = _attend_by_products(q_BHWK, k_BHMK, v_BHMK, hidden_BWM)
    else:
        attended_BHWK = F.scaled_dot_product_attention(
            q_BHWK, k_BHMK, v_BHMK, hidden_BWM.unsqueeze(1)
        )
    return merge_heads(attended_BHWK)


def _attend_by_products(
    q_BHWK: Tensor, k_BHMK: Tensor, v_BHMK: Tensor, hidden_BWM: Tensor
) -> Tensor:
    hidden_NWM = hidden_BWM.repeat_interleave(q_BHWK.shape[1], dim=0)
    scores_NWM = torch.baddbmm(
        hidden_NWM,
        q_BHWK.flatten(0, 1),
        k_BHMK.flatten(0, 1).transpose(1, 2),
        alpha=q_BHWK.shape[3] ** -0.5,
    )
    return torch.bmm(scores_NWM.softmax(-1), v_BHMK.flatten(0, 1)).view_as(q_BHWK)
