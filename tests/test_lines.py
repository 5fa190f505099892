"""A line ends at LF alone, files appear whole, and one function says what text is."""

import gzip
import io
import random
import sys
import unicodedata
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.lines import (
    count_lines,
    decode_lines,
    name_repairs,
    normalise,
    read_lines,
    repair,
    write_lines,
    write_whole,
)

NO_LINE_ENDS = "\x85 \u2028 \u2029 \r \x0b \x0c \0 \x1c \x1d \x1e".split(" ")


def stored(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("char", NO_LINE_ENDS, ids=ascii)
def test_only_lf_ends_a_line(tmp_path: Path, name: str, char: str) -> None:
    path = stored(tmp_path / name, f"one{char}still one\n{char}two{char}\nthree".encode())
    assert list(read_lines(path)) == [f"one{char}still one", f"{char}two{char}", "three"]
    assert count_lines(path) == 3


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n\na", ["", "", "a"]),
        (b"a\r\nb\r\n", ["a\r", "b\r"]),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_last_line_needs_no_lf(
    tmp_path: Path, name: str, content: bytes, lines: list[str]
) -> None:
    path = stored(tmp_path / name, content)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ä\u2028\nb".encode())))
    assert list(read_lines("-")) == ["ä\u2028", "b"]


def test_text_that_is_not_utf8_is_named_by_file_line_and_byte(tmp_path: Path) -> None:
    path = stored(tmp_path / "latin.txt", "gut\nschön\n".encode("latin-1"))
    lines = read_lines(path)
    assert next(lines) == "gut"
    with pytest.raises(UserError) as caught:
        next(lines)
    assert str(caught.value) == (
        f"{path}, line 2: byte 0xf6 at position 4 is not UTF-8; convert the file to UTF-8 "
        "(for example: iconv -f latin1 -t utf-8)."
    )


@pytest.mark.parametrize("raw", [b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_surrogates_and_overlong_bytes_are_not_utf8(raw: bytes) -> None:
    with pytest.raises(UserError, match=r"^stdin, line 1: byte 0x"):
        list(decode_lines([raw + b"\n"], "stdin"))


def test_a_cut_gz_file_is_an_error(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"line {i * i}\n" for i in range(5000)).encode())
    path = tmp_path / "cut.gz"
    path.write_bytes(whole[: len(whole) // 2])
    for read in (count_lines, lambda path: list(read_lines(path))):
        with pytest.raises(UserError, match=r"cut\.gz: is not a whole gzip file .*fetch it again"):
            read(path)


def test_a_gz_file_broken_in_the_middle_is_an_error(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress("".join(f"line {i * i}\n" for i in range(5000)).encode()))
    middle = len(whole) // 2
    whole[middle : middle + 8] = b"\xff" * 8
    path = tmp_path / "broken.gz"
    path.write_bytes(whole)
    with pytest.raises(UserError, match=r"broken\.gz: is not a whole gzip file"):
        list(read_lines(path))


def test_plain_text_under_a_gz_name_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "plain.gz"
    path.write_bytes(b"text\n")
    with pytest.raises(UserError, match=r"plain\.gz: is not a whole gzip file"):
        count_lines(path)


@pytest.mark.parametrize("name", ["none.txt", "none.gz", ".", "file/below"])
def test_a_path_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(UserError, match=r"cannot be read \(.+\); check the path"):
        list(read_lines(path))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    lines = ["", "a\rb", "ä\u2028", "\ufeffx", "日本", "c\r", "\0", ""]
    write_lines(tmp_path / "new" / "folder" / "a.txt", lines)
    assert list(read_lines(tmp_path / "new" / "folder" / "a.txt")) == lines


def test_a_text_with_a_line_end_is_our_own_mistake(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        write_lines(tmp_path / "a.txt", ["one", "two\nthree"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = stored(tmp_path / "a.txt", b"old")
    with pytest.raises(error), write_whole(path) as stream:
        stream.write(b"new")
        raise error
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_bytes() == b"old"


def test_a_written_file_appears_at_once_and_whole(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.txt", b"old")
    with path.open("rb") as reader:
        with write_whole(path) as stream:
            stream.write(b"new")
            stream.flush()
            assert path.read_bytes() == b"old"
        assert path.read_bytes() == b"new"
        # Whoever was reading goes on with what was there.
        assert reader.read() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


NORMALISED = [
    ("\ufeffstart", "start"),
    ("mid\ufeffdle", "middle"),
    ("cafe\u0301", "café"),
    ("ﬁ ½ ２", "ﬁ ½ ２"),  # NFC, not NFKC
    ("soft\u00adhyphen", "soft\u00adhyphen"),
    ("a▁b", "a_b"),
    ("a\u00a0b", "a b"),
    ("a\u3000b\u2009c", "a b c"),
    ("a\u200bb\u200dc", "a\u200bb\u200dc"),
    ("a\u2028b\u2029c\x85d", "a b c d"),
    ("a\rb\r", "a b"),
    ("a\0b\x0cc\x0bd\x1ce\x7ff\x9fg", "a b c d e f g"),
    ("\t a \t  b\u00a0", "a b"),
    ("\u00a0\u3000\t\r", ""),
    ("\0", ""),
    ("A&amp;B", "A&amp;B"),
    ("</s> <unk> <s>", "</s> <unk> <s>"),
    ("👩‍👧", "👩‍👧"),
    ("plain ascii", "plain ascii"),
]


@pytest.mark.parametrize(("text", "expected"), NORMALISED, ids=lambda text: ascii(text)[1:-1])
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


def random_text(rng: random.Random) -> str:
    special = [chr(code) for code in range(0xA1)] + list("\u2028\u2029\ufeff▁\u3000\u0301\u0345가")
    any_char = [chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))]
    return "".join(rng.choice(special if rng.random() < 0.6 else any_char) for _ in range(12))


def test_normalising_twice_changes_nothing() -> None:
    rng = random.Random(1)
    for _ in range(5000):
        once = normalise(random_text(rng))
        assert normalise(once) == once
        assert unicodedata.is_normalized("NFC", once)
        assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in once)
        assert not set(once) & {"\ufeff", "▁", "\n"}


@pytest.mark.parametrize(
    ("text", "is_mended"),
    [
        ("a  b ", False),
        ("\ta\u00a0b\r", False),
        ("a\u3000b", False),
        ("größer", False),
        ("a\u2028b", True),
        ("a\x85b", True),
        ("a\0b", True),
        ("\ufeffa", True),
        ("cafe\u0301", True),
        ("a▁b", True),
    ],
)
def test_repair_tells_what_was_mended_from_what_was_trimmed(text: str, is_mended: bool) -> None:
    assert (repair(text) != text) == is_mended
    assert normalise(repair(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gr\u00f6\u00dfer", []),
        ("a\u00a0\tb\r", []),
        ("\ufeffa", ["byte order marks"]),
        ("cafe\u0301", ["decomposed letters"]),
        ("e\ufeff\u0301", ["byte order marks", "decomposed letters"]),
        ("a\0b\x9f", ["controls"]),
        ("a\u2028b", ["line separators"]),
        ("a\u2029b", ["line separators"]),
        ("a\x85b\x0c", ["controls", "line separators"]),
        ("a\u2581b", ["U+2581"]),
    ],
    ids=ascii,
)
def test_repairs_have_names(text: str, names: list[str]) -> None:
    assert name_repairs(text) == names


def plain_repair(text: str) -> str:
    """Do what `repair` does, character by character and without short cuts."""
    mended = ""
    for char in unicodedata.normalize("NFC", text.replace("\ufeff", "")):
        is_odd = unicodedata.category(char) in ("Cc", "Zl", "Zp") and char not in "\t\n\r"
        mended += " " if is_odd else "_" if char == "\u2581" else char
    return mended


def test_repair_agrees_with_its_plain_twin_and_with_the_names() -> None:
    rng = random.Random(2)
    for _ in range(5000):
        text = random_text(rng)[: rng.randint(1, 12)]
        assert repair(text) == plain_repair(text)
        assert bool(name_repairs(text)) == (repair(text) != text)
