"""One update is one update, however it is cut into groups."""

import math

import pytest
import torch

from nmt.config import ModelConfig, TrainingConfig
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, shift
from nmt.tokens.padding import pad
from nmt.tokens.vocab import STOP
from nmt.training.step import Learner

SENTENCES = [[5, 6, STOP], [7, STOP], [4, 5, 6, 7, 8, 9, 10, 11, STOP], [9, 9, STOP]] * 2


def make_learner(dtype: torch.dtype = torch.float32, **changes: float) -> Learner:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(2, 2), dropout=0.0)
    model = Transformer(config, src_vocab=12, tgt_vocab=12)
    return Learner(model, TrainingConfig(**changes), dtype)  # type: ignore[arg-type]


def make_batch(rows: list[list[int]]) -> Batch:
    return Batch(pad(rows), *shift(pad(rows[::-1])))


def gradients_after(learner: Learner, groups: list[list[list[int]]]) -> dict[str, torch.Tensor]:
    learner.update([make_batch(group) for group in groups], step=1)
    return {name: weight.grad.clone() for name, weight in learner.weights.items()}  # type: ignore[union-attr]


def test_groups_of_very_unequal_length_give_the_gradient_of_the_whole() -> None:
    # Pairs of a sentence with itself, so that a cut keeps them.
    whole, parts = make_learner(clip_norm=0.0), make_learner(clip_norm=0.0)
    batch = Batch(pad(SENTENCES), *shift(pad(SENTENCES)))
    cut = [Batch(pad(part), *shift(pad(part))) for part in (SENTENCES[:5], SENTENCES[5:])]
    one, two = whole.update([batch], step=1), parts.update(cut, step=1)
    assert two.num_tokens == one.num_tokens == sum(map(len, SENTENCES))
    assert two.mean_loss == pytest.approx(one.mean_loss, abs=1e-6)
    assert two.ppl == pytest.approx(one.ppl, abs=1e-5)
    assert two.grad_norm == pytest.approx(one.grad_norm, abs=1e-6)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(weight.grad, parts.weights[name].grad, atol=1e-6, rtol=0)


def test_clipping_scales_the_gradient_to_the_limit_and_reports_the_norm_before() -> None:
    free, clipped = make_learner(clip_norm=0.0), make_learner(clip_norm=0.01)
    before = gradients_after(free, [SENTENCES])
    after = gradients_after(clipped, [SENTENCES])
    norm = math.sqrt(sum(float(grad.square().sum()) for grad in before.values()))
    result = make_learner(clip_norm=0.01).update([make_batch(SENTENCES)], step=1)
    assert result.grad_norm == pytest.approx(norm, rel=1e-5)
    for name in before:
        torch.testing.assert_close(after[name], before[name] * (0.01 / norm), rtol=1e-3, atol=1e-8)


def test_adam_is_set_as_in_the_paper() -> None:
    group = make_learner().optimizer.param_groups[0]
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_the_optimiser_divides_the_gradient_as_if_it_had_been_done_before() -> None:
    """Twin: clipped mean gradients in an AdamW of the plain kind; three updates of unlike sizes."""
    learner, plain = make_learner(lr=0.1, clip_norm=0.1), make_learner(lr=0.1, clip_norm=0.1)
    optimizer = torch.optim.AdamW(
        plain.weights.values(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, foreach=False
    )
    for step, rows in enumerate((SENTENCES, SENTENCES[:1], SENTENCES[2:]), start=1):
        result = learner.update([make_batch(rows)], step=step)
        assert plain.try_to_add([make_batch(rows)])
        for weight in plain.weights.values():
            weight.grad /= result.num_tokens  # type: ignore[operator]
        norm = torch.nn.utils.clip_grad_norm_(plain.weights.values(), 0.1)
        assert result.grad_norm == pytest.approx(float(norm), rel=1e-5)
        optimizer.param_groups[0]["lr"] = result.lr
        optimizer.step()
    for name, weight in learner.weights.items():
        twin = plain.weights[name]
        torch.testing.assert_close(weight.grad, twin.grad, atol=1e-8, rtol=1e-4)
        # A step is as long as the rate, 0.1, and no more exact than the gradient it is made with.
        torch.testing.assert_close(weight, twin, atol=0.1 * 1e-4, rtol=0.0)


def test_weight_decay_is_decoupled_and_for_matrices_alone() -> None:
    """Each matrix shrinks by lr * weight_decay, whatever its gradient and Adam's moments are."""
    plain, decayed = make_learner(lr=0.1), make_learner(lr=0.1, weight_decay=0.5)
    before = {name: weight.detach().clone() for name, weight in plain.weights.items()}
    for learner in (plain, decayed):
        lr = learner.update([make_batch(SENTENCES)], step=4000).lr
    assert lr == 0.1
    for name, weight in decayed.weights.items():
        shrunk = lr * 0.5 * before[name] if weight.dim() > 1 else 0.0
        expected = plain.weights[name].detach() - shrunk
        torch.testing.assert_close(weight.detach(), expected, atol=1e-6, rtol=1e-5)


def test_the_rate_of_the_update_is_used() -> None:
    learner = make_learner(lr=0.5, warmup_steps=100)
    before = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    result = learner.update([make_batch(SENTENCES)], step=1)
    assert result.lr == 0.5 / 100
    # Adam's first step moves each weight by the rate, whatever its gradient.
    moved = max(
        float((learner.weights[name].detach() - before[name]).abs().max()) for name in before
    )
    assert moved == pytest.approx(0.005, rel=1e-3)


def test_the_average_follows_the_weights() -> None:
    learner = make_learner(ema=0.5)
    start = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    learner.update([make_batch(SENTENCES)], step=100)
    for name, average in learner.average.items():
        torch.testing.assert_close(average, (start[name] + learner.weights[name].detach()) / 2)
    assert not learner.decoding_model().training
    decoding = dict(learner.decoding_model().named_parameters())
    assert all(torch.equal(decoding[name], learner.average[name]) for name in decoding)


def test_the_average_forgets_the_random_start() -> None:
    learner = make_learner(ema=0.9999)
    start = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    learner.update([make_batch(SENTENCES)], step=1)
    name = "src_embedding.weight"
    left = 2 / 11  # (1 + step) / (10 + step)
    expected = start[name] * left + learner.weights[name].detach() * (1 - left)
    torch.testing.assert_close(learner.average[name], expected)


def test_an_update_without_a_finite_gradient_changes_nothing() -> None:
    learner = make_learner(ema=0.9)
    before = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    learner.weights["decoder.0.attention.qkv.bias"].register_hook(lambda grad: grad * math.nan)
    result = learner.update([make_batch(SENTENCES)], step=1)
    assert result.trouble == "the gradient was not finite"
    assert all(torch.equal(learner.weights[name], before[name]) for name in before)
    assert all(torch.equal(learner.average[name], before[name]) for name in before)


def test_an_update_that_runs_out_of_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, twin = make_learner(), make_learner()
    before = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    encode = learner.model.encode
    monkeypatch.setattr(learner.model, "encode", lambda *_: torch.empty(1 << 60))
    result = learner.update([make_batch(SENTENCES)], step=1)
    assert result.trouble == "rank 0 ran out of memory"
    assert all(torch.equal(learner.weights[name], before[name]) for name in before)
    monkeypatch.setattr(learner.model, "encode", encode)
    assert learner.update([make_batch(SENTENCES)], step=2) == twin.update(
        [make_batch(SENTENCES)], step=2
    )
    assert all(torch.equal(learner.weights[name], twin.weights[name]) for name in before)


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner()
    monkeypatch.setattr(learner.model, "encode", lambda *_: torch.ones(2, 3) @ torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        learner.update([make_batch(SENTENCES)], step=1)


def test_gradients_lie_in_one_buffer_and_stay_there() -> None:
    learner = make_learner()
    places = [weight.grad.data_ptr() for weight in learner.weights.values()]  # type: ignore[union-attr]
    buffers = {weight.grad.untyped_storage().data_ptr() for weight in learner.weights.values()}  # type: ignore[union-attr]
    assert len(buffers) == 1
    for step in (1, 2):
        learner.update([make_batch(SENTENCES)], step=step)
    assert places == [weight.grad.data_ptr() for weight in learner.weights.values()]  # type: ignore[union-attr]


def test_the_first_update_takes_no_memory_that_the_trial_has_not_seen() -> None:
    """Adam's moments are there before it, and are what Adam itself would begin with."""
    learner, twin = make_learner(), make_learner()
    moments = dict(learner.optimizer.state)
    assert sum(state["exp_avg"].numel() for state in moments.values()) >= sum(
        weight.numel() for weight in learner.weights.values()
    )
    twin.optimizer.state.clear()
    for step in (1, 2):
        for each in (learner, twin):
            each.update([make_batch(SENTENCES)], step=step)
    assert all(learner.optimizer.state[weights] is moments[weights] for weights in moments)
    assert learner.num_steps == 2
    for name, weight in learner.weights.items():
        assert torch.equal(weight, twin.weights[name])


def test_dropout_is_a_function_of_seed_and_step() -> None:
    def loss(step: int, seed: int) -> float:
        learner = make_learner(seed=seed)
        for module in learner.model.modules():
            if hasattr(module, "rate"):
                module.rate = 0.3
        torch.manual_seed(hash((step, seed)))  # what happened before must not matter
        return learner.update([make_batch(SENTENCES)], step=step).loss

    assert loss(3, 1) == loss(3, 1)
    assert len({loss(3, 1), loss(4, 1), loss(3, 2)}) == 3


def test_bf16_trains_the_same_fp32_weights_with_rounded_copies() -> None:
    """Rounding makes up to 0.2 of a gradient of 16 numbers; weights and average keep all bits."""
    exact, fast = make_learner(ema=0.5), make_learner(torch.bfloat16, ema=0.5)
    expected = gradients_after(exact, [SENTENCES[:4], SENTENCES[4:]])
    for name, gradient in gradients_after(fast, [SENTENCES[:4], SENTENCES[4:]]).items():
        assert gradient.dtype == fast.weights[name].dtype == torch.float32
        assert (gradient - expected[name]).norm() < 0.3 * expected[name].norm(), name
    assert {weight.dtype for weight in fast.average.values()} == {torch.float32}
    assert fast.model.output.weight.dtype == torch.bfloat16


def test_bf16_computes_with_the_newest_weights() -> None:
    learner = make_learner(torch.bfloat16)
    for step in (1, 2):
        learner.update([make_batch(SENTENCES)], step=step)
    learner.try_to_add([])
    decoding = learner.decoding_model()
    for name, weight in learner.weights.items():
        now = learner.model.get_parameter(name)
        assert torch.equal(now, weight.to(now.dtype)), name
        assert torch.equal(decoding.get_parameter(name), now), name
    assert torch.equal(
        learner.model.output.weight, learner.weights["src_embedding.weight"].bfloat16()
    )
    assert torch.equal(decoding.output.weight, learner.model.output.weight)
