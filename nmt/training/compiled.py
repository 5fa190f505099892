"""Compiles the layers of a model in place, each for tensors of any size."""

import importlib.util
import os
import shutil

import torch.fx.experimental._config

from nmt.errors import UserError
from nmt.model.transformer import Transformer


def compile_layers(model: Transformer) -> None:
    """Let torch compile each layer when it is first called; names of weights stay as they are.

    Raises UserError where what compiles is not there.
    """
    _check(model.output.weight.device.type)
    # Else a first batch in which two sizes are the same by chance is compiled for such alone, and
    # which code the later ones run, so how they round, depends on where a run began.
    torch.fx.experimental._config.use_duck_shape = False
    for layer in (*model.encoder, *model.decoder):
        layer.compile(dynamic=True)


def _check(device: str) -> None:
    compiler = os.environ.get("CXX", "g++")
    if device == "cuda":
        what, is_there = "triton", importlib.util.find_spec("triton") is not None
    else:
        what, is_there = f"the C++ compiler {compiler}", shutil.which(compiler) is not None
    if not is_there:
        raise UserError(
            f"training.compile on {device} needs {what}, which is not there; install it, or set "
            f"training.compile to false."
        )
