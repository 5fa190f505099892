"""Lanes: each thread has its share of the cores, results come in order, and errors come through."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from nmt.decoding.lanes import open_lanes

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _four_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_each_lane_has_its_share_of_the_cores_and_all_are_there_after() -> None:
    meeting = threading.Barrier(4, timeout=20)

    def cores(_: int) -> int:
        meeting.wait()  # four at once, else this never ends
        return torch.get_num_threads()

    with open_lanes(CPU) as lanes:
        assert list(lanes.map(cores, range(4))) == [1] * 4
        assert torch.get_num_threads() == 4
    fresh: list[int] = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [4]


def test_results_come_in_the_order_of_the_work() -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.05 if number == 0 else 0)
        return number

    with open_lanes(CPU) as lanes:
        assert list(lanes.map(slow_first, range(6))) == [0, 1, 2, 3, 4, 5]


def test_an_error_ends_the_work_that_has_not_begun() -> None:
    begun = []

    def fail(number: int) -> None:
        begun.append(number)
        time.sleep(0.01)
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number 0"), open_lanes(CPU) as lanes:
        list(lanes.map(fail, range(1000)))
    assert len(begun) < 1000


def test_a_gpu_has_one_lane() -> None:
    with open_lanes(torch.device("cuda")) as lanes:
        assert len({*lanes.map(lambda _: threading.get_ident(), range(20))}) == 1
