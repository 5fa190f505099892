"""Hands the loop the batches of the next update, wherever the run stands."""

import numpy as np

from nmt.config import Config
from nmt.data.shards import Ints
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, Planner, Update, make_batch
from nmt.tokens.store import TokenStore
from nmt.training.checkpoint import Progress


class Feed:
    """The training pairs of a run as a sequence of updates that never ends."""

    def __init__(self, config: Config, run: RunFolder) -> None:
        self._store = TokenStore(run.store)
        weights = np.array([spec.weight for spec in config.data.train])
        training = config.training
        self._planner = Planner(
            self._store.lengths("src"),
            self._store.lengths("tgt"),
            weights[self._store.corpora()],
            batch_tokens=training.batch_tokens,
            group_tokens=training.group_tokens,
            seed=training.seed,
        )
        self._check_lengths(config)
        self._epoch = -1
        self._updates: list[Update] = []

    def epoch(self, epoch: int) -> list[Update]:
        """Return the updates of an epoch; those of the current one are planned once."""
        if epoch != self._epoch:
            self._epoch, self._updates = epoch, self._planner.epoch(epoch)
        return self._updates

    def next_update(self, progress: Progress) -> list[Batch]:
        """Return the batches of the update that follows, and move the position in the data."""
        updates = self.epoch(progress.epoch)
        while not updates:  # corpora of low weight may give an epoch no pair
            progress.epoch += 1
            updates = self.epoch(progress.epoch)
        update = updates[progress.epoch_step]
        progress.epoch_step += 1
        if progress.epoch_step == len(updates):
            progress.epoch, progress.epoch_step = progress.epoch + 1, 0
        return [make_batch(self._store, rows) for rows in update]

    def largest_group(self) -> tuple[Batch, int]:
        """Return the group of the first epoch that needs the most memory, and its padded size."""
        groups = [rows for update in self.epoch(0) for rows in update]
        sizes = self._planner.padded_sizes(groups)
        largest = int(np.argmax(sizes))
        return make_batch(self._store, groups[largest]), sizes[largest]

    def _check_lengths(self, config: Config) -> None:
        """Refuse a pair that fits in no group, or that has more positions than can be learned."""
        limit, key = self._planner.limit, "training.batch_tokens and group_tokens"
        if config.model.positions == "learned" and config.model.max_positions < limit:
            limit, key = config.model.max_positions, "model.max_positions"
        row = int(np.argmax(self._planner.longest))
        length = int(self._planner.longest[row])
        if length > limit:
            corpus, line = self._store.origin(row)
            spec = config.data.train[corpus]
            raise UserError(
                f"{spec.name or spec.tsv or spec.tgt}, line {line}: its longer side has {length} "
                f"tokens with the stop token, more than {key} admit ({limit}); raise them, or "
                f"lower clean.max_tokens to drop such pairs."
            )


def dev_groups(store: TokenStore, group_tokens: int) -> list[Ints]:
    """Cut the dev pairs into groups; a pair longer than a group is one by itself."""
    src_lengths, tgt_lengths = store.lengths("src"), store.lengths("tgt")
    size = max(group_tokens, int(np.maximum(src_lengths, tgt_lengths).max()))
    planner = Planner(src_lengths, tgt_lengths, np.ones(len(store)), size, size, seed=0)
    return planner.groups(np.arange(len(store)))
