"""A model whose first weights are never drawn, for those that are to take their place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DRAWS = {"normal_", "uniform_", "kaiming_uniform_"}


@contextmanager
def without_weights() -> Iterator[None]:
    """Let modules be made on the meta device, where weights have a shape alone.

    Draws do nothing: for one on that device torch would load its compiler, which takes a second.
    """
    with torch.device("meta"), _NoDraws():
        yield


class _NoDraws(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return None if func.__name__ in _DRAWS else func(*args, **kwargs or {})
