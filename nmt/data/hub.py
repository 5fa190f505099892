"""Finds, fetches and reads parallel text in the layout of the Hugging Face hub."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub.utils import disable_progress_bars, httpx  # type: ignore[attr-defined]

from nmt.data.download import TIMEOUT_S, Sources
from nmt.errors import UserError
from nmt.lines import write_whole


@dataclass(frozen=True)
class HubSet:
    """One split of one pair, as parquet files `<folder>/<pair>/<split>-00000-of-00003.parquet`."""

    folder: Path
    pair: str
    split: str
    shards: tuple[Path, ...]
    revision: str
    """The commit that was fetched; empty for a mirror, which does not tell."""


def find_set(repo: str, revision: str, pair: str, split: str, sources: Sources) -> HubSet:
    """Return the files in the cache, in the mirror (read in place), or fetched from the hub.

    An empty revision is the one of the first fetch, and at the first fetch the main branch.
    """
    record = sources.cache / repo / pair / f"{split}.revision"
    pinned = record.read_text().strip() if record.exists() else ""
    cached = sources.cache / repo
    if shards := _whole(cached, pair, split):
        return HubSet(cached, pair, split, shards, pinned)
    if sources.mirror is not None and "://" not in sources.mirror:
        mirrored = Path(sources.mirror) / repo
        if shards := _whole(mirrored, pair, split):
            return HubSet(mirrored, pair, split, shards, "")
    commit = _fetch(repo, revision or pinned, pair, split, sources)
    with write_whole(record) as out:
        out.write(f"{commit}\n".encode())
    shards = _whole(cached, pair, split)
    if not shards:
        raise UserError(f"{repo}: the hub has no whole {pair}/{split} at revision {commit}.")
    return HubSet(cached, pair, split, shards, commit)


def read_columns(
    found: HubSet, cache: Path, src_lang: str, tgt_lang: str, max_rows: int
) -> Iterator[tuple[pa.StringArray, pa.StringArray]]:
    """Yield source and target of at most `max_rows` rows at a time; a side that is null is ""."""
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(
            str(found.folder),
            data_files={found.split: f"{found.pair}/{found.split}-*.parquet"},
            split=found.split,
            cache_dir=str(cache / "datasets"),
        )
    except datasets.exceptions.DatasetsError as error:
        raise UserError(
            f"{found.shards[0].parent}: {found.split} cannot be read as parquet "
            f"({error.__cause__ or error}); fetch the files again."
        ) from None
    for table in rows.with_format("arrow").iter(batch_size=max_rows):
        yield _side(table, src_lang, found), _side(table, tgt_lang, found)


def _side(table: pa.Table, language: str, found: HubSet) -> pa.StringArray:
    try:
        column = pc.struct_field(table["translation"], language)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UserError(
            f"{found.shards[0]}: has no {language!r} in a column `translation`; "
            f"its columns are {table.schema.names}."
        ) from None
    return pa.concat_arrays(pc.fill_null(column.cast(pa.string()), "").chunks)


def _whole(folder: Path, pair: str, split: str) -> tuple[Path, ...]:
    """Return the files of a split, or none where not all that their names count are there."""
    shards = tuple(sorted((folder / pair).glob(f"{split}-*.parquet")))
    counts = {int(count) for shard in shards for count in re.findall(r"-of-(\d+)", shard.name)}
    return shards if counts == {len(shards)} else ()


def _fetch(repo: str, revision: str, pair: str, split: str, sources: Sources) -> str:
    """Fetch the files of a split into the cache, and return their commit."""
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        # One question without retries: it fixes the commit, and tells at once where no network is.
        info = huggingface_hub.HfApi().dataset_info(
            repo, revision=revision or None, timeout=TIMEOUT_S
        )
        assert info.sha is not None
        huggingface_hub.snapshot_download(
            repo,
            repo_type="dataset",
            revision=info.sha,
            allow_patterns=f"{pair}/{split}-*.parquet",
            local_dir=sources.cache / repo,
        )
    except (OSError, httpx.HTTPError) as error:
        reason, *_ = (str(error) or type(error).__name__).splitlines()
        raise UserError(
            f"{repo}: {pair}/{split} could not be had from the Hugging Face hub ({reason}): name a "
            f"folder that holds all {repo}/{pair}/{split}-*.parquet by --mirror or NMT_MIRROR."
        ) from None
    return info.sha
