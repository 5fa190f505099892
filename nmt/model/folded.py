"""Attention to the memory of a single sentence, with the projections around it folded in.

The score of head h is (x Wq_h) · (m Wk_h) = x · (m Wk_h Wq_hᵀ), and what it adds to the output is
weight times (m Wv_h) Wo_h. What stands in brackets at the right is computed once a sentence. Then a
step makes two small products in fp32 in place of two projections, which have weights to read, and
an attention.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.model.attention import CrossAttention

# Tensor names end in their shape as in transformer.py; P is H·S places, those of a head together.


@dataclass(frozen=True)
class FoldedMemory:
    """Keys and values of one sentence as wide as the model, in fp32."""

    keys_1DP: Tensor
    values_1PD: Tensor
    offset_1WP: Tensor
    """What every query adds to its scores: its bias times the keys, and -inf at padding."""
    out_bias_D: Tensor
    num_heads: int

    def look(self, x_1WD: Tensor) -> Tensor:
        """Return the attention of W queries, projected, shape 1WD."""
        scores_1WP = torch.baddbmm(self.offset_1WP, x_1WD.float(), self.keys_1DP)
        scores_1WHS = scores_1WP.view(*scores_1WP.shape[:2], self.num_heads, -1)
        weights_1WP = scores_1WHS.softmax(3).flatten(2)
        return torch.baddbmm(self.out_bias_D, weights_1WP, self.values_1PD).to(x_1WD.dtype)


class Folding:
    """The projections of an attention, ready to be folded."""

    def __init__(self, cross: CrossAttention) -> None:
        """Take an attention whose weights do not change any more."""
        self._num_heads = cross.num_heads
        d_model = cross.q.in_features
        scale = (d_model // cross.num_heads) ** -0.5
        q_DD, out_DD = cross.q.weight.detach().float(), cross.out.weight.detach().float()
        self._q_HKD = (q_DD * scale).view(cross.num_heads, -1, d_model)
        self._q_bias_HK1 = (cross.q.bias.detach().float() * scale).view(cross.num_heads, -1, 1)
        self._out_HKD = out_DD.t().contiguous().view(cross.num_heads, -1, d_model)
        self._out_bias_D = cross.out.bias.detach().float()

    def __call__(self, memory_2BHSK: Tensor, hidden_B1S: Tensor) -> FoldedMemory | None:
        """Fold the projections into keys and values where that is less to read afterwards.

        That is for one sentence, as others have folded keys of their own but share projections, and
        no longer one than a head is wide, as each head makes its places as wide as the model.
        """
        num_sentences, num_heads, num_positions, width = memory_2BHSK.shape[1:]
        if not memory_2BHSK.is_cpu or num_sentences > 1 or num_positions > width:
            return None
        k_HSK, v_HSK = memory_2BHSK[:, 0].float()
        offset_HS1 = torch.bmm(k_HSK, self._q_bias_HK1) + hidden_B1S.transpose(1, 2)
        return FoldedMemory(
            keys_1DP=torch.bmm(k_HSK, self._q_HKD).flatten(0, 1).t().unsqueeze(0),
            values_1PD=torch.bmm(v_HSK, self._out_HKD).flatten(0, 1).unsqueeze(0),
            offset_1WP=offset_HS1.view(1, 1, -1),
            out_bias_D=self._out_bias_D,
            num_heads=num_heads,
        )
