"""The stages of preparation over shards: read, clean, find duplicates, vocabulary, encode, join.

Each stage is a list of tasks that write files; what a file holds depends on what it was made from
alone, so that the prepared rows are the same for any number of shards and workers.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from nmt.config import Config
from nmt.data.alarms import alarms, merge, read_summary, summarise_shard
from nmt.data.cleaning import Cleaner, clean_shard
from nmt.data.dedup import find_duplicates, read_duplicates, read_unique
from nmt.data.examples import write_examples
from nmt.data.ledger import Ledger
from nmt.data.overlap import HeldOut
from nmt.data.sample import sample_pairs
from nmt.data.shards import Ints, Shard, cut, write_corpus
from nmt.data.sources.corpora import Corpus
from nmt.run_folder import RunFolder
from nmt.tasks import Done, Task, count_workers, hash_of, run_tasks
from nmt.tokens.encode import encode_shard
from nmt.tokens.seal import entries_of, join
from nmt.tokens.store import write_store
from nmt.tokens.vocab import Vocabs, load_vocab, train_vocab


@dataclass(frozen=True)
class Plan:
    """How the work is shared out; no result depends on it."""

    num_workers: int = count_workers()
    rows_per_shard: int = 100_000


ONE_A_CORE = Plan()

# Duplicates are sought in so many parts, each of which a process holds in memory.
_NUM_BUCKETS = 16


class Chain:
    """The stages of one run; its files lie in data/work until all is done."""

    def __init__(
        self,
        config: Config,
        run: RunFolder,
        held_out: HeldOut,
        *,
        rows_per_shard: int,
        pool: Executor | None,
    ) -> None:
        self._config, self._run, self._held_out = config, run, held_out
        self._rows_per_shard, self._pool = rows_per_shard, pool
        self._work = run.data / "work"
        self._names: list[str] = []
        self._shards: list[Shard] = []
        self._cleaned: list[Done] = []
        self._duplicates: Ints = np.zeros(0, np.int64)

    def clean(self, corpora: list[Corpus], made_from: str) -> list[int]:
        """Read and clean all corpora, find duplicates, and return the number of pairs read."""
        self._names = [corpus.name for corpus in corpora]
        raw = [
            Task(
                self._work / f"raw-{index}.arrow",
                hash_of(made_from, index),
                partial(write_corpus, corpus),
            )
            for index, corpus in enumerate(corpora)
        ]
        read = self._do(raw, "reading")
        num_read = [mark.rows for mark in read]
        self._shards = cut([task.output for task in raw], num_read, self._rows_per_shard)
        config = self._config
        cleaner = Cleaner(config.clean, self._held_out, config.src, config.tgt)
        self._cleaned = self._do(
            [
                Task(
                    self._clean_file(index),
                    hash_of(
                        read[shard.corpus].sha256, shard.first, shard.last, config.clean, made_from
                    ),
                    partial(clean_shard, shard, cleaner),
                )
                for index, shard in enumerate(self._shards)
            ],
            "cleaning",
        )
        if config.clean.dedup != "none":
            self._duplicates = self._find_duplicates()
        return num_read

    def alarms(self) -> list[list[str]]:
        """Return for each corpus what looks wrong with it as a whole."""
        config = self._config
        tasks = [
            Task(
                self._work / f"summary-{index}.npz",
                self._cleaned[index].made_from,
                partial(summarise_shard, shard, config.src, config.tgt),
            )
            for index, shard in enumerate(self._shards)
        ]
        self._do(tasks, "looking")
        return [
            alarms(
                merge(
                    read_summary(task.output)
                    for task, shard in zip(tasks, self._shards, strict=True)
                    if shard.corpus == corpus
                ),
                config.src,
                config.tgt,
            )
            for corpus in range(len(self._names))
        ]

    def ledger_after_cleaning(self) -> Ledger:
        """Write the ledger as it stands before encoding."""
        with self._run.ledger.open("wb") as stream:
            ledger = Ledger(stream, self._names)
            for shard, first, file in self._clean_files():
                for batch in read_unique(file, self._duplicates, first):
                    ledger.write(shard.corpus, entries_of(batch))
        return ledger

    def make_vocabs(self) -> Vocabs:
        """Train on a sample of the clean pairs."""
        config = self._config.vocab
        sides = ("src", "tgt") if config.separate else ("joint",)
        made_from = hash_of([mark.sha256 for mark in self._cleaned], config)
        tasks = [
            Task(self._work / f"vocab-{side}.model", made_from, partial(self._train_vocab, side))
            for side in sides
        ]
        run_tasks(tasks, pool=None, label="vocabulary")
        vocabs = [load_vocab(task.output) for task in tasks]
        return Vocabs(vocabs[0], vocabs[-1])

    def encode(self, vocabs: Vocabs) -> Ledger:
        """Encode all shards, and join them into the token store and the ledger."""
        hashes = [vocab.sha256 for vocab in vocabs]
        tasks = []
        for index, (_, first, file) in enumerate(self._clean_files()):
            mark = self._cleaned[index]
            mine = self._duplicates - first
            mine = mine[(mine >= 0) & (mine < mark.rows)]
            made_from = hash_of(mark.sha256, hash_of(mine.tobytes()), hashes, self._config.clean)
            write = partial(encode_shard, file, mine, vocabs, self._config.clean)
            tasks.append(Task(self._work / f"encoded-{index}.arrow", made_from, write))
        self._do(tasks, "encoding")
        files = [
            (shard.corpus, task.output) for shard, task in zip(self._shards, tasks, strict=True)
        ]
        with self._run.ledger.open("wb") as stream, write_store(self._run.store) as store:
            ledger = Ledger(stream, self._names)
            join(files, store, ledger, self._held_out)
        return ledger

    def keep_examples(self) -> None:
        """Keep some pairs as they were written for each thing that the ledger tells."""
        files = {self._names[shard.corpus]: shard.file for shard in self._shards}
        write_examples(self._run, files)

    def clear(self) -> None:
        """Delete the files between the stages."""
        shutil.rmtree(self._work)

    def _do(self, tasks: list[Task], label: str) -> list[Done]:
        return run_tasks(tasks, pool=self._pool, label=label)

    def _find_duplicates(self) -> Ints:
        files = [self._clean_file(index) for index in range(len(self._shards))]
        # A single shard is worth no second process.
        num_buckets = _NUM_BUCKETS if len(files) > 1 else 1
        made_from = hash_of([mark.sha256 for mark in self._cleaned], num_buckets)
        tasks = [
            Task(
                self._work / f"duplicates-{bucket}.arrow",
                made_from,
                partial(find_duplicates, files, bucket, num_buckets),
            )
            for bucket in range(num_buckets)
        ]
        self._do(tasks, "duplicates")
        return read_duplicates([task.output for task in tasks])

    def _train_vocab(self, side: str, path: Path) -> int:
        src, tgt = sample_pairs(self._read_unique, self._config.vocab.sample)
        texts = {"src": src, "tgt": tgt, "joint": src + tgt}[side]
        vocab = train_vocab(texts, self._config.vocab)
        vocab.save(path)
        return len(vocab)

    def _read_unique(self) -> Iterator[pa.RecordBatch]:
        for _, first, file in self._clean_files():
            yield from read_unique(file, self._duplicates, first)

    def _clean_files(self) -> Iterator[tuple[Shard, int, Path]]:
        """Yield each shard, the number of its first row over all corpora, and its clean file."""
        first = 0
        for index, (shard, mark) in enumerate(zip(self._shards, self._cleaned, strict=True)):
            yield shard, first, self._clean_file(index)
            first += mark.rows

    def _clean_file(self, index: int) -> Path:
        return self._work / f"clean-{index}.arrow"
