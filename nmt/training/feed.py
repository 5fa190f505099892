"""Hands the loop the batches of the next update, wherever the run stands."""

import numpy as np

from nmt.config import Config
from nmt.data.shards import Ints
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, Planner, Update, make_batch
from nmt.tokens.sampling import PairSampler
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import Vocabs
from nmt.training.checkpoint import Progress


class Feed:
    """The training pairs of a run as a sequence of updates that never ends."""

    def __init__(self, config: Config, run: RunFolder, vocabs: Vocabs) -> None:
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
        self._sampler: PairSampler | None = None
        if training.subword_alpha:
            self._sampler = PairSampler(
                self._store,
                vocabs,
                alpha=training.subword_alpha,
                seed=training.seed,
                max_length=self._max_length(config),
                max_padded=self._planner.limit,
            )
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
        epoch, step = progress.epoch, progress.epoch_step
        progress.epoch_step += 1
        if progress.epoch_step == len(updates):
            progress.epoch, progress.epoch_step = progress.epoch + 1, 0
        if self._sampler is None:
            return [make_batch(self._store, rows) for rows in updates[step]]
        return [
            batch for rows in updates[step] for batch in self._sampler.batches(rows, epoch, step)
        ]

    def largest_group(self) -> tuple[Batch, int]:
        """Return the group of the first epoch that needs the most memory, and its padded size.

        Its pieces are the best ones, also where training samples others.
        """
        groups = [rows for update in self.epoch(0) for rows in update]
        sizes = self._planner.padded_sizes(groups)
        largest = int(np.argmax(sizes))
        return make_batch(self._store, groups[largest]), sizes[largest]

    def _check_lengths(self, config: Config) -> None:
        """Refuse a pair that fits in no group, or that has more positions than can be learned."""
        limit, key = self._max_length(config), "training.batch_tokens and group_tokens"
        if limit < self._planner.limit:
            key = "model.max_positions"
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

    def _max_length(self, config: Config) -> int:
        """Return how long a side may be: it fits in a group, and has positions."""
        if config.model.positions == "learned":
            return min(self._planner.limit, config.model.max_positions)
        return self._planner.limit


def dev_groups(store: TokenStore, group_tokens: int) -> list[Ints]:
    """Cut the dev pairs into groups; a pair longer than a group is one by itself."""
    src_lengths, tgt_lengths = store.lengths("src"), store.lengths("tgt")
    size = max(group_tokens, int(np.maximum(src_lengths, tgt_lengths).max()))
    planner = Planner(src_lengths, tgt_lengths, np.ones(len(store)), size, size, seed=0)
    return planner.groups(np.arange(len(store)))
