"""Finds out before the first update how much of the largest group the device takes at once."""

import time

from nmt.errors import UserError
from nmt.training.feed import Feed
from nmt.training.step import Learner


def fit_largest_group(learner: Learner, feed: Feed) -> float:
    """Train on the largest group without learning; return the seconds a padded token took.

    Where memory does not suffice, on any rank, all take less at once. Later groups take less time,
    as this one fetches the memory.
    """
    while True:
        batches, padded_size = feed.largest_group()
        start = time.monotonic()
        is_enough = learner.try_to_add(batches)
        elapsed_s = time.monotonic() - start
        learner.forget_gradient()
        if learner.ranks.gather([is_enough]).all():
            return elapsed_s / padded_size
        if len(batches[0].src_BS) == 1:
            raise UserError(
                f"a single pair of {padded_size:,} tokens needs more memory than "
                f"{learner.device} has; lower clean.max_tokens or the model."
            )
        feed.device_tokens //= 2
