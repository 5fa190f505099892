"""Threads that decode batches side by side, each on its share of the cores."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

# Python's lock is held between the operations of torch: more threads would wait for it.
_MAX_LANES = 4


@contextmanager
def open_lanes(device: torch.device) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that share the cores which torch uses; a GPU has one. What is left is dropped.

    Small matrices gain little from a second core: two batches on a core each are sooner done than
    one after the other on both.
    """
    num_cores = torch.get_num_threads()
    num_lanes = min(num_cores, _MAX_LANES) if device.type == "cpu" else 1
    pool = ThreadPoolExecutor(
        num_lanes, "lane", initializer=torch.set_num_threads, initargs=(num_cores // num_lanes,)
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(num_cores)  # what threads to come begin with is set by the last call
