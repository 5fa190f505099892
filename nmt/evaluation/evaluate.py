"""nmt eval: translates the test sets of a run, scores them and keeps the scores in run.json."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tqdm import tqdm

from nmt.config import DecodingConfig
from nmt.decoding.translate import Translator
from nmt.errors import UserError
from nmt.evaluation.score import Report, score_lines
from nmt.lines import read_lines, write_lines
from nmt.prepare import Statistics
from nmt.run_folder import RunFolder, set_name


@dataclass(frozen=True)
class SetScore:
    """The scores of one test set, and how it was translated."""

    name: str
    report: Report
    overlap: int
    """Test sentences with a side that a training pair holds."""
    recipe: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return what run.json keeps: the digits, the signatures, the recipe."""
        scores = report_record(self.report)
        return {"set": self.name, **scores, "overlap": self.overlap, **self.recipe}

    def describe(self) -> Iterator[str]:
        """Yield the lines that a person wants to read."""
        stamp = ": NOT A CLEAN SCORE" if self.overlap else ""
        yield (
            f"{self.name}: {self.report.num_lines:,} sentences, "
            f"{self.overlap:,} with a side in training{stamp}"
        )
        yield from describe_report(self.report)


def evaluate(
    run: RunFolder, translator: Translator, options: DecodingConfig, *, lowercase: bool = False
) -> Iterator[SetScore]:
    """Yield the scores of each test set as they come, and keep translations and scores in the run.

    Raises UserError where the config names no test set.
    """
    config = run.load_config()
    if not config.data.test:
        raise UserError(f"{run.path}: data.test of its config names no test set to score.")
    overlap = Statistics.load(run).overlap
    recipe = {**translator.recipe, **asdict(options), "lowercase": lowercase}
    for spec in config.data.test:
        name = f"test.{set_name(spec)}"
        reference = list(read_lines(run.lines_file(name, "tgt")))
        stream = translator.stream(read_lines(run.lines_file(name, "src")), options)
        bar = tqdm(stream, desc=name, total=len(reference), unit=" lines", disable=None)
        hypotheses = list(bar)
        write_lines(run.translation_file(name), hypotheses)
        report = score_lines(hypotheses, [reference], tgt_lang=config.tgt, lowercase=lowercase)
        score = SetScore(set_name(spec), report, overlap[name], recipe)
        _keep(run, score)
        yield score


def report_record(report: Report) -> dict[str, Any]:
    """Return every digit of a report as JSON has it; `signature` is that of BLEU."""
    return {
        "bleu": report.bleu.value,
        "chrf": report.chrf.value,
        "ter": report.ter.value,
        "signature": report.bleu.signature,
        "bleu_interval": [report.bleu.low, report.bleu.high],
        "chrf_signature": report.chrf.signature,
        "ter_signature": report.ter.signature,
        "num_lines": report.num_lines,
        "empty_hypotheses": report.empty_hypotheses,
        "warnings": report.warnings,
    }


def describe_report(report: Report) -> Iterator[str]:
    """Yield each metric with two decimals, its signature on a line of its own, and the warnings."""
    for score in (report.bleu, report.chrf, report.ter):
        yield f"{score.name} {score.value:.2f}, 95 % interval {score.low:.2f} to {score.high:.2f}"
        yield score.signature
    for warning in report.warnings:
        yield f"warning: {warning}"


def _keep(run: RunFolder, score: SetScore) -> None:
    """Put a score into run.json, in the place of one that was made in the same way."""
    new = score.record()
    ways = ("set", *score.recipe)

    def change(record: dict[str, Any]) -> None:
        others = [old for old in record["scores"] if any(old[way] != new[way] for way in ways)]
        record["scores"] = [*others, new]

    run.update_record(change)
