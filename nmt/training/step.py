"""One update: forward, backward, sum over the ranks, clip, schedule, step."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from nmt.config import TrainingConfig
from nmt.device import seed
from nmt.model.transformer import Transformer, compute_in
from nmt.tokens.batches import Batch
from nmt.training.compiled import compile_layers
from nmt.training.distributed import Ranks
from nmt.training.loss import LossSums, batch_loss
from nmt.training.rows import Rows
from nmt.training.schedule import learning_rate

# Adam's settings of Vaswani 2017, 5.3.
_BETAS, _EPSILON = (0.9, 0.98), 1e-9


@dataclass(frozen=True)
class UpdateResult:
    """What an update did; losses in nats, summed over its real target tokens, of all ranks."""

    loss: float
    nll: float
    num_tokens: int
    grad_norm: float
    lr: float
    trouble: str = ""
    """Why the weights stayed as they were, if they did."""

    @property
    def mean_loss(self) -> float:
        return self.loss / max(1, self.num_tokens)

    @property
    def ppl(self) -> float:
        """Perplexity per token, without label smoothing."""
        return math.exp(min(self.nll / max(1, self.num_tokens), 100.0))


class Learner:
    """The model with its gradient, its optimiser and the moving average of its weights."""

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        dtype: torch.dtype,
        ranks: Ranks | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self.dtype = dtype
        self.ranks = ranks or Ranks()
        self.weights = dict(model.named_parameters())
        """What is trained, in fp32; the model computes with copies where it does so in bf16."""
        self._owners = dict(model.named_parameters(remove_duplicate=False))
        computing = compute_in(model, dtype).named_parameters(remove_duplicate=False)
        self._copies = [
            (weight, self._owners[name])
            for name, weight in computing
            if weight is not self._owners[name]
        ]
        for copied, weight in self._copies:
            copied.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                partial(_hand_over, weight)
            )
        self.device = next(model.parameters()).device
        if config.compile:
            compile_layers(model)
        has_average = config.ema > 0
        self._rows = Rows(self.weights, self.ranks, num_sums=3, has_average=has_average)
        average = self._rows.average
        self.average = {} if average is None else self._rows.views(average)
        self.moments = {
            "exp_avg": self._rows.views(self._rows.exp_avg),
            "exp_avg_sq": self._rows.views(self._rows.exp_avg_sq),
        }
        """Adam's, under torch's names for them, of each weight."""
        self._mine = [self._rows.my_matrices, self._rows.my_vectors]
        decays = (config.weight_decay, 0.0)
        self.optimizer = torch.optim.AdamW(
            [
                {"params": [nn.Parameter(self._rows.weights[mine])], "weight_decay": decay}
                for mine, decay in zip(self._mine, decays, strict=True)
            ],
            lr=config.lr,
            betas=_BETAS,
            eps=_EPSILON,
            fused=True,
        )
        # By its loss scaling, the optimiser divides the gradient while it has it at hand.
        self._divisor = torch.ones((), device=self.device)
        self.optimizer.grad_scale = self._divisor  # type: ignore[attr-defined]
        self._prepare_optimizer()

    def update(self, batches: Sequence[Batch], step: int) -> UpdateResult:
        """Train on this rank's groups of update `step` (from 1): with those of the others, a batch.

        Dropout is drawn from (seed, step, rank), so that no generator has to be saved. Where a rank
        runs out of memory, or the gradient is not finite, the weights stay as they are, on all.
        """
        lr = learning_rate(step, peak=self.config.lr, warmup_steps=self.config.warmup_steps)
        seed(self.device, self.config.seed * 1_000_003 + step + self.ranks.rank * 998_244_353)
        short = self.ranks.gather([not self.try_to_add(batches)])[:, 0].nonzero().flatten()
        if len(short):
            self.forget_gradient()
            names = ", ".join(f"rank {rank}" for rank in short.tolist())
            return UpdateResult(math.nan, math.nan, 0, math.nan, lr, f"{names} ran out of memory")
        self.ranks.sum_(self._rows.gradient_and_sums)
        norm = torch.linalg.vector_norm(self._rows.gradient)
        loss, nll, num_tokens, norm_of_sum = torch.cat((self._rows.sums, norm[None])).tolist()
        grad_norm = norm_of_sum / num_tokens
        trouble = "" if math.isfinite(grad_norm) else "the gradient was not finite"
        if not trouble:
            limit = self.config.clip_norm or math.inf
            self._step(lr, step, divisor=num_tokens / min(1.0, limit / (grad_norm + 1e-6)))
        return UpdateResult(loss, nll, int(num_tokens), grad_norm, lr, trouble)

    def add_gradient(self, batch: Batch) -> None:
        """Forward and backward of one group: adds its summed loss and the gradient of it."""
        self.model.train()
        sums = batch_loss(self.model, batch.to(self.device), self.config.label_smoothing)
        torch.autograd.backward(sums.loss)
        self._rows.sums.add_(_as_row(sums))

    def forget_gradient(self) -> None:
        """Set gradient and sums to 0, in place."""
        self._rows.gradient_and_sums.zero_()

    def decoding_model(self) -> Transformer:
        """Return a copy of the model with the weights that decode, in evaluation mode."""
        weights = self.decoding_weights()
        of_owner = {owner: weights[name] for name, owner in self.weights.items()}
        model = copy.deepcopy(self.model).eval().requires_grad_(False)
        for name, weight in model.named_parameters(remove_duplicate=False):
            weight.copy_(of_owner[self._owners[name]])
        return model

    def decoding_weights(self) -> dict[str, Tensor]:
        """Return the weights that validate and decode: the average where there is one."""
        return self.average or {name: weight.detach() for name, weight in self.weights.items()}

    def try_to_add(self, batches: Sequence[Batch]) -> bool:
        """Put the gradient of the groups into the buffer; return False where memory ran out."""
        self.forget_gradient()
        self._renew_copies()
        try:
            for batch in batches:
                self.add_gradient(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        else:
            return True
        # Only here, as the exception holds on to what was computed.
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return False

    @torch.no_grad()
    def _renew_copies(self) -> None:
        """Round the weights to what the model computes in."""
        if self._copies:
            copies, weights = zip(*self._copies, strict=True)
            torch._foreach_copy_(copies, weights)

    @property
    def num_steps(self) -> float:
        """How many steps the optimiser has made; those that were skipped do not count."""
        return float(next(iter(self.optimizer.state.values()))["step"])

    @num_steps.setter
    def num_steps(self, number: float) -> None:
        for state in self.optimizer.state.values():
            state["step"].fill_(number)

    def _prepare_optimizer(self) -> None:
        """Give it its share of the rows now, so that trying the largest group tells the truth."""
        rows = self._rows
        for group, mine in zip(self.optimizer.param_groups, self._mine, strict=True):
            (weights,) = group["params"]
            weights.grad = rows.gradient[mine]
            self.optimizer.state[weights] = {
                "step": torch.zeros((), device=self.device),
                "exp_avg": rows.exp_avg[mine],
                "exp_avg_sq": rows.exp_avg_sq[mine],
            }

    @torch.no_grad()
    def _step(self, lr: float, step: int, divisor: float) -> None:
        self._divisor.fill_(divisor)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        if self._rows.average is not None:
            # Closely at first, so that the random start is soon forgotten.
            decay = min(self.config.ema, (1 + step) / (10 + step))
            for mine in self._mine:
                self._rows.average[mine].lerp_(self._rows.weights[mine], 1 - decay)
        self.ranks.meet()


@torch.no_grad()
def _hand_over(weight: Tensor, copied: Tensor) -> None:
    """Add the gradient of a copy to that of the weight as soon as it is there, and free it."""
    assert copied.grad is not None and weight.grad is not None
    weight.grad += copied.grad
    copied.grad = None


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory, of a GPU or of the machine, is what an operation lacked."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        "can't allocate memory" in str(error)
    )


def _as_row(sums: LossSums) -> Tensor:
    count = torch.full_like(sums.nll, sums.num_tokens)
    return torch.stack((sums.loss.detach(), sums.nll, count))
