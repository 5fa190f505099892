"""What is made in a thread is what would be made without one, and so are its errors."""

import threading

import pytest

from nmt.training.ahead import Ahead


def test_what_was_begun_is_taken_and_made_once() -> None:
    made: list[int] = []

    def make(place: int) -> int:
        made.append(place)
        return 10 * place

    ahead = Ahead(make)
    ahead.begin(1)
    assert [ahead.take(place) for place in (1, 2, 5)] == [10, 20, 50]
    assert made == [1, 2, 5]


def test_another_place_than_was_begun_is_made_all_the_same() -> None:
    ahead = Ahead(str)
    ahead.begin(1)
    assert ahead.take(7) == "7"


def test_the_caller_goes_on_meanwhile() -> None:
    may_go_on = threading.Event()
    ahead = Ahead(lambda place: (place, may_go_on.wait(timeout=10)))
    ahead.begin(1)
    may_go_on.set()  # would come too late, were it made by the caller
    assert ahead.take(1) == (1, True)


def test_an_error_comes_where_it_is_taken() -> None:
    ahead = Ahead(lambda place: 1 // place)
    ahead.begin(0)
    with pytest.raises(ZeroDivisionError):
        ahead.take(0)
    assert ahead.take(1) == 1
