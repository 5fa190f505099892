"""The files that a config names itself: a path or a URL, and perhaps a member of an archive."""

from pathlib import Path
from typing import NamedTuple

from nmt.data.sources.archives import split_member, text_file
from nmt.data.sources.download import Sources, is_url, obtain_url, url_file


class OwnFile(NamedTuple):
    """A file of the user's, and where its text can be read."""

    origin: Path
    """The file named by the config, or the cached copy of the URL."""
    text: Path
    """The same file, or what was taken out of it."""
    mirrored: str
    """What a mirror calls the origin; empty for a local file, which no mirror has to hold."""


def own_file(place: str, sources: Sources) -> OwnFile:
    """Fetch, where it is a URL, and unpack, where it is an archive, what a config names.

    `corpus.de`, `corpus.de.gz`, `https://a.org/corpus.de.xz`, `https://a.org/both.zip#corpus.de`.
    """
    # A local file may have a name of this kind.
    is_whole = not is_url(place) and Path(place).is_file()
    file, member = (place, "") if is_whole else split_member(place)
    if is_url(file):
        origin = obtain_url(sources, file)
        return OwnFile(origin, text_file(origin, member, sources.cache), url_file(file))
    return OwnFile(Path(file), text_file(Path(file), member, sources.cache), "")
