"""Label-smoothed cross-entropy, as sums over the real target tokens."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.batches import Batch
from nmt.tokens.vocab import PAD


class LossSums(NamedTuple):
    """Sums in nats over `num_tokens` real target tokens; nobody divides before all are added."""

    loss: Tensor
    """Label-smoothed: what is minimised."""
    nll: Tensor
    """Negative log-likelihood of the reference: what perplexity comes from."""
    num_tokens: int


def smoothed_cross_entropy(
    logits_NV: Tensor, tgt_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the sums (loss, negative log-likelihood) in fp32.

    The reference is (1 - smoothing) on the piece and the rest even over all V (Vaswani 2017, 5.4).
    """
    log_probs_NV = F.log_softmax(logits_NV.float(), dim=-1)
    nll = F.nll_loss(log_probs_NV, tgt_N, reduction="sum")
    if smoothing == 0:
        return nll, nll.detach()
    evenly = -log_probs_NV.sum() / logits_NV.shape[-1]
    return (1 - smoothing) * nll + smoothing * evenly, nll.detach()


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> LossSums:
    """Teacher forcing: the loss of a batch; only real positions reach the output projection."""
    keep_B11S = keep_real(batch.src_BS)
    memory_BSD = model.encode(batch.src_BS, keep_B11S)
    hidden_BTD = model.decode(batch.tgt_in_BT, memory_BSD, keep_B11S)
    is_real_BT = batch.tgt_out_BT != PAD
    tgt_N = batch.tgt_out_BT[is_real_BT]
    logits_NV = model.project(hidden_BTD[is_real_BT])
    return LossSums(*smoothed_cross_entropy(logits_NV, tgt_N, smoothing), len(tgt_N))
