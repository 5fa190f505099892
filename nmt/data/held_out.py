"""Copies dev and test sentences into the run folder, one a line, as they were written."""

from collections.abc import Callable, Sequence

from nmt.config import CorpusSpec, DataConfig
from nmt.data.overlap import HeldOut
from nmt.data.sources.corpora import Corpus
from nmt.errors import UserError
from nmt.lines import write_lines
from nmt.run_folder import RunFolder, set_name


def write_held_out(
    data: DataConfig, run: RunFolder, open_split: Callable[[CorpusSpec, str], Corpus]
) -> tuple[HeldOut, dict[str, int], list[Corpus]]:
    """Return all held-out sentences, the number of them by set, and the corpora they come from."""
    sets = [("dev", data.dev)] + [(f"test.{set_name(spec)}", (spec,)) for spec in data.test]
    opened = [[open_split(spec, name.partition(".")[0]) for spec in specs] for name, specs in sets]
    files = [run.lines_file(name, "src") for name, _ in sets]
    if len(set(files)) < len(files):
        raise UserError(
            f"data.test: two sets have one name among {', '.join(map(set_name, data.test))}; "
            f"name each once, and give files of one name other names."
        )
    held_out, counts = HeldOut(), {}
    for (name, _), corpora in zip(sets, opened, strict=True):
        src, tgt = _read(corpora)
        held_out.add(name, src, tgt)
        counts[name] = len(src)
        write_lines(run.lines_file(name, "src"), src)
        write_lines(run.lines_file(name, "tgt"), tgt)
    return held_out, counts, [corpus for corpora in opened for corpus in corpora]


def _read(corpora: Sequence[Corpus]) -> tuple[list[str], list[str]]:
    src: list[str] = []
    tgt: list[str] = []
    for batch in (batch for corpus in corpora for batch in corpus.batches()):
        src += map(_one_line, batch.column("src").to_pylist())
        tgt += map(_one_line, batch.column("tgt").to_pylist())
    if not src:
        raise UserError(f"{', '.join(corpus.name for corpus in corpora)}: holds no sentence.")
    return src, tgt


def _one_line(text: str | None) -> str:
    """Return the text without line ends; a reference is otherwise scored as it was written."""
    return (text or "").rstrip("\r\n").replace("\n", " ")
