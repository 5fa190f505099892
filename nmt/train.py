"""nmt train: prepares what is missing, trains, and says what it does."""

import sys
from functools import partial

from tqdm import tqdm

from nmt.config import Config, DecodingConfig
from nmt.data.sources.corpora import Sources
from nmt.decoding.translate import Translator
from nmt.evaluation.score import corpus_bleu
from nmt.lines import read_lines
from nmt.model.transformer import Transformer
from nmt.prepare import load_vocabs, prepare
from nmt.run_folder import RunFolder, describe_command
from nmt.tokens.vocab import Vocabs
from nmt.training.checkpoint import Progress, load_progress
from nmt.training.loop import Hooks, Trainer, why_finished
from nmt.training.resume import check_resume

_GREEDY = DecodingConfig(beam=1)


def train_run(config: Config, run: RunFolder, sources: Sources) -> int:
    """Train a run to its end; return 0, or 128 + the signal that stopped it."""
    progress = load_progress(run)
    if progress:
        check_resume(run.load_config(), config, str(run.path))
    statistics = prepare(config, run, sources)
    if progress and why_finished(progress, config.training):
        print(_outcome(run, progress, config))
        return 0
    for line in statistics.describe():
        print(line)
    run.save_config(config)
    run.update_record(_add_command)
    vocabs = load_vocabs(config, run)
    hooks = Hooks(dev_bleu=partial(_dev_bleu, config, run, vocabs), say=_say)
    trainer = Trainer(config, run, vocabs, hooks)
    for line in trainer.describe():
        print(line, flush=True)
    status = trainer.run()
    if status:
        print(f"{run.path}: stopped and saved; the same command goes on.", file=sys.stderr)
    else:
        print(_outcome(run, trainer.progress, config))
    return status


def _dev_bleu(config: Config, run: RunFolder, vocabs: Vocabs, model: Transformer) -> float:
    """Return the BLEU of greedy translations of the dev set."""
    reference = list(read_lines(run.lines_file("dev", "tgt")))
    translator = Translator(model, vocabs, _GREEDY)
    with_caps = translator.stream_n_best(read_lines(run.lines_file("dev", "src")), _GREEDY, 1)
    hypotheses = [best[0].text for best in with_caps]
    return corpus_bleu(hypotheses, [reference], tgt_lang=config.tgt)


def _outcome(run: RunFolder, progress: Progress, config: Config) -> str:
    return (
        f"{run.path}: finished ({why_finished(progress, config.training)}); best dev BLEU "
        f"{progress.best_bleu:.2f} at update {progress.best_step:,}. "
        f"Now: nmt eval {run.path}, nmt translate {run.path}"
    )


def _say(text: str) -> None:
    tqdm.write(text, file=sys.stderr)


def _add_command(record: dict[str, object]) -> None:
    commands = record.setdefault("commands", [])
    assert isinstance(commands, list)
    commands.append(describe_command())
