"""nmt data pack: writes a mirror with just what a config needs, for machines without network."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.config import Config
from nmt.data.sources.corpora import Sources, open_corpus
from nmt.data.sources.sums import SUMS, read_sums, sha256_of, write_sums
from nmt.errors import UserError
from nmt.lines import write_whole


@dataclass(frozen=True)
class Packed:
    """What was written, and what a mirror does not hold."""

    directory: Path
    files: tuple[str, ...]
    num_bytes: int
    own_files: tuple[Path, ...]
    """Local files that the config names itself; they have to be copied with the config."""

    def describe(self) -> Iterator[str]:
        """Yield the lines that a person wants to read."""
        yield f"{self.directory}: {len(self.files):,} files, {self.num_bytes / 1e6:,.1f} MB"
        yield f"there: nmt prepare CONFIG --mirror {self.directory} --offline"
        for path in self.own_files:
            yield f"to be copied with the config: {path}"


def pack(config: Config, directory: Path, sources: Sources) -> Packed:
    """Fetch what a config needs and copy it into a folder that can serve as --mirror.

    What the folder holds for other configs stays. Raises UserError where a corpus cannot be had.
    """
    files: dict[str, Path] = {}
    own = [Path(config.vocab.model)] if config.vocab.model else []
    data = config.data
    for split, specs in (("train", data.train), ("dev", data.dev), ("test", data.test)):
        for spec in specs:
            corpus = open_corpus(
                spec, src_lang=config.src, tgt_lang=config.tgt, default_split=split, sources=sources
            )
            files.update(corpus.mirrored)
            own += [path for path in corpus.inputs if path not in corpus.mirrored.values()]
    try:
        sums = {name: _place(path, directory / name) for name, path in files.items()}
        old = read_sums(directory / SUMS) if (directory / SUMS).exists() else {}
        write_sums(directory / SUMS, old | sums)
    except OSError as error:
        raise UserError(
            f"{directory}: cannot be written ({error.strerror}); make room, or name another folder."
        ) from None
    num_bytes = sum((directory / name).stat().st_size for name in files)
    return Packed(directory, tuple(files), num_bytes, tuple(dict.fromkeys(own)))


def _place(path: Path, target: Path) -> str:
    """Copy a file, unless it is there, and return its SHA-256."""
    sha256 = sha256_of(path)
    if not target.exists() or sha256_of(target) != sha256:
        with path.open("rb") as stream, write_whole(target) as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    return sha256
