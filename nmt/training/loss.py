"""Label-smoothed cross-entropy, as sums over the real target tokens."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.batches import Batch

_SMALLEST = torch.finfo(torch.float32).tiny


class LossSums(NamedTuple):
    """Sums in nats over `num_tokens` real target tokens; nobody divides before all are added."""

    loss: Tensor
    """Label-smoothed: what is minimised."""
    nll: Tensor
    """Negative log-likelihood of the reference: what perplexity comes from."""
    num_tokens: int


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The output projection and its loss in one, with the gradient by hand.

    Of all that is as large as positions x vocabulary only the probabilities are ever made, once, in
    the precision of the model: the gradient of the logits is p - (1 - s)·onehot - s/V, of which the
    even part s/V is the same for all and need not be written out.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, tgt_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        references = torch.arange(len(tgt_N), device=tgt_N.device), tgt_N
        logits_NV = hidden_ND @ weight_VD.t()
        logits_N = logits_NV[references]
        grad_NV = torch.softmax(logits_NV, dim=-1, out=logits_NV)
        probs_N = grad_NV[references].float()
        nll = -probs_N.clamp(min=_SMALLEST).log().sum()
        mean_D = weight_VD.mean(0, dtype=torch.float32)
        sum_D = hidden_ND.sum(0, dtype=torch.float32)
        # The mean over V of -log p is log Z less the mean logit.
        evenly = nll + logits_N.sum(dtype=torch.float32) - sum_D @ mean_D
        grad_NV[references] = (probs_N - (1 - smoothing)).to(grad_NV.dtype)
        ctx.save_for_backward(hidden_ND, weight_VD, grad_NV, smoothing * mean_D, sum_D)
        ctx.share = smoothing / len(weight_VD)
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * evenly, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_ND, weight_VD, grad_NV, even_D, sum_D = ctx.saved_tensors
        dtype = grad_NV.dtype
        grad_ND = (grad_NV @ weight_VD).sub_(even_D.to(dtype))
        grad_VD = (grad_NV.t() @ hidden_ND).sub_((ctx.share * sum_D).to(dtype))
        return grad_ND.mul_(grad), grad_VD.mul_(grad), None, None


def smoothed_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, tgt_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the sums (loss, negative log-likelihood) in fp32; the logits are hidden · weight^T.

    The reference is (1 - smoothing) on the piece and the rest even over all V (Vaswani 2017, 5.4).
    A piece less likely than 1e-38 counts as 1e-38.
    """
    return _SmoothedCrossEntropy.apply(hidden_ND, weight_VD, tgt_N, smoothing)  # type: ignore[no-untyped-call]


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> LossSums:
    """Teacher forcing: the loss of a batch; only real positions reach the output projection."""
    keep_B11S = keep_real(batch.src_BS)
    memory_BSD = model.encode(batch.src_BS, keep_B11S)
    hidden_BTD = model.decode(batch.tgt_in_BT, memory_BSD, keep_B11S)
    hidden_ND = hidden_BTD.flatten(0, 1)[batch.real_N]
    tgt_N = batch.tgt_out_BT.flatten()[batch.real_N]
    sums = smoothed_cross_entropy(hidden_ND, model.output.weight, tgt_N, smoothing)
    return LossSums(*sums, len(tgt_N))
