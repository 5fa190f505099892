"""Positions: the sinusoids against the formula in plain Python, and learned ones."""

import math

import pytest
import torch

from nmt.model.positions import LearnedPositions, SinusoidalPositions, sinusoids

CPU = torch.device("cpu")


def formula(position: int, column: int, d_model: int) -> float:
    angle = position / 10_000 ** (2 * (column // 2) / d_model)
    return math.sin(angle) if column % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("d_model", [2, 6, 128])
def test_sinusoids_equal_the_formula(d_model: int) -> None:
    expected = [[formula(row, column, d_model) for column in range(d_model)] for row in range(300)]
    torch.testing.assert_close(sinusoids(300, d_model), torch.tensor(expected), atol=1e-4, rtol=0)


def test_sinusoids_can_start_later() -> None:
    assert torch.equal(sinusoids(4, 8, first=7), sinusoids(11, 8)[7:])


def test_table_gives_the_same_whatever_was_asked_before() -> None:
    asked_often, asked_once = SinusoidalPositions(8), SinusoidalPositions(8)
    for position in range(70):
        assert torch.equal(asked_often(1, position, CPU), sinusoids(1, 8, first=position))
    asked_often(3, 2, CPU)
    assert torch.equal(asked_often(90, 5, CPU), asked_once(90, 5, CPU))


def test_table_holds_no_weight_and_is_not_saved() -> None:
    positions = SinusoidalPositions(8)
    positions(10, 0, CPU)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_rows_of_a_weight() -> None:
    torch.manual_seed(0)
    positions = LearnedPositions(10, 8)
    assert torch.equal(positions(3, 4, CPU), positions.table_TD[4:7])
    positions(3, 4, CPU).sum().backward()
    gradient = positions.table_TD.grad
    assert gradient is not None
    assert gradient.ne(0).any(dim=1).nonzero().flatten().tolist() == [4, 5, 6]


def test_learned_positions_end() -> None:
    positions = LearnedPositions(10, 8)
    positions(10, 0, CPU)
    with pytest.raises(AssertionError, match="longer than max_positions"):
        positions(2, 9, CPU)
