"""Cells: few sizes for the kernels of CPUs, and nothing lost."""

import pytest
import torch

from nmt.config import ModelConfig, TrainingConfig
from nmt.model import cells
from nmt.model.cells import as_cells, as_sentences
from nmt.model.transformer import Transformer
from nmt.tokens.batches import Batch, shift
from nmt.tokens.padding import pad
from nmt.training.step import Learner

SRC = [[5, 6, 2], [7, 2], [4, 5, 6, 7, 8, 9, 10, 11, 2], [9, 9, 2], [8, 2], [5, 2], [7, 8, 2]]
TGT = [[4, 5, 5, 5, 5, 6, 2], [7, 2], [4, 5, 2], [9, 9, 2], [4, 4, 2], [6, 2], [11, 2]]


@pytest.mark.parametrize(("num_sentences", "num_cells"), [(1, 32), (10, 32), (11, 64), (32, 96)])
def test_cells_are_a_multiple_of_32_and_come_back(num_sentences: int, num_cells: int) -> None:
    x_BTD = torch.randn(num_sentences, 3, 4)
    x_CD = as_cells(x_BTD)
    assert x_CD.shape == (num_cells, 4)
    assert not x_CD[num_sentences * 3 :].any()
    assert torch.equal(as_sentences(x_CD, num_sentences, 3), x_BTD)


def test_cells_of_no_sentence_change_neither_loss_nor_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def results() -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(0)
        config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(2, 2), dropout=0.0)
        learner = Learner(
            Transformer(config, src_vocab=12, tgt_vocab=12), TrainingConfig(), torch.float32
        )
        learner.add_gradient(Batch(pad(SRC), *shift(pad(TGT))))
        return learner._rows.sums, learner._rows.gradient

    sums, gradient = results()
    monkeypatch.setattr(cells, "_MULTIPLE", 1)
    exact_sums, exact_gradient = results()
    torch.testing.assert_close(sums, exact_sums, atol=0, rtol=1e-6)
    torch.testing.assert_close(gradient, exact_gradient, atol=1e-6, rtol=1e-6)
