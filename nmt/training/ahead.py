"""Makes what comes next in a thread, while the caller is busy with what came before."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Place = TypeVar("Place")
Made = TypeVar("Made")


class Ahead(Generic[Place, Made]):
    """Calls `make` for one place after the other, always in the same thread."""

    def __init__(self, make: Callable[[Place], Made]) -> None:
        self._make = make
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead")
        self._begun: tuple[Place, Future[Made]] | None = None

    def begin(self, place: Place) -> "Future[Made]":
        """Begin with what will be taken next."""
        future = self._worker.submit(self._make, place)
        self._begun = place, future
        return future

    def take(self, place: Place) -> Made:
        """Return what was made for a place, whether or not it was begun; raises what `make` did."""
        if self._begun and self._begun[0] == place:
            return self._begun[1].result()
        return self.begin(place).result()
