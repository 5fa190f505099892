"""What only a GPU can show: nothing waits for it within an update, and it counts as a CPU does."""

import warnings
from collections.abc import Iterator

import pytest
import torch

from nmt.config import ModelConfig, TrainingConfig
from nmt.device import choose_dtype, compute_alike
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, pad, shift
from nmt.training.step import Learner, UpdateResult

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA"),
    # That an operation may round in another order each time; the tests allow for it.
    pytest.mark.filterwarnings("default"),
]
SRC = [[5, 6, 2], [7, 2], [4, 5, 6, 7, 8, 9, 10, 11, 2], [9, 9, 2]]
TGT = [[4, 5, 5, 5, 5, 6, 2], [7, 2], [4, 5, 2], [9, 9, 2]]


@pytest.fixture(autouse=True)
def _as_training_does() -> Iterator[None]:
    compute_alike(torch.device("cuda"))
    yield
    torch.cuda.set_sync_debug_mode("default")
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(False)


def make_learner(device: str, precision: str, *, is_compiled: bool = False) -> Learner:
    torch.manual_seed(0)
    config = ModelConfig(d_model=32, d_ff=64, num_heads=2, num_layers=(2, 2), dropout=0.0)
    model = Transformer(config, src_vocab=12, tgt_vocab=12).to(device)
    dtype = choose_dtype(precision, torch.device(device))
    return Learner(model, TrainingConfig(ema=0.9, compile=is_compiled), dtype)


def batches() -> list[Batch]:
    halves = [(SRC[:2], TGT[:2]), (SRC[2:], TGT[2:])]
    return [Batch(pad(src), *shift(pad(tgt))) for src, tgt in halves]


def train(learner: Learner, num_updates: int = 3) -> list[UpdateResult]:
    return [learner.update(batches(), step) for step in range(1, num_updates + 1)]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_forward_and_backward_never_wait_for_the_gpu(precision: str, is_compiled: bool) -> None:
    """Once the positions are there and the layers are compiled."""
    learner = make_learner("cuda", precision, is_compiled=is_compiled)
    train(learner)
    pinned = [batch.pin() for batch in batches()]
    torch.cuda.set_sync_debug_mode("error")
    assert learner.try_to_add(pinned)


def test_an_update_reads_from_the_gpu_once() -> None:
    learner = make_learner("cuda", "bf16")
    train(learner)
    pinned = [batch.pin() for batch in batches()]
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.update(pinned, 4)
    found = [str(each.message) for each in caught if "synchronizing" in str(each.message)]
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("fp32", 1e-5), ("tf32", 1e-2), ("bf16", 3e-2)]
)
def test_a_gpu_counts_as_a_cpu_does(precision: str, tolerance: float) -> None:
    expected = train(make_learner("cpu", "fp32"))
    for ours, theirs in zip(train(make_learner("cuda", precision)), expected, strict=True):
        assert ours.num_tokens == theirs.num_tokens
        assert ours.loss == pytest.approx(theirs.loss, rel=tolerance)
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=10 * tolerance)


def test_the_same_bytes_twice() -> None:
    learners = [make_learner("cuda", "bf16") for _ in range(2)]
    assert train(learners[0]) == train(learners[1])
    for name, weight in learners[0].weights.items():
        assert torch.equal(weight, learners[1].weights[name]), name


def test_tf32_is_a_switch_that_another_precision_turns_off() -> None:
    device = torch.device("cuda")
    assert choose_dtype("tf32", device) == torch.float32
    assert torch.get_float32_matmul_precision() == "high"
    assert choose_dtype("fp32", device) == torch.float32
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_batch_is_pinned() -> None:
    assert all(ids.is_pinned() for batch in batches() for ids in batch.pin())
