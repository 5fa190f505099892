"""Models without weights."""

import subprocess
import sys

import torch

from nmt.config import ModelConfig
from nmt.model.blank import without_weights
from nmt.model.transformer import Transformer

CONFIG = ModelConfig(d_model=8, d_ff=16, num_heads=2, num_layers=(1, 1), positions="learned")


def test_weights_have_the_shapes_of_real_ones_and_nothing_is_drawn() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    with without_weights():
        blank = Transformer(CONFIG, src_vocab=9, tgt_vocab=9)
    assert torch.equal(torch.rand(1), expected)
    real = Transformer(CONFIG, src_vocab=9, tgt_vocab=9)
    for (name, one), (_, other) in zip(
        blank.named_parameters(), real.named_parameters(), strict=True
    ):
        assert (one.shape, one.device.type) == (other.shape, "meta"), name


def test_no_compiler_is_loaded() -> None:
    code = (
        "import sys\n"
        "from nmt.config import ModelConfig\n"
        "from nmt.model.blank import without_weights\n"
        "from nmt.model.transformer import Transformer\n"
        "with without_weights(): Transformer(ModelConfig(d_model=8), src_vocab=9, tgt_vocab=9)\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
