"""Text comes out of archives as it went in, and no member lands outside its folder."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from nmt.data.sources.archives import split_member, text_file, unpack
from nmt.errors import UserError

TEXT = "eins\nzwei\u2028\nd\u00f6rt\r\n".encode()


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_tar(path: Path, members: dict[str, bytes], links: dict[str, str]) -> Path:
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, aim in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, aim
            archive.addfile(info)
    return path


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("a.zip#b/c.txt", ("a.zip", "b/c.txt")),
        ("https://a.org/a.tar.gz#b#c", ("https://a.org/a.tar.gz", "b#c")),
        ("a.zip", ("a.zip", "")),
        ("c#.txt", ("c#.txt", "")),
        ("a.txt.gz", ("a.txt.gz", "")),
    ],
)
def test_member_follows_the_name_of_an_archive(place: str, parts: tuple[str, str]) -> None:
    assert split_member(place) == parts


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("d/a.de", TEXT),
        ("d/a.de.gz", gzip.compress(TEXT)),
        ("a.xz", lzma.compress(TEXT)),
        ("a.bz2", bz2.compress(TEXT)),
    ],
    ids=["plain", "gz", "xz", "bz2"],  # compressed bytes may hold the time
)
@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz"])
def test_member_is_the_text_that_it_holds(
    tmp_path: Path, name: str, member: str, content: bytes
) -> None:
    members = {"README": b"-", member: content, "z": b"-"}
    write_zip(tmp_path / name, members) if name == "a.zip" else write_tar(
        tmp_path / name, members, {}
    )
    found = text_file(tmp_path / name, member, tmp_path / "cache")
    assert found.read_bytes() == TEXT
    assert found.is_relative_to(tmp_path / "cache")
    stamp = found.stat().st_mtime_ns
    assert text_file(tmp_path / name, member, tmp_path / "cache").stat().st_mtime_ns == stamp


def test_only_member_needs_no_name(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"d/": b"", "d/a": TEXT})
    assert text_file(archive, "", tmp_path).read_bytes() == TEXT
    archive = write_tar(tmp_path / "a.tar.gz", {"./a": TEXT}, {"link": "a"})
    assert text_file(archive, "", tmp_path).read_bytes() == TEXT
    assert text_file(archive, "a", tmp_path).read_bytes() == TEXT


def test_compressed_files_and_plain_ones(tmp_path: Path) -> None:
    (tmp_path / "a.de.xz").write_bytes(lzma.compress(TEXT))
    assert text_file(tmp_path / "a.de.xz", "", tmp_path / "cache").read_bytes() == TEXT
    for name in ("a.de", "a.de.gz"):
        assert text_file(tmp_path / name, "", tmp_path / "cache") == tmp_path / name


def test_archive_that_changes_is_unpacked_again(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"a": b"old\n"})
    text_file(archive, "a", tmp_path)
    write_zip(archive, {"a": b"new\n"})
    os.utime(archive, ns=(0, 0))
    assert text_file(archive, "a", tmp_path).read_bytes() == b"new\n"


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_errors_name_what_the_archive_holds(tmp_path: Path, name: str) -> None:
    members = {f"m{k}": b"" for k in range(10)}
    path = tmp_path / name
    write_zip(path, members) if name == "a.zip" else write_tar(path, members, {})
    with pytest.raises(UserError, match=r"no member x .*m0, .*m7 and 2 more"):
        text_file(path, "x", tmp_path)
    with pytest.raises(UserError, match=rf"several members.*{name}#MEMBER"):
        text_file(path, "", tmp_path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=f"{name}#m1: cannot be read"):
        text_file(path, "m1", tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: cannot be read .*check the path"):
        text_file(path, "m1", tmp_path)


EVIL = ["../out", "../../out", "{folder}/out", "d/../../out"]


@pytest.mark.parametrize("member", EVIL)
@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_no_member_lands_outside(tmp_path: Path, name: str, member: str) -> None:
    archive, member = tmp_path / name, member.format(folder=tmp_path)
    evil = {member: TEXT}
    write_zip(archive, evil) if name == "a.zip" else write_tar(archive, evil, {})
    inside = tmp_path / "deep" / "inside"
    found = text_file(archive, member, inside)
    assert found.is_relative_to(inside) and found.resolve().is_relative_to(inside.resolve())
    with suppress(UserError):  # an absolute name may lose its slash instead
        unpack(archive, inside / "all")
    files = {path for path in tmp_path.rglob("*") if path.is_file() and path != archive}
    assert all(path.is_relative_to(inside) for path in files)
    if ".." in member:
        assert files == {found}


@pytest.mark.parametrize("aim", ["/etc/passwd", "../../secret"])
def test_no_link_leads_outside(tmp_path: Path, aim: str) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = write_tar(tmp_path / "a.tar.gz", {}, {"a": aim})
    with pytest.raises(UserError, match=r"a\.tar\.gz#a: cannot be read"):
        text_file(archive, "a", tmp_path / "in" / "cache")
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack(archive, tmp_path / "in" / "all")


def test_whole_archives_are_unpacked(tmp_path: Path) -> None:
    unpack(write_zip(tmp_path / "a.zip", {"d/a": TEXT}), tmp_path / "zip")
    unpack(write_tar(tmp_path / "a.tar.gz", {"d/a": TEXT}, {"b": "d/a"}), tmp_path / "tar")
    for file in ("zip/d/a", "tar/d/a", "tar/b"):
        assert (tmp_path / file).read_bytes() == TEXT
