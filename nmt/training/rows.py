"""What training keeps of each weight, in fp32: a row of each kind, where all have their places.

So one sum over the ranks does for all gradients, and each rank of a machine makes the step of the
optimiser on its share of the rows, which all of them see.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nmt.training.distributed import Ranks

# Each weight begins at a multiple of so many numbers: 64 bytes, a line of the cache.
_ALIGNMENT = 16


class Rows:
    """Weights, their gradient, Adam's moments and the average: matrices first, then vectors."""

    def __init__(
        self,
        weights: Mapping[str, nn.Parameter],
        ranks: Ranks,
        *,
        num_sums: int,
        has_average: bool,
    ) -> None:
        """Let each weight and its gradient lie in its row; after the gradients come the sums."""
        kinds = [
            {name: weight.shape for name, weight in weights.items() if (weight.dim() > 1) is wanted}
            for wanted in (True, False)
        ]
        self._shapes = kinds[0] | kinds[1]
        self._num_matrix, self._num_vector = (sum(map(_room, kind.values())) for kind in kinds)
        self._ranks = ranks
        num_elements = self._num_matrix + self._num_vector
        device = next(iter(weights.values())).device
        num_common = 4 if has_average else 3
        # With room for the sums in a line of their own, the next row begins with a line too.
        row, common = ranks.new_rows(num_elements + _ALIGNMENT, num_common, device)
        self.gradient_and_sums = row[: num_elements + num_sums]
        self.gradient, self.sums = torch.split(self.gradient_and_sums, [num_elements, num_sums])
        self.weights, self.exp_avg, self.exp_avg_sq, *average = common[:, :num_elements]
        self.average = average[0] if average else None
        places, gradients = self.views(self.weights), self.views(self.gradient)
        for name, weight in weights.items():
            places[name].copy_(weight.detach())
            weight.data, weight.grad = places[name], gradients[name]
        if self.average is not None:
            self.average.copy_(self.weights)
        ranks.meet()  # else a slow rank could begin anew what another has loaded by now

    def views(self, row: Tensor) -> dict[str, Tensor]:
        """Return the place of each weight in a row, in its shape."""
        parts = torch.split(row, [*map(_room, self._shapes.values())])
        return {
            name: part[: shape.numel()].view(shape)
            for part, (name, shape) in zip(parts, self._shapes.items(), strict=True)
        }

    @property
    def my_matrices(self) -> slice:
        """Where this rank makes the optimiser's step on matrices."""
        return self._share(0, self._num_matrix)

    @property
    def my_vectors(self) -> slice:
        """The same for biases and norms."""
        return self._share(self._num_matrix, self._num_vector)

    def _share(self, first: int, length: int) -> slice:
        rank, size = self._ranks.place_in_memory
        width = -(-length // (size * _ALIGNMENT)) * _ALIGNMENT
        start, stop = (min(number * width, length) for number in (rank, rank + 1))
        return slice(first + start, first + stop)


def _room(shape: torch.Size) -> int:
    return -(-shape.numel() // _ALIGNMENT) * _ALIGNMENT
