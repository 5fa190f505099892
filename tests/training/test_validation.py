"""The dev loss is a mean over tokens, not over batches."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn import functional as F

from nmt.config import ModelConfig
from nmt.model.transformer import Transformer
from nmt.tokens.batches import make_batch
from nmt.tokens.store import TokenStore, make_rows, write_store
from nmt.training.feed import dev_groups
from nmt.training.validation import DevResult, validate

ROWS = [[5, 2], [4, 5, 6, 7, 8, 9, 2], [6, 7, 2], [9, 8, 7, 6, 5, 4, 5, 6, 7, 8, 9, 4, 2]]


def test_loss_and_accuracy_are_means_over_real_tokens(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_layers=(1, 1))
    model = Transformer(config, src_vocab=12, tgt_vocab=12).eval()
    numbers = pa.array(range(4), pa.int64())
    with write_store(tmp_path / "dev.arrow") as writer:
        writer.write(make_rows(ROWS, ROWS, numbers.cast(pa.int32()), numbers))
    store = TokenStore(tmp_path / "dev.arrow")
    groups = dev_groups(store, group_tokens=8)
    assert len(groups) > 2  # the last pair is longer than a group, and still counted
    assert sorted(np.concatenate(groups)) == [0, 1, 2, 3]
    losses, right = [], []
    for row in range(4):  # the slow twin: one sentence at a time, one position at a time
        batch = make_batch(store, np.array([row]))
        logits_TV = model(batch.src_BS, batch.tgt_in_BT)[0]
        for logits_V, target in zip(logits_TV, batch.tgt_out_BT[0], strict=True):
            losses.append(F.cross_entropy(logits_V, target).item())
            right.append(bool(logits_V.argmax() == target))
    dev = validate(model, store, groups)
    assert dev.loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert dev.accuracy == pytest.approx(np.mean(right))
    assert dev.ppl == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)


@pytest.mark.parametrize(
    ("accuracy", "bleu", "is_alarm"), [(0.95, 10.0, True), (0.95, 80.0, False), (0.5, 1.0, False)]
)
def test_an_alarm_needs_both_certainty_and_bad_translations(
    accuracy: float, bleu: float, is_alarm: bool
) -> None:
    assert DevResult(loss=0.1, accuracy=accuracy).contradicts(bleu) == is_alarm
