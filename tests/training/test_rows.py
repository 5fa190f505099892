"""Rows: every weight has its place, and ranks that share memory each have a part of the steps."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from nmt.training.distributed import Ranks
from nmt.training.rows import Rows

SHAPES = {"a": (3, 5), "b": (7,), "c": (40, 30), "d": (1,)}


class OneOf(Ranks):
    """One of so many that share memory."""

    place_in_memory = (0, 1)


def make_rows(place: tuple[int, int] = (0, 1), *, has_average: bool = True) -> Rows:
    ranks = OneOf()
    ranks.place_in_memory = place  # type: ignore[misc]
    torch.manual_seed(0)
    weights = {name: nn.Parameter(torch.randn(shape)) for name, shape in SHAPES.items()}
    rows = Rows(weights, ranks, num_sums=3, has_average=has_average)
    for name, weight in weights.items():
        assert torch.equal(rows.views(rows.weights)[name], weight)
        assert rows.views(rows.weights)[name].data_ptr() == weight.data_ptr()
        assert weight.grad is not None
        assert rows.views(rows.gradient)[name].data_ptr() == weight.grad.data_ptr()
        assert weight.data_ptr() % 64 == weight.grad.data_ptr() % 64 == rows.weights.data_ptr() % 64
    return rows


def test_a_training_begins_with_no_gradient_no_moments_and_the_average_of_its_weights() -> None:
    rows = make_rows()
    assert not any(row.any() for row in (rows.gradient_and_sums, rows.exp_avg, rows.exp_avg_sq))
    assert rows.average is not None
    assert torch.equal(rows.average, rows.weights)
    assert len(rows.sums) == 3
    rows.sums.fill_(7)
    assert rows.gradient_and_sums.count_nonzero() == 3
    assert not rows.gradient.any()


def test_no_memory_is_taken_for_an_average_that_is_not_wanted() -> None:
    rows = make_rows(has_average=False)
    assert rows.average is None
    num_numbers = len(rows.gradient) + 16
    assert rows.weights.untyped_storage().nbytes() == 4 * num_numbers * torch.float32.itemsize


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_each_number_is_stepped_by_one_rank_and_whole_lines_of_the_cache_at_a_time(
    size: int,
) -> None:
    rows = [make_rows((rank, size)) for rank in range(size)]
    for shares in ([each.my_matrices for each in rows], [each.my_vectors for each in rows]):
        assert all(one.stop == next_.start for one, next_ in pairwise(shares))
        assert all(share.start % 16 == share.stop % 16 == 0 for share in shares)
    is_matrix = torch.zeros(len(rows[0].weights), dtype=torch.bool)
    is_matrix[rows[0].my_matrices.start : rows[-1].my_matrices.stop] = True
    is_vector = torch.zeros_like(is_matrix)
    is_vector[rows[0].my_vectors.start : rows[-1].my_vectors.stop] = True
    assert (is_matrix ^ is_vector).all()
    for name, mask in rows[0].views(is_matrix).items():
        assert mask.all() if len(SHAPES[name]) > 1 else not mask.any()
