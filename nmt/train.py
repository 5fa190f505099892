"""nmt train: prepares what is missing, trains, and says what it does."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tqdm import tqdm

from nmt.config import Config, DecodingConfig
from nmt.data.sources.corpora import Sources
from nmt.decoding.translate import Translator
from nmt.device import choose_device, choose_dtype
from nmt.errors import UserError
from nmt.evaluation.score import corpus_bleu, corpus_chrf
from nmt.lines import read_lines
from nmt.model.transformer import Transformer
from nmt.prepare import Statistics, prepare
from nmt.run_folder import RunFolder, describe_command
from nmt.tokens.vocab import Vocabs, load_vocabs
from nmt.training.checkpoint import (
    Progress,
    Whole,
    clear_partial_checkpoints,
    find_whole,
    go_on_from,
)
from nmt.training.distributed import Ranks
from nmt.training.limits import SCORE_NAMES, why_finished
from nmt.training.loop import Hooks, Trainer
from nmt.training.resume import check_resume
from nmt.training.validation import Translations

_GREEDY = DecodingConfig(beam=1)
_NUM_SAMPLES = 3
_SHARE = (
    "all machines of a training need the same config, and the same run folder, on a file system "
    "that they share."
)


class Ready(NamedTuple):
    """A run that training can begin with, or go on from."""

    statistics: Statistics
    whole: Whole | None
    """The checkpoint to go on from."""
    overridden: list[str]
    """What --override admitted."""


def make_ready(
    config: Config, run: RunFolder, sources: Sources, override: Sequence[str] = ()
) -> Ready:
    """See that the run may go on under the config, and prepare what is missing."""
    clear_partial_checkpoints(run)
    whole = find_whole(run)
    overridden: list[str] = []
    if whole:
        overridden = check_resume(run.load_config(), config, str(run.path), override)
    statistics = prepare(config, run, sources)
    if whole:
        if whole.complaint:
            _say(f"warning: {whole.complaint}")
        go_on_from(run, whole)
    return Ready(statistics, whole, overridden)


def train_run(
    config: Config,
    run: RunFolder,
    sources: Sources,
    ranks: Ranks | None = None,
    override: Sequence[str] = (),
) -> int:
    """Train a run to its end; return 0, or 128 + the signal that stopped it.

    Where several ranks train, all call this; the first prepares, writes and speaks.
    """
    ranks = ranks or Ranks()
    # Preparation may take long: what cannot be computed in is refused before it.
    choose_dtype(config.training.precision, choose_device(config.training.device))
    ready = ranks.first(partial(_begin, config, run, sources, override), "begin")
    if not run.store.exists():
        raise UserError(f"{run.store} is not there; {_SHARE}")
    whole = ready.whole if ready else find_whole(run)
    _check_same(config, run, whole, ranks)
    if whole and _is_done(whole.progress, config):
        if ranks.is_first:
            print(_outcome(run, whole.progress, config))
        return 0
    vocabs = load_vocabs(config, run)
    hooks = Hooks(
        translate_dev=partial(_translate_dev, config, run, vocabs, ranks),
        say=_say if ranks.is_first else _say_nothing,
    )
    trainer = Trainer(config, run, whole, vocabs, hooks, ranks)
    for line in trainer.describe():
        if ranks.is_first:
            print(line, flush=True)
    status = trainer.run()
    if ranks.is_first:
        if status:
            print(f"{run.path}: stopped and saved; the same command goes on.", file=sys.stderr)
        else:
            print(_outcome(run, trainer.progress, config))
    return status


def _begin(config: Config, run: RunFolder, sources: Sources, override: Sequence[str]) -> Ready:
    ready = make_ready(config, run, sources, override)
    for change in ready.overridden:
        _say(change)
    if not ready.whole or not _is_done(ready.whole.progress, config):
        for line in ready.statistics.describe():
            print(line)
        run.save_config(config)
        run.update_record(_add_command)
    return ready


def _is_done(progress: Progress, config: Config) -> bool:
    """Return whether a limit is reached, and the last update is validated: a signal may stop it."""
    return bool(why_finished(progress, config.training)) and progress.score is not None


def _check_same(config: Config, run: RunFolder, whole: Whole | None, ranks: Ranks) -> None:
    """See that all ranks have the same before them, though they may be on several machines."""
    mine = {
        "model": config.model,
        "training": replace(config.training, device=""),
        "vocabulary": run.read_record()["vocab"],
        "training data": run.store.stat().st_size,
        "checkpoint": whole and whole.progress,
    }
    first, *others = ranks.gather_objects(mine)
    for rank, other in enumerate(others, start=1):
        if wrong := [name for name in first if other[name] != first[name]]:
            raise UserError(
                f"rank {rank} has another {wrong[0]} before it than rank 0, under {run.path}; "
                f"{_SHARE}"
            )


def _translate_dev(
    config: Config, run: RunFolder, vocabs: Vocabs, ranks: Ranks, model: Transformer
) -> Translations:
    """Return the scores of greedy translations of the dev set, of which each rank makes a part."""
    source = list(read_lines(run.lines_file("dev", "src")))
    reference = list(read_lines(run.lines_file("dev", "tgt")))
    translator = Translator(model, vocabs, _GREEDY)
    mine = translator.stream_n_best(source[ranks.rank :: ranks.size], _GREEDY, 1)
    parts = ranks.gather_objects([best[0].text for best in mine])
    hypotheses = [""] * len(source)
    for rank, part in enumerate(parts):
        hypotheses[rank :: ranks.size] = part
    places = range(0, len(source), -(-len(source) // _NUM_SAMPLES))
    return Translations(
        corpus_bleu(hypotheses, [reference], tgt_lang=config.tgt),
        corpus_chrf(hypotheses, [reference]),
        [(source[place], reference[place], hypotheses[place]) for place in places],
    )


def _outcome(run: RunFolder, progress: Progress, config: Config) -> str:
    name = SCORE_NAMES[config.training.best_by]
    best = (
        f"; best dev {name} {progress.best_score:.2f} at update {progress.best_step:,}"
        if progress.best_score is not None
        else ""
    )
    return (
        f"{run.path}: finished ({why_finished(progress, config.training)}){best}. "
        f"Now: nmt eval {run.path}, nmt translate {run.path}"
    )


def _say(text: str) -> None:
    tqdm.write(text, file=sys.stderr)


def _say_nothing(_: str) -> None:
    pass


def _add_command(record: dict[str, object]) -> None:
    commands = record.setdefault("commands", [])
    assert isinstance(commands, list)
    commands.append(describe_command())
