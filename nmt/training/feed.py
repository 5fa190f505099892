"""Hands the loop the batches of the next update, wherever the run stands."""

from collections.abc import Iterator
from threading import Lock
from typing import NamedTuple

import numpy as np

from nmt.config import Config, CorpusSpec
from nmt.data.shards import Ints
from nmt.errors import UserError
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, Planner, Update, make_batch, share
from nmt.tokens.sampling import PairSampler
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import Vocabs
from nmt.training.ahead import Ahead
from nmt.training.checkpoint import Progress
from nmt.training.distributed import Ranks

Place = tuple[int, int]
"""Epoch, and updates done of it."""


class Made(NamedTuple):
    """An update as this rank trains on it, made for one place in the data."""

    update: Update
    batches: list[Batch]
    following: Place


class Feed:
    """The training pairs of a run as a sequence of updates that never ends."""

    def __init__(
        self, config: Config, run: RunFolder, vocabs: Vocabs, ranks: Ranks | None = None
    ) -> None:
        self._store = TokenStore(run.store)
        self._corpora = config.data.train
        self._vocabs = vocabs
        self._ranks = ranks or Ranks()
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
        self.device_tokens = training.device_tokens or self._planner.limit
        """The padded size that this device takes at once."""
        self.update: Update = []
        """The groups of the update that was handed out last, over all ranks."""
        self._epoch = -1
        self._updates: list[Update] = []
        self._planning = Lock()
        self._ahead: Ahead[Place, Made] | None = None

    def work_ahead(self) -> None:
        """Make and pin the batches of a GPU's next update in a thread while it computes this one.

        On CPUs it gains nothing, even where pieces are sampled: the cores are busy anyway.
        """
        self._ahead = Ahead(self._make_pinned)

    def epoch(self, epoch: int) -> list[Update]:
        """Return the updates of an epoch; those of the current one are planned once."""
        with self._planning:
            if epoch != self._epoch:
                self._epoch, self._updates = epoch, self._planner.epoch(epoch)
            return self._updates

    def next_update(self, progress: Progress) -> list[Batch]:
        """Return this rank's batches of the update that follows, and move the position in the data.

        It may be given none.
        """
        place = progress.epoch, progress.epoch_step
        made = self._ahead.take(place) if self._ahead else self._make(place)
        self.update = made.update
        progress.epoch, progress.epoch_step = made.following
        if self._ahead:
            self._ahead.begin(made.following)
        return made.batches

    def largest_group(self) -> tuple[list[Batch], int]:
        """Return the group of the first epoch that needs the most memory, and its padded size.

        It comes in the parts that the device takes. Its pieces are the best ones, also where
        training samples others.
        """
        groups = [rows for update in self.epoch(0) for rows in update]
        sizes = self._planner.padded_sizes(groups)
        largest = int(np.argmax(sizes))
        parts = self._cut(groups[largest])
        return [make_batch(self._store, rows) for rows in parts], sizes[largest]

    def num_tokens(self, updates: list[Update]) -> int:
        """Return the real target tokens of updates, as stored."""
        lengths = self._planner.tgt_lengths
        return sum(int(lengths[rows].sum()) for update in updates for rows in update)

    def describe_update(self) -> Iterator[str]:
        """Yield each pair of the update that was handed out last: corpus, line, source, target."""
        for rows in self.update:
            src, tgt = (
                vocab.decode(self._store.lists(side, rows))
                for vocab, side in zip(self._vocabs, ("src", "tgt"), strict=True)
            )
            for row, *texts in zip(rows.tolist(), src, tgt, strict=True):
                corpus, line = self._store.origin(row)
                yield "\t".join([_name(self._corpora[corpus]), str(line), *texts])

    def _make(self, place: Place) -> Made:
        epoch, step = place
        updates = self.epoch(epoch)
        # Corpora of low weight may give an epoch no pair, and an overridden key shorter epochs.
        while step >= len(updates):
            epoch, step = epoch + 1, 0
            updates = self.epoch(epoch)
        following = (epoch, step + 1) if step + 1 < len(updates) else (epoch + 1, 0)
        mine = share(updates[step], self._ranks.rank, self._ranks.size)
        parts = [part for rows in mine for part in self._cut(rows)]
        if self._sampler is None:
            batches = [make_batch(self._store, rows) for rows in parts]
        else:
            sampled = (self._sampler.batches(rows, epoch, step) for rows in parts)
            batches = [batch for group in sampled for batch in group]
        return Made(updates[step], batches, following)

    def _make_pinned(self, place: Place) -> Made:
        made = self._make(place)
        return made._replace(batches=[batch.pin() for batch in made.batches])

    def _cut(self, rows: Ints) -> list[Ints]:
        """Cut a group by rows into parts that the device takes at once."""
        longest = int(self._planner.longest[rows].max())
        num_rows = max(1, self.device_tokens // longest)
        return np.array_split(rows, -(-len(rows) // num_rows))

    def _check_lengths(self, config: Config) -> None:
        """Refuse a pair that fits in no group, or that has more positions than can be learned."""
        limit, key = self._max_length(config), "training.batch_tokens and group_tokens"
        if limit < self._planner.limit:
            key = "model.max_positions"
        row = int(np.argmax(self._planner.longest))
        length = int(self._planner.longest[row])
        if length > limit:
            corpus, line = self._store.origin(row)
            raise UserError(
                f"{_name(self._corpora[corpus])}, line {line}: its longer side has {length} "
                f"tokens with the stop token, more than {key} admit ({limit}); raise them, or "
                f"lower clean.max_tokens to drop such pairs."
            )

    def _max_length(self, config: Config) -> int:
        """Return how long a side may be: it fits in a group, and has positions."""
        if config.model.positions == "learned":
            return min(self._planner.limit, config.model.max_positions)
        return self._planner.limit


def _name(spec: CorpusSpec) -> str:
    return spec.name or spec.tsv or spec.tgt


def dev_groups(store: TokenStore, group_tokens: int) -> list[Ints]:
    """Cut the dev pairs into groups; a pair longer than a group is one by itself."""
    src_lengths, tgt_lengths = store.lengths("src"), store.lengths("tgt")
    size = max(group_tokens, int(np.maximum(src_lengths, tgt_lengths).max()))
    planner = Planner(src_lengths, tgt_lengths, np.ones(len(store)), size, size, seed=0)
    return planner.groups(np.arange(len(store)))
