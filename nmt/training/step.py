"""One update: forward, backward, count, clip, schedule, step."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nmt.config import TrainingConfig
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch
from nmt.training.loss import LossSums, batch_loss
from nmt.training.schedule import learning_rate

# Adam's settings of Vaswani 2017, 5.3.
_BETAS, _EPSILON = (0.9, 0.98), 1e-9
_NO_LIMIT = math.inf


@dataclass(frozen=True)
class UpdateResult:
    """What an update did; losses in nats, summed over its real target tokens."""

    loss: float
    nll: float
    num_tokens: int
    grad_norm: float
    lr: float

    @property
    def mean_loss(self) -> float:
        return self.loss / self.num_tokens

    @property
    def ppl(self) -> float:
        """Perplexity per token, without label smoothing."""
        return math.exp(min(self.nll / self.num_tokens, 100.0))

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.grad_norm)


class Learner:
    """The model with its optimiser and the moving average of its weights."""

    def __init__(self, model: Transformer, config: TrainingConfig, dtype: torch.dtype) -> None:
        self.model = model
        self.config = config
        self.dtype = dtype
        self.weights = dict(model.named_parameters())
        self.device = next(model.parameters()).device
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=config.lr, betas=_BETAS, eps=_EPSILON, fused=True
        )
        self.average = {
            name: weight.detach().clone() for name, weight in self.weights.items() if config.ema
        }

    def update(self, batches: Sequence[Batch], step: int) -> UpdateResult:
        """Train on the groups of update `step` (from 1) as if they were one batch.

        Dropout is drawn from (seed, step), so that no generator has to be saved. Where the gradient
        is not finite the weights stay as they are.
        """
        torch.manual_seed(self.config.seed * 1_000_003 + step)
        self.forget_gradient()
        sums = [self.add_gradient(batch) for batch in batches]
        num_tokens = sum(part.num_tokens for part in sums)
        grad_norm = self._average_and_clip(num_tokens)
        lr = learning_rate(step, peak=self.config.lr, warmup_steps=self.config.warmup_steps)
        result = UpdateResult(
            loss=sum(part.loss.item() for part in sums),
            nll=sum(part.nll.item() for part in sums),
            num_tokens=num_tokens,
            grad_norm=grad_norm,
            lr=lr,
        )
        if result.is_finite:
            self.optimizer.param_groups[0]["lr"] = lr
            self.optimizer.step()
            self._move_average(step)
        return result

    def add_gradient(self, batch: Batch) -> LossSums:
        """Forward and backward of one group: adds the gradient of its summed loss."""
        self.model.train()
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            sums = batch_loss(self.model, batch.to(self.device), self.config.label_smoothing)
        torch.autograd.backward(sums.loss)
        return LossSums(sums.loss.detach(), sums.nll, sums.num_tokens)

    def _average_and_clip(self, num_tokens: int) -> float:
        """Divide the summed gradient by the update's tokens, clip it, return its norm before."""
        gradients = [weight.grad for weight in self.weights.values() if weight.grad is not None]
        torch._foreach_div_(gradients, num_tokens)
        limit = self.config.clip_norm or _NO_LIMIT
        return float(torch.nn.utils.clip_grad_norm_(self.weights.values(), limit))

    def _move_average(self, step: int) -> None:
        """Follow the weights, closely at first, so that the random start is soon forgotten."""
        if not self.average:
            return
        decay = min(self.config.ema, (1 + step) / (10 + step))
        weights = [weight.detach() for weight in self.weights.values()]
        torch._foreach_lerp_(list(self.average.values()), weights, 1 - decay)

    def forget_gradient(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def decoding_model(self) -> Transformer:
        """Return a copy of the model with the weights that decode, in evaluation mode."""
        self.forget_gradient()
        model = copy.deepcopy(self.model).eval().requires_grad_(False)
        for name, weight in model.named_parameters():
            weight.copy_(self.decoding_weights()[name])
        return model

    def decoding_weights(self) -> dict[str, torch.Tensor]:
        """Return the weights that validate and decode: the average where there is one."""
        return self.average or {name: weight.detach() for name, weight in self.weights.items()}
