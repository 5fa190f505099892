"""Fetches a split of a hub repository into the cache: from the hub, or from a mirror by URL."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

from nmt.data.sources.download import Expected, Sources, fetch
from nmt.data.sources.sums import SUMS, read_sums, sha256_of
from nmt.data.sources.transfer import Unreachable
from nmt.lines import write_lines

_CONVERTED = "refs/convert/parquet"
"""Where the hub keeps the parquet files that it makes itself of JSON, CSV and the like."""


@dataclass(frozen=True)
class Wanted:
    """A split of a configuration of a repository."""

    repo: str
    revision: str
    """A commit, tag or branch; empty is the one of the first fetch, and then the main branch."""
    config: str
    """A folder such as de-en; empty for files that lie in none."""
    split: str

    @property
    def folder(self) -> str:
        """The folder in cache and mirror: apart for each revision that is asked for."""
        return f"{self.repo}@{self.revision}" if self.revision else self.repo

    @property
    def record(self) -> str:
        """The file that says of a fetch: the commit in the first line, then the files."""
        return f"{self.config}/{self.split}.revision" if self.config else f"{self.split}.revision"

    def files_among(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the files of the split in the layouts that the hub knows, in order.

        de-en/train-00000-of-00003.parquet, de-en/train/0000.parquet, de-en/train.parquet; without
        a config the folder is data, default or none.
        """
        folder = re.escape(f"{self.config}/") if self.config else "((data|default)/)?"
        shard = r"(-\d{5}-of-\d{5}(-\w+)?|/\d+)?"
        pattern = re.compile(rf"{folder}{re.escape(self.split)}{shard}\.parquet")
        return tuple(sorted(path for path in paths if pattern.fullmatch(path)))


def read_record(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the commit and the files of a fetch; nothing where there was none."""
    if not path.exists():
        return "", ()
    revision, *files = path.read_text(encoding="utf-8").splitlines()
    return revision, tuple(files)


def fetch_from_mirror(wanted: Wanted, sources: Sources) -> None:
    """Fetch a split from a mirror that is a URL; its SHA256SUMS says which files there are."""
    assert sources.mirror is not None
    mirror = sources.mirror.rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        fetch(sources, f"{mirror}/{SUMS}", Path(folder) / SUMS)
        sums = {
            name.removeprefix(f"{wanted.folder}/"): sha256
            for name, sha256 in read_sums(Path(folder) / SUMS).items()
            if name.startswith(f"{wanted.folder}/")
        }
        record = Path(folder) / "record"
        if wanted.record in sums:
            fetch(sources, f"{mirror}/{wanted.folder}/{wanted.record}", record)
        revision, _ = read_record(record)
    expected = {file: Expected(sha256=sums[file]) for file in wanted.files_among(sums)}
    if not expected:
        raise Unreachable(f"{mirror}/{SUMS}: lists no such file")
    folder_url = f"{mirror}/{wanted.folder}"
    for file, target in _begin(wanted, revision, expected, sources):
        fetch(sources, f"{folder_url}/{file}", target, expected[file])


def fetch_from_hub(wanted: Wanted, sources: Sources) -> None:
    """Fetch a split at one commit, which is recorded and holds for all later fetches."""
    if sources.offline:
        raise Unreachable("the network is not to be used")
    pinned, _ = read_record(sources.cache / wanted.folder / wanted.record)
    first = wanted.revision or pinned
    for revision in [first] if first else ["", _CONVERTED]:
        commit, expected = _listing(wanted, revision, sources.patience.timeout_s)
        if expected:
            break
    else:
        raise Unreachable(f"it has no such parquet file at revision {commit}")
    token = huggingface_hub.get_token() or ""
    for file, target in _begin(wanted, commit, expected, sources):
        url = huggingface_hub.hf_hub_url(wanted.repo, file, repo_type="dataset", revision=commit)
        fetch(sources, url, target, expected[file], token)


def _listing(wanted: Wanted, revision: str, timeout_s: float) -> tuple[str, dict[str, Expected]]:
    """Return the commit that a revision stands for, and what the hub says of each file."""
    try:
        # One question without retries: it tells at once where no network is.
        info = huggingface_hub.HfApi().dataset_info(
            wanted.repo, revision=revision or None, timeout=timeout_s, files_metadata=True
        )
    except (OSError, httpx.HTTPError) as error:
        if revision == _CONVERTED:  # not every repository has been converted
            return revision, {}
        reason, *_ = (str(error) or type(error).__name__).splitlines()
        raise Unreachable(reason) from None
    assert info.sha is not None
    known = {file.rfilename: file for file in info.siblings or []}
    return info.sha, {
        name: Expected(known[name].size, lfs.sha256 if (lfs := known[name].lfs) else "")
        for name in wanted.files_among(known)
    }


def _begin(
    wanted: Wanted, revision: str, expected: Mapping[str, Expected], sources: Sources
) -> Iterator[tuple[str, Path]]:
    """Write down what is to come, then yield each file and its place in the cache.

    A split is whole when all of that is there; what an earlier fetch left of another revision goes.
    """
    folder = sources.cache / wanted.folder
    write_lines(folder / wanted.record, [revision, *expected])
    for file, facts in expected.items():
        target = folder / file
        if target.exists() and facts.sha256 != sha256_of(target):
            target.unlink()
        yield file, target
