"""Finds and reads parallel text in the layout of the Hugging Face hub."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nmt.data.sources.download import Sources, is_url
from nmt.data.sources.hub_files import Wanted, fetch_from_hub, fetch_from_mirror, read_record
from nmt.data.sources.sums import SUMS
from nmt.data.sources.transfer import Unreachable
from nmt.errors import UserError


@dataclass(frozen=True)
class HubSet:
    """One split of one configuration, as parquet files."""

    wanted: Wanted
    folder: Path
    """Where the files of the repository lie."""
    files: tuple[str, ...]
    """Paths in the folder, such as de-en/train-00000-of-00003.parquet."""
    revision: str
    """The commit that was fetched; empty for a mirror that does not tell."""

    @property
    def shards(self) -> tuple[Path, ...]:
        return tuple(self.folder / file for file in self.files)

    def mirrored(self) -> dict[str, Path]:
        """Return the files by their names in a mirror, with the one that tells the revision."""
        files = [*self.files, self.wanted.record]
        return {
            f"{self.wanted.folder}/{file}": self.folder / file
            for file in files
            if (self.folder / file).exists()
        }


def find_set(wanted: Wanted, num_pairs: int | None, sources: Sources) -> HubSet:
    """Return the files in the cache, in the mirror (a folder is read in place), or fetch them.

    Raises UserError where they cannot be had, or where what was fetched has another number of
    pairs than is stated.
    """
    for root in (sources.cache, sources.mirror_folder()):
        if root is not None and (found := _in_folder(wanted, root / wanted.folder)):
            return found
    ways = [fetch_from_hub]
    if sources.mirror is not None and is_url(sources.mirror):
        ways.insert(0, fetch_from_mirror)
    tried = []
    for bring in ways:
        try:
            bring(wanted, sources)
        except Unreachable as error:
            tried.append(str(error))
        else:
            found = _in_folder(wanted, sources.cache / wanted.folder)
            assert found is not None, "what was fetched is not there"
            _check_rows(found, num_pairs)
            return found
    name = "/".join(filter(None, (wanted.folder, wanted.config, wanted.split)))
    raise UserError(
        f"{wanted.folder}: {name.removeprefix(f'{wanted.folder}/')} could not be had from the "
        f"Hugging Face hub ({'; '.join(tried)}): name a folder that holds all {name}-*.parquet, or "
        f"the URL of one with a {SUMS}, by --mirror or NMT_MIRROR."
    )


def read_columns(
    found: HubSet, cache: Path, src_lang: str, tgt_lang: str, max_rows: int
) -> Iterator[tuple[pa.StringArray, pa.StringArray]]:
    """Yield source and target of at most `max_rows` rows at a time; a side that is null is ""."""
    # Here, as it takes 0.6 s to import, and most commands read no set of the hub.
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(
            "parquet",
            data_files={found.wanted.split: [str(shard) for shard in found.shards]},
            split=found.wanted.split,
            cache_dir=str(cache / "datasets"),
        )
    except datasets.exceptions.DatasetsError as error:
        raise UserError(
            f"{found.shards[0].parent}: {found.wanted.split} cannot be read as parquet "
            f"({error.__cause__ or error}); fetch the files again."
        ) from None
    for table in rows.with_format("arrow").iter(batch_size=max_rows):
        yield _side(table, src_lang, found), _side(table, tgt_lang, found)


def _side(table: pa.Table, language: str, found: HubSet) -> pa.StringArray:
    """Return a side of the column `translation`, or the column called as the language."""
    try:
        if "translation" in table.column_names:
            column = pc.struct_field(table["translation"], language)
        else:
            column = table[language]
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UserError(
            f"{found.shards[0]}: has no {language!r} in a column `translation`, and no column of "
            f"that name; its columns are {table.schema.names}."
        ) from None
    return pa.concat_arrays(pc.fill_null(column.cast(pa.string()), "").chunks)


def _in_folder(wanted: Wanted, folder: Path) -> HubSet | None:
    """Return a split that is there whole: by the record of its fetch, or else by its names."""
    paths = [
        path.relative_to(folder).as_posix() for path in (folder / wanted.config).rglob("*.parquet")
    ]
    revision, files = read_record(folder / wanted.record)
    if files:
        is_whole = set(files) <= set(paths)
    else:
        files = wanted.files_among(paths)
        counts = {int(count) for file in files for count in re.findall(r"-of-(\d+)", file)}
        is_whole = counts == {len(files)} or bool(files) and not counts
    return HubSet(wanted, folder, files, revision) if is_whole else None


def _check_rows(found: HubSet, num_pairs: int | None) -> None:
    """Compare what was fetched with the number that the catalogue states."""
    if num_pairs is None:
        return
    num_rows = sum(pq.read_metadata(shard).num_rows for shard in found.shards)
    if num_rows != num_pairs:
        for shard in found.shards:
            shard.unlink()
        wanted = found.wanted
        raise UserError(
            f"{wanted.repo}: {wanted.config}/{wanted.split} has {num_rows:,} pairs, expected "
            f"{num_pairs:,}; if this is right, name it "
            f"hub:{wanted.repo}/{wanted.config}:{wanted.split}."
        )
