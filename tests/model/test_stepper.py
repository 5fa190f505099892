"""Steps with a state against the teacher-forced decode, their slow twin."""

from typing import Literal

import pytest
import torch
from torch import Tensor

from nmt.config import ModelConfig
from nmt.model.attention import merge_heads
from nmt.model.state import DecoderState, look
from nmt.model.stepper import Stepper
from nmt.model.transformer import Transformer, compute_in, keep_real
from nmt.tokens.vocab import PAD, START, STOP

Norm = Literal["post", "pre"]
Positions = Literal["sinusoidal", "learned"]
KINDS: list[tuple[Norm, Positions]] = [
    ("post", "sinusoidal"),
    ("post", "learned"),
    ("pre", "sinusoidal"),
    ("pre", "learned"),
]
NUM_PIECES = 19
SRC_BS = torch.tensor(
    [[5, 6, 7, 8, STOP], [9, 4, STOP, PAD, PAD], [8, 8, 7, STOP, PAD], [STOP, PAD, PAD, PAD, PAD]]
)


def small(norm: Norm, positions: Positions) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=12,
        d_ff=20,
        num_heads=3,
        num_layers=(1, 2),
        norm=norm,
        positions=positions,
        max_positions=12,
    )
    return Transformer(config, src_vocab=NUM_PIECES, tgt_vocab=NUM_PIECES).eval()


def start(model: Transformer, src_BS: Tensor) -> tuple[Stepper, DecoderState]:
    stepper = Stepper(model)
    return stepper, stepper.start(src_BS, keep_real(src_BS))


def slow_step(model: Transformer, src_BS: Tensor, prefixes_BWT: Tensor) -> Tensor:
    """Return the logits after each prefix from a decode of all of it, shape BWV."""
    num_beams = prefixes_BWT.shape[1]
    logits_RTV = model(src_BS.repeat_interleave(num_beams, 0), prefixes_BWT.flatten(0, 1))
    return logits_RTV[:, -1].view(len(src_BS), num_beams, -1)


def random_pieces(num_sentences: int, num_beams: int) -> Tensor:
    return torch.randint(4, NUM_PIECES, (num_sentences, num_beams))


@torch.no_grad()
@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_steps_of_one_beam_equal_the_full_decode(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    stepper, state = start(model, SRC_BS)
    tgt_BT = torch.cat((torch.full((4, 1), START), random_pieces(4, 8)), dim=1)
    expected_BTV = model(SRC_BS, tgt_BT)
    for position in range(9):
        logits_BWV, state = stepper.step(tgt_BT[:, position : position + 1], state)
        torch.testing.assert_close(
            logits_BWV[:, 0], expected_BTV[:, position], atol=1e-5, rtol=1e-5
        )


# Sentences that stay and, of each, its beams: reordered, repeated, dropped, fewer, more again.
SELECTIONS = [
    ([0, 1, 2, 3], [[0, 0, 0]] * 4),
    ([0, 1, 2, 3], [[2, 0, 1], [0, 1, 2], [1, 1, 0], [2, 2, 2]]),
    ([0, 2, 3], [[1, 2, 0], [0, 0, 2], [2, 1, 0]]),
    ([1, 2], [[2, 0], [1, 1]]),
    ([0, 1], [[1, 0, 1], [0, 0, 1]]),
    ([1], [[2, 1, 0]]),
]


@torch.no_grad()
@pytest.mark.parametrize(("norm", "positions"), KINDS)
def test_steps_of_selected_beams_equal_the_full_decode(norm: Norm, positions: Positions) -> None:
    model = small(norm, positions)
    src_BS = SRC_BS
    stepper, state = start(model, SRC_BS)
    prefixes_BWT = torch.full((4, 1, 1), START)
    for sentences, beams in SELECTIONS:
        logits_BWV, state = stepper.step(prefixes_BWT[:, :, -1], state)
        expected_BWV = slow_step(model, src_BS, prefixes_BWT)
        torch.testing.assert_close(logits_BWV, expected_BWV, atol=1e-5, rtol=1e-5)
        sentences_B, beams_BW = torch.tensor(sentences), torch.tensor(beams)
        state = state.select(sentences_B, beams_BW)
        src_BS = src_BS[sentences_B]
        prefixes_BWT = prefixes_BWT[sentences_B[:, None], beams_BW]
        chosen_BW1 = random_pieces(*beams_BW.shape)[:, :, None]
        prefixes_BWT = torch.cat((prefixes_BWT, chosen_BW1), dim=2)
    logits_BWV, _ = stepper.step(prefixes_BWT[:, :, -1], state)
    expected_BWV = slow_step(model, src_BS, prefixes_BWT)
    torch.testing.assert_close(logits_BWV, expected_BWV, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_keys_of_the_memory_are_held_once_a_sentence_and_beams_move_no_keys() -> None:
    model = small("post", "sinusoidal")
    stepper, state = start(model, SRC_BS)
    _, state = stepper.step(torch.full((4, 1), START), state)
    wide = state.select(torch.arange(4), torch.zeros(4, 3, dtype=torch.long))
    stepper.step(torch.full((4, 3), 5), wide)
    swapped = wide.select(torch.arange(4), torch.tensor([[2, 0, 1]] * 4))
    for old, new in zip(wide.layers, swapped.layers, strict=True):
        assert new.memory_2BHSK is old.memory_2BHSK
        assert new.memory_2BHSK.shape[1] == 4
        assert new.past_2BHMK is old.past_2BHMK


@torch.no_grad()
def test_the_past_is_copied_every_few_steps_only() -> None:
    model = small("post", "sinusoidal")
    stepper, state = start(model, SRC_BS)
    pasts = []
    for _ in range(12):
        _, state = stepper.step(torch.full((4, 1), START), state)
        pasts.append(state.layers[0].past_2BHMK)
    assert len({id(past) for past in pasts}) == 2
    assert state.num_slots == state.num_positions == 12


@torch.no_grad()
@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("num_sentences", [1, 50])
def test_look_is_attention_with_a_mask(num_sentences: int, num_beams: int) -> None:
    torch.manual_seed(0)
    q_BHWK = torch.randn(num_sentences, 4, num_beams, 6)
    kv_2BHMK = torch.randn(2, num_sentences, 4, 5, 6)
    keep_BWM = torch.rand(num_sentences, num_beams, 5) < 0.6
    keep_BWM[..., 0] = True
    hidden_BWM = torch.where(keep_BWM, 0.0, -torch.inf)
    k_BHMK, v_BHMK = kv_2BHMK
    scores_BHWM = q_BHWK @ k_BHMK.transpose(-1, -2) / 6**0.5 + hidden_BWM[:, None]
    expected_BWD = merge_heads(scores_BHWM.softmax(-1) @ v_BHMK)
    torch.testing.assert_close(look(q_BHWK, kv_2BHMK, hidden_BWM), expected_BWD)


@torch.no_grad()
def test_state_follows_the_precision_of_the_model() -> None:
    model = compute_in(small("post", "sinusoidal"), torch.bfloat16)
    tgt_BT = torch.cat((torch.full((4, 1), START), random_pieces(4, 3)), dim=1)
    expected_BTV = model(SRC_BS, tgt_BT).float()
    stepper, state = start(model, SRC_BS)
    for position in range(4):
        logits_BWV, state = stepper.step(tgt_BT[:, position : position + 1], state)
        torch.testing.assert_close(
            logits_BWV[:, 0].float(), expected_BTV[:, position], atol=0.06, rtol=0
        )
    assert {layer.past_2BHMK.dtype for layer in state.layers} == {torch.bfloat16}
