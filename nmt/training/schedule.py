"""The learning rate as a pure function of the update number."""

import math


def learning_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return the rate of update `step`, counted from 1: up in a line, down as 1 / sqrt(step).

    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (Vaswani 2017, 5.3), scaled so that
    its peak, at warmup_steps, is `peak`.
    """
    return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))
