"""Loss, perplexity and accuracy on the dev set, teacher-forced, and scores of real translations."""

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import torch
from torch.nn import functional as F

from nmt.data.shards import Ints
from nmt.model.transformer import Transformer, keep_real
from nmt.tokens.batches import Batch, make_batch
from nmt.tokens.store import TokenStore
from nmt.training.distributed import Ranks

# Above this share of right next pieces, translations below that BLEU say that something leaks.
_SURE_ACCURACY, _LOW_BLEU = 0.9, 50.0


class Translations(NamedTuple):
    """What greedy translations of the dev set score, and some of them."""

    bleu: float
    chrf: float
    samples: list[tuple[str, str, str]]
    """Source, reference, translation."""


@dataclass(frozen=True)
class DevResult:
    """Means over the real target tokens of the dev set; loss in nats, without label smoothing."""

    loss: float
    accuracy: float

    @property
    def ppl(self) -> float:
        return exp(min(self.loss, 100.0))

    def contradicts(self, bleu: float) -> bool:
        """Return whether the decoder is sure of the reference but cannot write it by itself."""
        return self.accuracy > _SURE_ACCURACY and bleu < _LOW_BLEU


@torch.no_grad()
def validate(
    model: Transformer, store: TokenStore, groups: list[Ints], ranks: Ranks | None = None
) -> DevResult:
    """Return the dev result of a model in evaluation mode, in the precision of its weights.

    Each rank measures its part of the groups; all get the result of the whole.
    """
    ranks = ranks or Ranks()
    device = next(model.parameters()).device
    total_nll, num_right, num_tokens = 0.0, 0, 0
    for rows in groups[ranks.rank :: ranks.size]:
        nll, right, count = _sums(model, make_batch(store, rows).to(device))
        total_nll, num_right, num_tokens = total_nll + nll, num_right + right, num_tokens + count
    nll, right, count = ranks.gather([total_nll, num_right, num_tokens]).sum(0).tolist()
    return DevResult(nll / count, right / count)


def _sums(model: Transformer, batch: Batch) -> tuple[float, int, int]:
    keep_B11S = keep_real(batch.src_BS)
    hidden_BTD = model.decode(batch.tgt_in_BT, model.encode(batch.src_BS, keep_B11S), keep_B11S)
    tgt_N = batch.tgt_out_BT.flatten()[batch.real_N]
    logits_NV = model.project(hidden_BTD.flatten(0, 1)[batch.real_N]).float()
    nll = F.cross_entropy(logits_NV, tgt_N, reduction="sum")
    return float(nll), int((logits_NV.argmax(-1) == tgt_N).sum()), len(tgt_N)
