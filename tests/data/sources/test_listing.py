"""nmt corpora NAME tells of each corpus what there is to know."""

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data.sources.catalogue import CATALOGUE
from nmt.data.sources.entries import Entry
from nmt.data.sources.listing import describe
from nmt.errors import UserError


@pytest.mark.parametrize("found", CATALOGUE, ids=[entry.name for entry in CATALOGUE])
def test_every_corpus_in_full(found: Entry) -> None:
    text = "\n".join(describe(found.name))
    for part in (found.title, found.licence, found.citation, *found.pairs):
        assert part in text
    for split in found.splits:
        for pair in found.pairs_in(split):
            assert f"{split.count(pair):,}" in text


def test_what_a_source_states_and_what_none_does() -> None:
    multi30k, wmt14, tatoeba = (list(describe(name)) for name in ("multi30k", "wmt14", "tatoeba"))
    sums = multi30k[multi30k.index("SHA-256:") + 1 :]
    assert len(sums) == 22 and all(len(line.split()[0]) == 64 for line in sums)
    assert "  multi30k/test_2017_mscoco: 461 pairs, in de, en, fr alone" in multi30k
    assert "revision: that of the first fetch, which is recorded" in wmt14
    assert "size: 818.5 MB (de-en)" in wmt14
    assert "splits (numbers of pairs: de-en of 2018-05-13; the archive grows):" in tatoeba
    assert "SHA-256: that of the first fetch, which is recorded" in tatoeba


def test_numbers_of_a_hub_set_are_a_table() -> None:
    wmt14, wmt19, opus_100 = (
        [line.split() for line in describe(name)] for name in ("wmt14", "wmt19", "opus-100")
    )
    assert ["train", "validation", "test"] in wmt14
    assert ["fr-en", "40,836,715", "3,000", "3,003"] in wmt14
    assert ["train", "validation"] in wmt19
    assert ["fr-de", "9,824,476", "1,512"] in wmt19
    assert ["en-hy", "7,059", "-", "-"] in opus_100


def test_sets_of_sacrebleu() -> None:
    assert {line.strip() for line in describe("sacrebleu")} > {
        f"sacrebleu/{name}" for name in DATASETS
    }
    lines = list(describe("sacrebleu/wmt20"))
    assert any(line.startswith("pairs: ") and "en-de" in line for line in lines)
    assert any("3b1f777cfd2fb15ccf66e9bfdb2b1699" in line for line in lines)


@pytest.mark.parametrize("name", ["multi3k", "sacrebleu/wmt99"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: .*did you mean"):
        list(describe(name))
