"""Test sets by the names that sacreBLEU gives them: sacreBLEU knows the files, we fetch them."""

import copy
import difflib
import gzip
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sacrebleu.dataset import DATASETS

from nmt.data.sources.archives import unpack
from nmt.data.sources.download import Expected, Sources, obtain_url
from nmt.data.sources.transfer import Unreachable
from nmt.errors import UserError
from nmt.lines import count_lines, write_whole


def set_names() -> tuple[str, ...]:
    return tuple(DATASETS)


def find_test_set(name: str) -> str:
    """Return the name, or raise UserError with those that there are."""
    if name in DATASETS:
        return name
    close = difflib.get_close_matches(name, DATASETS, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise UserError(
        f"sacrebleu/{name}: sacreBLEU has no test set {name}{hint}; it has {', '.join(DATASETS)}."
    )


def pairs_of(test_set: str) -> tuple[str, ...]:
    """Return the pairs of a test set, source first; a pair may be there in one direction only."""
    return tuple(DATASETS[test_set].langpairs)


def citation_of(test_set: str) -> str:
    return DATASETS[test_set].citation or DATASETS[test_set].description or ""


def write_side(
    sources: Sources,
    test_set: str,
    pair: str,
    language: str,
    num_lines: int | None,
    target: Path,
) -> None:
    """Write the source or the first reference of a test set, as a .gz file of its content alone."""
    try:
        archives = [obtain_url(sources, url, Expected(md5=md5)) for url, md5 in files_of(test_set)]
    except UserError as error:
        raise Unreachable(f"sacreBLEU's {test_set}: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        dataset = _unpacked(DATASETS[test_set], archives, Path(folder))
        if language == pair.split("-")[0]:
            file = Path(dataset.get_source_file(pair))
        else:
            file = Path(dataset.get_reference_files(pair)[0])
        found = count_lines(file)
        if num_lines is not None and found != num_lines:
            raise UserError(
                f"{test_set}: {file.name} has {found:,} lines, expected {num_lines:,}; delete "
                f"{archives[0]}."
            )
        with (
            file.open("rb") as stream,
            write_whole(target) as out,
            gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
        ):
            shutil.copyfileobj(stream, packed)


def files_of(test_set: str) -> list[tuple[str, str]]:
    """Return URL and MD5 of each file; some sets state no sum."""
    dataset = DATASETS[test_set]
    urls = dataset.data or []
    return list(zip(urls, dataset.md5 or [""] * len(urls), strict=True))


def _unpacked(dataset: Any, archives: list[Path], folder: Path) -> Any:
    """Return the set with a folder of its own where its files lie as if it had fetched them.

    sacreBLEU fetches without time limit or second try, and takes a file that was cut for the
    whole one; so it finds all files there, and only has to make text of them.
    """
    placed = copy.copy(dataset)
    placed._outdir, placed._rawdir = str(folder), str(folder / "raw")
    raw = folder / "raw"
    raw.mkdir()
    for url, archive in zip(dataset.data, archives, strict=True):
        (raw / dataset._get_tarball_filename(url)).symlink_to(archive.resolve())
        unpack(archive, raw)
    return placed
