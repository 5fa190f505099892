"""Splits that we cut ourselves never move, and sacreBLEU's sets come as files of a mirror."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

from nmt.data.origins import split_of


def test_splits_do_not_depend_on_case_and_blanks() -> None:
    sentences = [f"Sentence number {k}." for k in range(3000)]
    assert {split_of(sentence) for sentence in sentences} == {"train", "dev", "test"}
    for sentence in sentences:
        spelt = " " + sentence.upper().replace(" ", "\u00a0 ")
        assert split_of(spelt) == split_of(sentence)


def test_splits_stay_what_they_are() -> None:
    """Else scores on them could no longer be compared."""
    held_out = {k: split_of(f"Sentence {k}.") for k in range(130)}
    assert {k: split for k, split in held_out.items() if split != "train"} == {
        60: "dev",
        87: "test",
        97: "test",
        120: "test",
    }


PROGRAM = """
import sys
from pathlib import Path
from nmt.data.download import Sources
from nmt.data.names import choose
from nmt.data.origins import side_file
from nmt.errors import UserError
choice = choose("wmt-newstest/newstest2019-deen", src_lang="de", tgt_lang="en", default_split="")
for language in ("de", "en"):
    try:
        print(side_file(choice, language, Sources(Path(sys.argv[1]))))
    except UserError as error:
        print(error)
"""


def test_sacrebleu_set_becomes_a_file_a_side(tmp_path: Path) -> None:
    """sacreBLEU reads the place of its files when it is imported, so it needs a new process."""
    folder = tmp_path / "sacrebleu" / "wmt19"
    folder.mkdir(parents=True)
    for field in ("src", "ref", "docid", "genre", "origlang"):
        num_lines = 1_999 if field == "ref" else 2_000
        (folder / f"wmt19.de-en.{field}").write_text(f"{field}\n" * num_lines)
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path / "cache")]
    environment = {**os.environ, "SACREBLEU": str(folder.parent)}
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    source, error = found.stdout.splitlines()
    assert source == str(tmp_path / "cache" / "wmt-newstest" / "newstest2019-deen.de.gz")
    assert gzip.decompress(Path(source).read_bytes()) == b"src\n" * 2_000
    assert "wmt19.de-en.ref: has not the 2,000 lines" in error
