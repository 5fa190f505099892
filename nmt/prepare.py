"""nmt prepare: corpora to clean pairs, to SentencePiece, to the token store of a run folder."""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from nmt.chain import ONE_A_CORE, Chain, Plan
from nmt.config import Config, CorpusSpec, flatten
from nmt.data.held_out import write_held_out
from nmt.data.ledger import Ledger
from nmt.data.sources.corpora import Corpus, Sources, open_corpus
from nmt.errors import UserError
from nmt.lines import normalise, read_lines
from nmt.run_folder import RunFolder, describe_command, write_json
from nmt.tasks import hash_of, worker_pool
from nmt.tokens.store import make_rows, write_store
from nmt.tokens.vocab import Vocabs, load_vocab, load_vocabs, vocab_files

_SIDES = ("src", "tgt")
Inputs = dict[str, dict[str, Any]]
_KEYS_OF_DATA = ("src", "tgt", "data.", "clean.", "vocab.", "training.init_from")


@dataclass(frozen=True)
class Statistics:
    """What preparation did, as data/statistics.json holds it."""

    corpora: list[dict[str, Any]]
    """In the order of data.train: name, weight, pairs, kept, and counts by reason of what was
    dropped, repaired and trimmed, and what looks wrong with the whole."""
    num_pairs: int
    vocab_sizes: list[int]
    held_out: dict[str, int]
    """Sentences of each dev and test set."""
    overlap: dict[str, int]
    """How many of them share a side with a training pair."""

    @staticmethod
    def load(run: RunFolder) -> "Statistics":
        return Statistics(**json.loads(_statistics_file(run).read_text(encoding="utf-8")))

    def describe(self) -> Iterator[str]:
        """Yield the lines that a person wants to read."""
        for corpus in self.corpora:
            yield f"{corpus['name']}: {corpus['pairs']:,} pairs, {corpus['kept']:,} kept"
            for action in ("dropped", "repaired", "trimmed"):
                for reason, count in corpus[action].items():
                    yield f"  {action}, {reason}: {count:,}"
            yield from (f"  ALARM: {alarm}" for alarm in corpus["alarms"])
        yield f"vocabulary: {' and '.join(f'{size:,}' for size in self.vocab_sizes)} pieces"
        for name, count in self.held_out.items():
            yield f"{name}: {count:,} sentences, {self.overlap[name]:,} with a side in training"


def prepare(
    config: Config, run: RunFolder, sources: Sources, plan: Plan = ONE_A_CORE
) -> Statistics:
    """Fill the data folder of a run, or find that nothing has to be done.

    What an interrupted preparation has done is not done again. Raises UserError where the run was
    trained on other data.
    """
    changes = _changes(config, run)
    if changes == []:
        return Statistics.load(run)
    if run.checkpoints.exists():
        why = "; ".join(changes) if changes else "its data folder is not whole"
        raise UserError(
            f"{run.path}: was trained on other data ({why}); "
            f"give another folder with --run, or delete this one."
        )
    if changes:
        print(f"{run.path}: preparing again: {'; '.join(changes)}", file=sys.stderr)
    _statistics_file(run).unlink(missing_ok=True)
    run.clear_partial_files()
    return _prepare(config, run, sources, plan)


def _prepare(config: Config, run: RunFolder, sources: Sources, plan: Plan) -> Statistics:
    given = _given_vocabs(config)  # an error now, not after the cleaning
    open_split = partial(_open, config, sources)
    train = [open_split(spec, "train") for spec in config.data.train]
    held_out, num_held_out, others = write_held_out(config.data, run, open_split)
    inputs = _fingerprints([*train, *others], config)
    with worker_pool(plan.num_workers) as pool:
        chain = Chain(config, run, held_out, rows_per_shard=plan.rows_per_shard, pool=pool)
        num_read = chain.clean(train, hash_of(inputs))
        alarms = chain.alarms()
        # The ledger stays where a run ends here: it tells the user why.
        ledger = chain.ledger_after_cleaning()
        _check_what_is_left(num_read, ledger, config, run)
        vocabs = given or chain.make_vocabs()
        ledger = chain.encode(vocabs)
        _check_what_is_left(num_read, ledger, config, run)
    rows: list[dict[str, Any]] = [
        {
            "name": corpus.name,
            "weight": corpus.weight,
            "pairs": num_read[index],
            "kept": num_read[index] - sum(ledger.counts(index, "dropped").values()),
            "dropped": ledger.counts(index, "dropped"),
            "repaired": ledger.counts(index, "repaired"),
            "trimmed": ledger.counts(index, "trimmed"),
            "alarms": alarms[index],
        }
        for index, corpus in enumerate(train)
    ]
    statistics = Statistics(
        corpora=rows,
        num_pairs=sum(row["kept"] for row in rows),
        vocab_sizes=[len(vocab) for vocab in dict.fromkeys(vocabs)],
        held_out=num_held_out,
        overlap=held_out.overlap(),
    )
    chain.keep_examples()
    _store_dev(run, vocabs)
    _seal(config, run, [*train, *others], inputs, vocabs)
    write_json(_statistics_file(run), asdict(statistics))
    chain.clear()
    return statistics


def _given_vocabs(config: Config) -> Vocabs | None:
    """Return the trained vocabularies that the config names: a file, or those of another run."""
    if config.vocab.model:
        vocab = load_vocab(Path(config.vocab.model))
        return Vocabs(vocab, vocab)
    if not config.training.init_from:
        return None
    other = RunFolder(Path(config.training.init_from))
    try:
        its_config = other.load_config()
        vocabs = load_vocabs(its_config, other)
    except UserError as error:
        raise UserError(f"training.init_from: {error}") from None
    if its_config.vocab.separate != config.vocab.separate:
        raise UserError(
            f"training.init_from: {other.path} was made with vocab.separate: "
            f"{str(its_config.vocab.separate).lower()}, and its vocabulary is taken; set the same."
        )
    return vocabs


def _open(config: Config, sources: Sources, spec: CorpusSpec, split: str) -> Corpus:
    return open_corpus(
        spec, src_lang=config.src, tgt_lang=config.tgt, default_split=split, sources=sources
    )


def _store_dev(run: RunFolder, vocabs: Vocabs) -> None:
    """Write the dev pairs as ids, so that validation reads them as training reads its own."""
    src, tgt = (list(map(normalise, read_lines(run.lines_file("dev", side)))) for side in _SIDES)
    numbers = [line for line, pair in enumerate(zip(src, tgt, strict=True), 1) if all(pair)]
    src_ids = vocabs.src.encode([src[line - 1] for line in numbers])
    tgt_ids = vocabs.tgt.encode([tgt[line - 1] for line in numbers])
    with write_store(run.dev_store) as store:
        store.write(make_rows(src_ids, tgt_ids, 0, pa.array(numbers, pa.int64())))


def _check_what_is_left(
    num_read: list[int], ledger: Ledger, config: Config, run: RunFolder
) -> None:
    num_pairs = sum(num_read)
    num_dropped = sum(
        count
        for index in range(len(num_read))
        for count in ledger.counts(index, "dropped").values()
    )
    if num_dropped == num_pairs:
        raise UserError(
            f"All {num_pairs:,} training pairs were dropped; the ledger, {run.ledger}, tells why."
        )
    if num_dropped > config.clean.max_drop * num_pairs:
        raise UserError(
            f"{num_dropped:,} of {num_pairs:,} training pairs ({num_dropped / num_pairs:.1%}) were "
            f"dropped, more than clean.max_drop allows ({config.clean.max_drop:.1%}); the ledger, "
            f"{run.ledger}, tells which and why."
        )


def _seal(
    config: Config, run: RunFolder, corpora: list[Corpus], inputs: Inputs, vocabs: Vocabs
) -> None:
    """Write the vocabularies, the config and what all was made from."""
    hashes = {}
    for side, vocab in zip(_SIDES, vocabs, strict=True):
        path = run.vocab_file(side, is_separate=config.vocab.separate)
        vocab.save(path)
        hashes[path.name] = vocab.sha256
    revisions = {corpus.name: corpus.revision for corpus in corpora if corpus.revision}
    run.save_config(config)

    def change(record: dict[str, Any]) -> None:
        record["prepared"] = describe_command()
        record["vocab"] = hashes
        record["inputs"] = inputs
        record["revisions"] = revisions
        record["scores"] = []

    run.update_record(change)


def _changes(config: Config, run: RunFolder) -> list[str] | None:
    """Return what differs from what the run was prepared with; None where it was not."""
    if not _statistics_file(run).exists() or not run.config_file.exists():
        return None
    old, new = flatten(run.load_config()), flatten(config)
    changes = [
        f"{key} was {old[key]}, is {new[key]}"
        for key in new
        if key.startswith(_KEYS_OF_DATA) and new[key] != old[key]
    ]
    for name, found in run.read_record()["inputs"].items():
        path = Path(name)
        # A run folder is complete: an input that is not here any more changes nothing.
        if path.exists() and _stamp(path) != [found["size"], found["mtime_ns"]]:
            if _sha256(path) != found["sha256"]:
                changes.append(f"{name} has other content")
    return changes


def _fingerprints(corpora: list[Corpus], config: Config) -> Inputs:
    """Return size, time and hash of every file that is read."""
    paths = [path for corpus in corpora for path in corpus.inputs]
    if config.vocab.model:
        paths.append(Path(config.vocab.model))
    if config.training.init_from:
        paths += vocab_files(config, RunFolder(Path(config.training.init_from)))
    return {str(path): _fingerprint(path) for path in paths}


def _fingerprint(path: Path) -> dict[str, Any]:
    size, mtime_ns = _stamp(path)
    return {"size": size, "mtime_ns": mtime_ns, "sha256": _sha256(path)}


def _stamp(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _statistics_file(run: RunFolder) -> Path:
    return run.data / "statistics.json"
