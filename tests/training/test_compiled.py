"""Compiled layers train as the others do, for batches of any size, under the same names."""

import os
import shutil

import pytest
import torch

from nmt.config import ModelConfig, TrainingConfig
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, pad, shift
from nmt.training.step import Learner

# torch's compiler warns of what it does itself, and silences the second where it is no error.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method.:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
]

SRC = [[5, 6, 2], [7, 2], [4, 5, 6, 7, 8, 9, 10, 11, 2], [9, 9, 2], [8, 2], [5, 2], [7, 8, 2]]
TGT = [[4, 5, 5, 5, 5, 6, 2], [7, 2], [4, 5, 2], [9, 9, 2], [4, 4, 2], [6, 2], [11, 2]]


def make_learner(*, is_compiled: bool) -> Learner:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(2, 2), dropout=0.0)
    model = Transformer(config, src_vocab=12, tgt_vocab=12)
    return Learner(model, TrainingConfig(compile=is_compiled), torch.float32)


def batch_of(src: list[list[int]], tgt: list[list[int]]) -> Batch:
    return Batch(pad(src), *shift(pad(tgt)))


def test_names_stay_and_a_copy_that_decodes_is_not_compiled() -> None:
    plain, compiled = make_learner(is_compiled=False), make_learner(is_compiled=True)
    assert [*compiled.model.state_dict()] == [*plain.model.state_dict()]
    assert [*compiled.weights] == [*plain.weights]

    def are_compiled(model: Transformer) -> list[bool]:
        return [layer._compiled_call_impl is not None for layer in (*model.encoder, *model.decoder)]

    assert are_compiled(compiled.model) == [True] * 4
    assert are_compiled(compiled.decoding_model()) == [False] * 4


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError) as caught:
        make_learner(is_compiled=True)
    assert str(caught.value) == (
        "training.compile on cpu needs the C++ compiler no-such-compiler, which is not there; "
        "install it, or set training.compile to false."
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="torch compiles for CPUs with a compiler"
)
def test_compiled_layers_give_the_same_losses_and_are_compiled_once() -> None:
    """The first batch has as many pairs as positions, which the others have not."""
    plain, compiled = make_learner(is_compiled=False), make_learner(is_compiled=True)
    batches = [batch_of(SRC, TGT), batch_of(SRC[:3], TGT[:3]), batch_of(SRC, SRC)]
    for step, batch in enumerate(batches, start=1):
        with torch._dynamo.config.patch(error_on_recompile=step > 1):
            one, other = (learner.update([batch], step) for learner in (plain, compiled))
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert other.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)
    for name, weight in plain.weights.items():
        torch.testing.assert_close(compiled.weights[name], weight, atol=1e-5, rtol=0)
