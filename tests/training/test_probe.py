"""How much of the largest group a device takes: halved until it fits, and nothing is learned."""

from collections.abc import Sequence

import pytest
import torch
from prepared import prepare_small, write_small

from nmt.config import Config, load_config
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch
from nmt.tokens.vocab import load_vocabs
from nmt.training.feed import Feed
from nmt.training.probe import fit_largest_group
from nmt.training.step import Learner


class SmallDevice(Learner):
    """A learner on a device that has room for so many pairs at once."""

    room = 0

    def try_to_add(self, batches: Sequence[Batch]) -> bool:
        fits = max(len(batch.src_BS) for batch in batches) <= self.room
        return super().try_to_add(batches) and fits


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return prepare_small(write_small(tmp_path_factory.mktemp("probe")))[0]


def both(run: RunFolder, room: int) -> tuple[SmallDevice, Feed]:
    config: Config = load_config(run.config_file)
    vocabs = load_vocabs(config, run)
    model = Transformer(config.model, src_vocab=len(vocabs.src), tgt_vocab=len(vocabs.tgt))
    learner = SmallDevice(model, config.training, torch.float32)
    learner.room = room
    return learner, Feed(config, run, vocabs)


def test_a_group_is_halved_until_it_fits(run: RunFolder) -> None:
    learner, feed = both(run, room=4)
    num_pairs = sum(len(batch.src_BS) for batch in feed.largest_group()[0])
    assert num_pairs > 8
    before = {name: weight.detach().clone() for name, weight in learner.weights.items()}
    assert fit_largest_group(learner, feed) > 0
    parts = feed.largest_group()[0]
    assert max(len(batch.src_BS) for batch in parts) <= 4
    assert sum(len(batch.src_BS) for batch in parts) == num_pairs
    for name, weight in learner.weights.items():
        assert torch.equal(weight, before[name])
        assert weight.grad is not None and not weight.grad.any()


def test_what_fits_stays_whole(run: RunFolder) -> None:
    learner, feed = both(run, room=1000)
    before = feed.device_tokens
    fit_largest_group(learner, feed)
    assert feed.device_tokens == before


def test_a_single_pair_that_does_not_fit_is_refused(run: RunFolder) -> None:
    learner, feed = both(run, room=0)
    with pytest.raises(UserError, match="a single pair of .* tokens needs more memory than cpu"):
        fit_largest_group(learner, feed)
