"""The learning rate against the formula of the paper."""

import pytest

from nmt.training.schedule import learning_rate


@pytest.mark.parametrize("step", [1, 17, 3999, 4000, 4001, 100_000])
def test_it_is_the_formula_of_the_paper(step: int) -> None:
    paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    peak = 512**-0.5 * 4000**-0.5
    assert learning_rate(step, peak=peak, warmup_steps=4000) == pytest.approx(paper, rel=1e-12)


def test_the_peak_is_reached_at_the_end_of_the_warm_up_and_never_passed() -> None:
    rates = [learning_rate(step, peak=0.5, warmup_steps=10) for step in range(1, 200)]
    assert max(rates) == rates[9] == 0.5
    assert rates[:10] == sorted(rates[:10])
    assert rates[9:] == sorted(rates[9:], reverse=True)
