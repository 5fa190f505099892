"""The positions of a batch's sentences one after another, as the layers compute on them."""

from torch import Tensor
from torch.nn import functional as F

_MULTIPLE = 32


def as_cells(x_BTD: Tensor) -> Tensor:
    """Return what stands at each position, filled up, shape CD."""
    return fill_up(x_BTD.flatten(0, 1))


def fill_up(x_CD: Tensor) -> Tensor:
    """On CPUs, add rows of zeros until they are a multiple of 32.

    oneDNN writes a kernel for each size of matrix that it meets, which takes longer than to run it,
    and batches have hundreds of sizes.
    """
    if x_CD.device.type != "cpu":
        return x_CD
    return F.pad(x_CD, (0, 0, 0, -len(x_CD) % _MULTIPLE))


def as_sentences(x_CD: Tensor, num_sentences: int, num_positions: int) -> Tensor:
    """Undo as_cells: return the cells that are of a sentence, shape BTD."""
    num_cells = num_sentences * num_positions
    if len(x_CD) != num_cells:
        x_CD = x_CD[:num_cells]
    return x_CD.view(num_sentences, num_positions, *x_CD.shape[1:])
