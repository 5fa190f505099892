"""Opens a corpus by name or by files, and yields its pairs in Arrow batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa

from nmt.config import CorpusSpec
from nmt.data import captions
from nmt.data.sources.download import Sources as Sources
from nmt.data.sources.entries import Generated, Hub, ZippedTsv
from nmt.data.sources.hub import HubSet, find_set, read_columns
from nmt.data.sources.hub_files import Wanted
from nmt.data.sources.names import Choice, choose
from nmt.data.sources.origins import Row, archive_rows, side_file, tsv_archive, tsv_rows
from nmt.data.sources.own_files import OwnFile, own_file
from nmt.errors import UserError
from nmt.lines import count_lines, read_lines

SCHEMA = pa.schema([("line", pa.int64()), ("src", pa.string()), ("tgt", pa.string())])


@dataclass(frozen=True)
class Corpus:
    """A corpus whose files are all here; reading it needs no network."""

    name: str
    """What messages and the ledger call it: multi30k/train, or the paths."""
    weight: float
    inputs: tuple[Path, ...]
    """The files that it comes from; none where the sentences are generated."""
    revision: str
    """The commit of a set fetched from the hub, else empty."""
    read: Callable[[int], Iterator[pa.RecordBatch]]
    mirrored: Mapping[str, Path] = field(default_factory=dict)
    """What a mirror must hold for it, by its name there; local files of a config are not in it."""

    def batches(self, max_rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield batches of `SCHEMA`, text as it was written; a line counts from 1 in its file."""
        return self.read(max_rows)


def open_corpus(
    spec: CorpusSpec,
    *,
    src_lang: str,
    tgt_lang: str,
    default_split: str,
    sources: Sources,
) -> Corpus:
    """Fetch what a corpus needs, and see that its two sides have the same number of lines.

    Raises UserError for an unknown name, a file that is not there, or sides of unequal length.
    """
    if spec.tsv:
        return _one_tsv(spec, sources)
    if spec.src:
        return _two_own_files(spec, sources)
    choice = choose(spec.name, src_lang=src_lang, tgt_lang=tgt_lang, default_split=default_split)
    name, weight = choice.name, spec.weight
    match choice.entry.origin:
        case Hub(repo, revision):
            wanted = Wanted(repo, revision, choice.pair, choice.split.name)
            found = find_set(wanted, choice.split.count(choice.pair), sources)
            read = partial(_hub_batches, found, sources.cache, src_lang, tgt_lang)
            return Corpus(name, weight, found.shards, found.revision, read, found.mirrored())
        case Generated() | ZippedTsv() as origin:
            rows, mirrored = _english_first(choice, origin, sources)
            if src_lang != "en":
                rows = partial(_swapped, rows)
            inputs = tuple(mirrored.values())
            return Corpus(name, weight, inputs, "", partial(_batches, rows), mirrored)
        case _:
            sides = [side_file(choice, language, sources) for language in (src_lang, tgt_lang)]
            (_, src), (_, tgt) = sides
            _check_sides(src, tgt)
            read = partial(_batches, partial(_side_by_side, src, tgt))
            return Corpus(name, weight, (src, tgt), "", read, dict(sides))


def _one_tsv(spec: CorpusSpec, sources: Sources) -> Corpus:
    file = own_file(spec.tsv, sources)
    next(read_lines(file.text), "")  # a file that cannot be read is an error now, not hours later
    read = partial(_batches, partial(_tsv, file.text, spec.tsv))
    return Corpus(spec.tsv, spec.weight, (file.origin,), "", read, _mirrored([file]))


def _two_own_files(spec: CorpusSpec, sources: Sources) -> Corpus:
    src, tgt = (own_file(place, sources) for place in (spec.src, spec.tgt))
    _check_sides(src.text, tgt.text)
    # Both sides may be members of one archive.
    inputs = tuple(dict.fromkeys((src.origin, tgt.origin)))
    read = partial(_batches, partial(_side_by_side, src.text, tgt.text))
    name = f"{spec.src} {spec.tgt}"
    return Corpus(name, spec.weight, inputs, "", read, _mirrored([src, tgt]))


def _mirrored(files: list[OwnFile]) -> dict[str, Path]:
    return {file.mirrored: file.origin for file in files if file.mirrored}


def _check_sides(src: Path, tgt: Path) -> None:
    num_src, num_tgt = count_lines(src), count_lines(tgt)
    if num_src != num_tgt:
        raise UserError(
            f"{src} has {num_src:,} lines and {tgt} has {num_tgt:,}, but line k of one side is the "
            f"translation of line k of the other: mend the shorter one (a line ends at LF alone)."
        )


def _side_by_side(src: Path, tgt: Path) -> Iterator[Row]:
    sides = zip(read_lines(src), read_lines(tgt), strict=True)
    return ((line, *side) for line, side in enumerate(sides, start=1))


def _tsv(path: Path, name: str) -> Iterator[Row]:
    return tsv_rows(read_lines(path), name)


def _english_first(
    choice: Choice, origin: Generated | ZippedTsv, sources: Sources
) -> tuple[Callable[[], Iterator[Row]], dict[str, Path]]:
    """Return the rows of a corpus whose first column is English, and the files they lie in."""
    if isinstance(origin, Generated):
        return partial(_captions, choice.split.name), {}
    name, archive = tsv_archive(choice, sources)
    _, member = origin.files[choice.pair]
    return partial(archive_rows, archive, member, choice.split.name), {name: archive}


def _captions(split: str) -> Iterator[Row]:
    return ((line, *pair) for line, pair in enumerate(captions.pairs(split), start=1))


def _swapped(rows: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    return ((line, tgt, src) for line, src, tgt in rows())


def _batches(rows: Callable[[], Iterator[Row]], max_rows: int) -> Iterator[pa.RecordBatch]:
    remaining = rows()
    while chunk := list(islice(remaining, max_rows)):
        columns = zip(*chunk, strict=True)
        yield pa.record_batch([pa.array(column) for column in columns], schema=SCHEMA)


def _hub_batches(
    found: HubSet, cache: Path, src_lang: str, tgt_lang: str, max_rows: int
) -> Iterator[pa.RecordBatch]:
    line = 1
    for src, tgt in read_columns(found, cache, src_lang, tgt_lang, max_rows):
        lines = pa.array(range(line, line + len(src)), pa.int64())
        line += len(src)
        yield pa.record_batch([lines, src, tgt], schema=SCHEMA)
