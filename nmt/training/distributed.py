"""The processes that train one model together: who they are, what they tell each other, and sums.

There is no DistributedDataParallel: in it, a process that runs out of memory in the backward pass
leaves the others waiting for ever. Here the processes first tell each other how their part of an
update went, and then sum one flat gradient, or skip the update together.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store, _abort_process_group
from torch.distributed.rendezvous import rendezvous

from nmt.errors import UserError
from nmt.training.shared_memory import forget_file, is_one_machine, new_file, open_file

T = TypeVar("T")

# How long those whose talk failed wait for each other, to tell who is missing.
_GRACE_S = 1.0
# Numbers of each rank that are summed at once: few enough to stay in the cache.
_PIECE = 65536
_FOREVER = timedelta(days=365)
_MEETING_TIMEOUT = timedelta(minutes=5)
_FAILURE = "nmt/failure"
_NOBODY_LEFT = (
    "rank 0 or the process that started the ranks is gone, or its machine. All stop; the same "
    "command goes on from the last checkpoint."
)


class Ranks:
    """One process among `size`; alone, nothing is sent to anyone."""

    def __init__(self, rank: int = 0, size: int = 1, store: Store | None = None) -> None:
        self.rank, self.size = rank, size
        self._store = store
        self._launcher = os.getppid()
        self._num_talks = 0
        self._shared: Tensor | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    @property
    def is_abandoned(self) -> bool:
        """Whether the process that started the ranks is gone, so that nobody can stop them."""
        return self.size > 1 and os.getppid() != self._launcher

    def gather(self, values: Sequence[float]) -> Tensor:
        """Return what every rank gave, fp64 of shape (size, len(values)), on the CPU.

        Raises UserError that names the ranks that do not come in time, or are gone.
        """
        mine = torch.tensor(values, dtype=torch.float64)
        if self.size == 1:
            return mine[None]
        rows = [torch.empty_like(mine) for _ in range(self.size)]
        self._talk(lambda: dist.all_gather(rows, mine))
        return torch.stack(rows)

    def gather_objects(self, value: T) -> list[T]:
        """Return what every rank gave, in the order of ranks."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        self._talk(lambda: dist.all_gather_object(values, value))
        return values

    def new_rows(
        self, num_elements: int, num_common: int, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Return zeros, fp32: this rank's row for `sum_`, and rows that the ranks have in common.

        Common are they in memory that the ranks share, where they can; else each has its own. gloo
        takes 23 ms for the 30 MB of a small model between two processes, shared memory 3 ms.
        """
        name = ""
        num_rows = self.size + num_common
        if self.size > 1 and device.type == "cpu" and is_one_machine():
            mine = new_file(num_rows * num_elements) if self.is_first else ""
            name = self.gather_objects(mine)[0]
        if not name:
            rows = torch.zeros(1 + num_common, num_elements, device=device)
            return rows[0], rows[1:]
        rows = open_file(name, num_rows * num_elements).view(num_rows, num_elements)
        self.gather([0])
        if self.is_first:
            forget_file(name)
        self._shared = rows[: self.size]
        return self._shared[self.rank], rows[self.size :]

    @property
    def place_in_memory(self) -> tuple[int, int]:
        """Which one this is of how many that have rows in common."""
        return (0, 1) if self._shared is None else (self.rank, self.size)

    def meet(self) -> None:
        """Wait until all have written what is theirs of the common rows."""
        if self._shared is not None:
            self.gather([0])

    def sum_(self, buffer: Tensor) -> None:
        """Replace a buffer by its sum over all ranks, the same bits on each."""
        if self.size == 1:
            return
        if self._shared is None:
            self._talk(lambda: dist.all_reduce(buffer))
            return
        self.meet()
        width = -(-buffer.numel() // self.size)
        mine = self._shared[:, self.rank * width : (self.rank + 1) * width]
        for piece in torch.split(mine, _PIECE, dim=1):
            total, *others = piece.unbind()
            for other in others:
                total += other
            for other in others:
                other.copy_(total)
        self.meet()

    def first(self, work: Callable[[], T], name: str) -> T | None:
        """Let the first rank work, however long, and return what comes of it; None elsewhere.

        The others wait for its end. Raises UserError where the first rank failed.
        """
        if self._store is None:
            return work()
        place = f"nmt/done/{name}"
        if not self.is_first:
            try:
                self._store.wait([place], _FOREVER)
            except RuntimeError:
                raise UserError(_NOBODY_LEFT) from None
            if told := self._told():
                raise UserError(told)
            return None
        try:
            return work()
        except BaseException as error:
            self.tell(error)
            raise
        finally:
            with suppress(RuntimeError):
                self._store.set(place, "1")

    def tell(self, error: BaseException) -> None:
        """Let the others know why this rank ends; whoever tells first is believed."""
        if self._store is None:
            return
        what = str(error) if isinstance(error, UserError) else f"stopped by {error!r}"
        with suppress(RuntimeError):
            told = f"rank {self.rank} ({socket.gethostname()}): {what}"
            self._store.compare_set(_FAILURE, "", told)

    def _talk(self, talk: Callable[[], object]) -> None:
        assert self._store is not None
        self._num_talks += 1
        with suppress(RuntimeError):  # where the launcher is gone, the ranks can still talk
            self._store.set(f"nmt/talk/{self.rank}", str(self._num_talks))
        try:
            talk()
            return
        except RuntimeError as error:
            why = str(error)
        # All that wait for this one notice now, not when their own time is up. Not before here, as
        # the exception holds on to the sockets. It is private, but destroy_process_group waits for
        # all ranks under NCCL, and one may be gone; abort of the group alone keeps the sockets.
        _abort_process_group()
        raise UserError(self._what_happened(why))

    def _what_happened(self, error: str) -> str:
        """Return what a rank that failed has told, or who did not come; the same on all ranks."""
        assert self._store is not None
        try:
            self._store.set(f"nmt/waiting/{self.rank}", "1")
            if not self._told():
                time.sleep(_GRACE_S)
            what = self._told() or self._who_is_missing() or f"the ranks lost touch: {error}"
            return self._store.compare_set(_FAILURE, "", what).decode()
        except RuntimeError:
            return _NOBODY_LEFT

    def _told(self) -> str:
        assert self._store is not None
        return self._store.get(_FAILURE).decode() if self._store.check([_FAILURE]) else ""

    def _who_is_missing(self) -> str:
        store = self._store
        assert store is not None
        lost = [rank for rank in range(self.size) if not store.check([f"nmt/waiting/{rank}"])]
        # One that talks and has not noticed yet is not to blame; one that died as it talked is.
        late = [rank for rank in lost if self._num_talks_of(rank) < self._num_talks]
        names = ", ".join(
            f"rank {rank} ({store.get(f'nmt/host/{rank}').decode()})" for rank in late or lost
        )
        return names and (
            f"{names} did not come to where the other ranks wait: it is late beyond "
            f"training.rank_timeout_minutes, or gone. All stop; the same command goes on from the "
            f"last checkpoint."
        )

    def _num_talks_of(self, rank: int) -> int:
        assert self._store is not None
        place = f"nmt/talk/{rank}"
        return int(self._store.get(place)) if self._store.check([place]) else 0


@contextmanager
def connect(device: torch.device, timeout_minutes: float) -> Iterator[Ranks]:
    """Meet the other processes that torchrun or `nmt train --devices` started, if any.

    `device` is the one that this process computes on.
    """
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks()
        return
    is_cuda = device.type == "cuda"
    try:
        store = _meet(rank, size)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if is_cuda else "gloo",
            store=PrefixStore("group", store),
            rank=rank,
            world_size=size,
            timeout=timedelta(minutes=timeout_minutes),
            device_id=device if is_cuda else None,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"the ranks did not find each other: {str(error).splitlines()[0]}"
        ) from None
    ranks = Ranks(rank, size, store)
    try:
        yield ranks
    except BaseException as error:
        ranks.tell(error)  # and the process ends, as the others must see
        raise
    dist.destroy_process_group()


def _meet(rank: int, size: int) -> Store:
    """Return what all ranks of this start read and write, and nobody of an earlier one.

    torchrun may keep a store from one start to the next, with the addresses of processes that are
    gone. So each rank but the first leaves a name that is new, and the first answers to it.
    """
    store, _, _ = next(rendezvous("env://", timeout=_MEETING_TIMEOUT))
    name = uuid.uuid4().hex
    if rank > 0:
        store.set(f"nmt/here/{rank}", name)
        store.wait([f"nmt/welcome/{name}"], _MEETING_TIMEOUT)
        store = PrefixStore(store.get(f"nmt/welcome/{name}").decode(), store)
        store.set(f"nmt/host/{rank}", socket.gethostname())
        return store
    ours = PrefixStore(name, store)
    ours.set("nmt/host/0", socket.gethostname())
    deadline = time.monotonic() + _MEETING_TIMEOUT.total_seconds()
    while absent := [other for other in range(size) if not ours.check([f"nmt/host/{other}"])]:
        for other in absent:
            if store.check([f"nmt/here/{other}"]):
                store.set(f"nmt/welcome/{store.get(f'nmt/here/{other}').decode()}", name)
        if time.monotonic() > deadline:
            names = ", ".join(f"rank {other}" for other in absent)
            raise UserError(
                f"{names} did not come within {_MEETING_TIMEOUT.seconds // 60} minutes."
            )
        time.sleep(0.02)
    return ours
