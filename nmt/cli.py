"""The command line: parse, call, print. Heavy imports stand inside the commands."""

import json
import os
import sys
import warnings
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, TextIO

import typer

from nmt.errors import UserError

app = typer.Typer(
    help="From parallel text to a trained Transformer and a BLEU score one can trust.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

data_app = typer.Typer(no_args_is_help=True, help="Look into the prepared data of a run.")
app.add_typer(data_app, name="data")

ConfigArg = Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML config.")]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
RunOption = Annotated[
    Path | None, typer.Option("--run", help="The run folder; runs/NAME for NAME.yaml if not given.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. training.lr=0.001."),
]
MirrorOption = Annotated[
    str | None,
    typer.Option(help="A folder or URL with the corpora's files; else NMT_MIRROR, else the web."),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never touch the network.")]
WorkersOption = Annotated[
    int | None, typer.Option(help="Processes to prepare with; one a core if not given.", min=1)
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
PrecisionOption = Annotated[str, typer.Option(help="auto, bf16, tf32 or fp32.")]
TrainingDeviceOption = Annotated[
    str | None, typer.Option("--device", help="auto, cpu, cuda, cuda:1 or mps.")
]
TrainingPrecisionOption = Annotated[
    str | None, typer.Option("--precision", help="auto, bf16, tf32 or fp32.")
]
CheckpointOption = Annotated[
    str,
    typer.Option(help="best, last, average or step-NNNNNN; the best, else the last if not given."),
]
BeamOption = Annotated[int | None, typer.Option(help="Beam size; 1 is greedy.", min=1)]
BatchOption = Annotated[int | None, typer.Option(help="Sentences decoded at once.", min=1)]
PenaltyOption = Annotated[float | None, typer.Option(help="Length penalty.", min=0)]


@app.callback(invoke_without_command=True)
def root(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if show_version:
        print(f"nmt {version('nmt')}")
        raise typer.Exit


@app.command()
def prepare(
    config: ConfigArg,
    run: RunOption = None,
    set_: SetOption = None,
    mirror: MirrorOption = None,
    offline: OfflineOption = False,
    workers: WorkersOption = None,
) -> None:
    """Clean the corpora, train SentencePiece and write the token store."""
    from nmt.chain import Plan
    from nmt.config import load_config
    from nmt.data.sources.corpora import Sources
    from nmt.prepare import prepare as prepare_run
    from nmt.run_folder import RunFolder

    folder = RunFolder(run or Path("runs") / config.stem)
    loaded = load_config(config, set_ or [])
    plan = Plan(num_workers=workers) if workers else Plan()
    sources = Sources.from_environment(mirror, offline=offline)
    for line in prepare_run(loaded, folder, sources, plan).describe():
        print(line)


@app.command()
def train(
    config: ConfigArg,
    run: RunOption = None,
    set_: SetOption = None,
    mirror: MirrorOption = None,
    offline: OfflineOption = False,
    device: TrainingDeviceOption = None,
    precision: TrainingPrecisionOption = None,
    devices: Annotated[
        int, typer.Option(help="Train in so many processes on this machine, a GPU each.", min=1)
    ] = 1,
    resume: Annotated[
        bool, typer.Option(help="Go on from the last checkpoint, if there is one.")
    ] = True,
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Go on though this key has changed, e.g. training.lr."),
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Only prove on this machine what training promises.")
    ] = False,
) -> None:
    """Train a model; prepare what is missing and go on from the last checkpoint, if any."""
    from nmt.config import load_config
    from nmt.data.sources.corpora import Sources
    from nmt.device import check_number, choose_device
    from nmt.launch import is_worker, launch
    from nmt.run_folder import RunFolder
    from nmt.train import make_ready, train_run
    from nmt.training.distributed import connect

    loaded = load_config(config, _training_overrides(set_, device, precision))
    chosen = choose_device(loaded.training.device)
    folder = RunFolder(run or Path("runs") / config.stem)
    sources = Sources.from_environment(mirror, offline=offline)
    if self_test:
        from nmt.self_test import prove

        raise typer.Exit(prove(loaded, folder, sources, max(2, devices)))
    if not resume and folder.checkpoints.exists():
        raise UserError(
            f"{folder.path}: has checkpoints, and --no-resume was asked for; give another folder "
            f"with --run, or delete this one."
        )
    if devices > 1 and not is_worker():
        check_number(devices, chosen)
        make_ready(loaded, folder, sources, override or [])
        raise typer.Exit(launch(sys.argv[1:], devices))
    with connect(chosen, loaded.training.rank_timeout_minutes) as ranks:
        status = train_run(loaded, folder, sources, ranks, override or [])
    raise typer.Exit(status)


@app.command()
def plan(
    config: ConfigArg,
    run: RunOption = None,
    set_: SetOption = None,
    mirror: MirrorOption = None,
    offline: OfflineOption = False,
    device: TrainingDeviceOption = None,
    precision: TrainingPrecisionOption = None,
    seconds: Annotated[
        float, typer.Option(help="Train for so long, and three updates at least.", min=0)
    ] = 30,
) -> None:
    """Tell what a training will take, from real updates, and where its config may be wrong."""
    from nmt.config import load_config
    from nmt.data.sources.corpora import Sources
    from nmt.plan import plan as plan_run
    from nmt.run_folder import RunFolder

    loaded = load_config(config, _training_overrides(set_, device, precision))
    folder = RunFolder(run or Path("runs") / config.stem)
    sources = Sources.from_environment(mirror, offline=offline)
    for line in plan_run(loaded, folder, sources, seconds):
        print(line, flush=True)


@app.command()
def average(
    run: RunArg,
    last: Annotated[int, typer.Option(help="Average the last so many.", min=0)] = 0,
    best: Annotated[int, typer.Option(help="Average the best so many.", min=0)] = 0,
    checkpoint: Annotated[
        list[str] | None, typer.Option(help="Average this one, such as step-000500, and others.")
    ] = None,
    output: Annotated[str, typer.Option(help="The name of the new checkpoint.")] = "average",
) -> None:
    """Average the weights of checkpoints; decode with it by --checkpoint average."""
    from nmt.run_folder import RunFolder
    from nmt.training.average import average_checkpoints, choose_checkpoints

    folder = RunFolder(run)
    names = choose_checkpoints(folder, last, best, checkpoint or [])
    print(f"{average_checkpoints(folder, names, output)}: the mean of {', '.join(names)}")


@app.command()
def translate(
    run: RunArg,
    input_: Annotated[
        str, typer.Argument(metavar="[INPUT]", help="A text file, .gz too; - reads stdin.")
    ] = "-",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file that appears when all is done.")
    ] = None,
    beam: BeamOption = None,
    nbest: Annotated[
        int, typer.Option(help="Print so many a line: line number, score, text, by tabs.", min=0)
    ] = 0,
    length_penalty: PenaltyOption = None,
    batch_size: BatchOption = None,
    checkpoint: CheckpointOption = "",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Translate text, one sentence a line; as many lines come out as go in."""
    from nmt.decoding.translate import Translator
    from nmt.device import settle
    from nmt.lines import read_lines, write_whole

    lines = read_lines(input_)
    if batch_size is None and input_ == "-" and sys.stdin.isatty():
        batch_size = 1  # a person at the keyboard waits for each line
    translator = Translator.load(run, checkpoint=checkpoint, device=device, precision=precision)
    options = translator.options(beam, length_penalty, batch_size)
    settle()
    rows = (
        translator.stream_rows(lines, options, nbest)
        if nbest
        else translator.stream(lines, options)
    )
    if output is None:
        for row in rows:
            sys.stdout.buffer.write(f"{row}\n".encode())
            sys.stdout.buffer.flush()
        return
    from tqdm import tqdm

    with write_whole(output) as stream:
        for row in tqdm(rows, desc="translating", unit=" lines", disable=None):
            stream.write(f"{row}\n".encode())


@app.command(name="eval")
def evaluate(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="A run folder.")] = None,
    hyp: Annotated[Path | None, typer.Option(help="Score this file instead of a run.")] = None,
    ref: Annotated[
        list[Path] | None, typer.Option(help="A reference for --hyp; again for a second one.")
    ] = None,
    tgt: Annotated[str, typer.Option(help="Target language of --hyp, for zh, ja and ko.")] = "",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Fold case before.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit as JSON.")] = False,
    beam: BeamOption = None,
    length_penalty: PenaltyOption = None,
    batch_size: BatchOption = None,
    checkpoint: CheckpointOption = "",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Score the test sets of a run, or a file of translations, by BLEU, chrF and TER."""
    if (run is None) == (hyp is None) or bool(hyp) != bool(ref):
        raise UserError("nmt eval takes either RUN, or --hyp FILE with --ref FILE.")
    if run is None:
        assert hyp and ref
        from nmt.evaluation.evaluate import describe_report, report_record
        from nmt.evaluation.score import score_files

        report = score_files(hyp, ref, tgt_lang=tgt, lowercase=lowercase)
        print(json.dumps(report_record(report)) if as_json else "\n".join(describe_report(report)))
        return
    from nmt.decoding.translate import Translator
    from nmt.device import settle
    from nmt.evaluation.evaluate import evaluate as evaluate_run
    from nmt.run_folder import RunFolder

    translator = Translator.load(run, checkpoint=checkpoint, device=device, precision=precision)
    options = translator.options(beam, length_penalty, batch_size)
    settle()
    scores = []
    for score in evaluate_run(RunFolder(run), translator, options, lowercase=lowercase):
        scores.append(score.record())
        if not as_json:
            print("\n".join(score.describe()), flush=True)
    if as_json:
        print(json.dumps(scores))


@app.command()
def corpora(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Tell all of one, sacrebleu/SET among them.")
    ] = "",
) -> None:
    """List the corpora that a config can name."""
    if name:
        from nmt.data.sources import listing

        print("\n".join(listing.describe(name)))
        return
    from nmt.data.sources.catalogue import describe

    for row in describe():
        facts = [row.size, f"licence: {row.licence}"]
        print(f"{row.name} ({row.languages}): {', '.join(filter(None, facts))}")
        for fact in ("splits", "pairs", "source"):
            if value := getattr(row, fact):
                print(f"  {fact}: {value}")


@data_app.command(name="pack")
def data_pack(
    config: ConfigArg,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The mirror to write.")],
    set_: SetOption = None,
    mirror: MirrorOption = None,
) -> None:
    """Write a mirror with just what a config needs, for machines without network."""
    from nmt.config import load_config
    from nmt.data.sources.corpora import Sources
    from nmt.data.sources.pack import pack

    packed = pack(load_config(config, set_ or []), directory, Sources.from_environment(mirror))
    for line in packed.describe():
        print(line)


@data_app.command(name="report")
def data_report(run: RunArg) -> None:
    """Tell what cleaning dropped and repaired, with examples and lengths."""
    from nmt.report import report
    from nmt.run_folder import RunFolder

    for line in report(RunFolder(run)):
        print(line)


@data_app.command(name="explain")
def data_explain(
    run: RunArg,
    place: Annotated[str, typer.Argument(metavar="CORPUS:LINE", help="multi30k/train:17.")],
) -> None:
    """Tell what happened to one line of a training corpus."""
    from nmt.report import explain
    from nmt.run_folder import RunFolder

    for line in explain(RunFolder(run), place):
        print(line)


def _training_overrides(
    set_: list[str] | None, device: str | None, precision: str | None
) -> list[str]:
    overrides = list(set_ or [])
    overrides += [f"training.device={device}"] if device else []
    overrides += [f"training.precision={precision}"] if precision else []
    return overrides


def main() -> None:
    """Run a command; what the user did wrong is one message and exit status 2."""
    warnings.showwarning = _print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # whatever the locale says
    try:
        app()
    except UserError as error:
        # The first of several processes speaks for all.
        rank = f"rank {os.environ['RANK']}: " if os.environ.get("RANK", "0") != "0" else ""
        print(f"{rank}error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read the output has enough; a second complaint at exit would be noise.
        sys.stdout = None
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror}.", file=sys.stderr)
        sys.exit(2)


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"warning: {message}", file=sys.stderr)
