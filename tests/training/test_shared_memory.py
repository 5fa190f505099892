"""Memory that processes share: reserved or not there, and gone with its name."""

import os
from pathlib import Path

import pytest
import torch

from nmt.training.shared_memory import forget_file, new_file, open_file

FOLDER = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="this system has no /dev/shm")


def test_what_one_writes_the_other_reads() -> None:
    name = new_file(5)
    one, other = open_file(name, 5), open_file(name, 5)
    forget_file(name)
    assert not Path(name).exists()
    assert torch.equal(one, torch.zeros(5))
    one[3] = 7
    assert other.tolist() == [0, 0, 0, 7, 0]


def test_more_than_there_is_gives_no_name_and_leaves_nothing() -> None:
    assert new_file(1 << 50) == ""
    assert not any(FOLDER.glob(f"nmt-{os.getpid()}-*"))
