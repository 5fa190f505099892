"""The catalogue is complete and says what each corpus is."""

from pathlib import Path

import pytest
import sacrebleu

from nmt.data.captions import pairs
from nmt.data.sources.catalogue import CATALOGUE, describe
from nmt.data.sources.entries import Files, Hub, SacrebleuSets, TarMembers


def test_every_entry_has_what_a_user_must_know() -> None:
    rows = {row.name: row for row in describe()}
    assert list(rows) == [entry.name for entry in CATALOGUE]
    for row in rows.values():
        assert all((row.licence, row.source, row.languages, row.splits, row.pairs)), row.name
    assert all(entry.citation and entry.title for entry in CATALOGUE)
    assert all(split.num_pairs or split.by_pair for entry in CATALOGUE for split in entry.splits)
    assert rows["multi30k"].languages == "cs, de, en, fr"
    assert rows["multi30k"].pairs == f"{29_000 + 1_014 + 1_000 + 1_000 + 461 + 1_071:,}"
    assert rows["wmt14"].source == "hub: wmt/wmt14"
    assert rows["wmt14"].size == "818.5 MB (de-en)"
    assert rows["wmt14"].pairs == "47,845,988 in 5 language pairs"


def test_every_file_of_multi30k_has_its_own_sum() -> None:
    entry = next(entry for entry in CATALOGUE if isinstance(entry.origin, Files))
    files = {
        entry.origin.file.format(split=split.name, language=language)
        for split in entry.splits
        for language in split.languages or entry.languages
    }
    assert set(entry.origin.sha256) == files
    assert len(set(entry.origin.sha256.values())) == len(files)


def test_captions_have_as_many_pairs_as_stated() -> None:
    entry = next(entry for entry in CATALOGUE if entry.name == "captions")
    stated = {split.name: split.num_pairs for split in entry.splits}
    assert sum(1 for _ in pairs("dev")) == stated["dev"]


@pytest.mark.parametrize(
    ("name", "pair", "counts"),
    [
        ("wmt14", "de-en", (4_508_785, 3_000, 3_003)),
        ("wmt14", "hi-en", (32_863, 520, 2_507)),
        ("wmt15", "de-en", (4_522_998, 3_003, 2_169)),
        ("wmt15", "fr-en", (40_853_137, 4_503, 1_500)),
        ("wmt16", "de-en", (4_548_885, 2_169, 2_999)),
        ("wmt16", "ro-en", (610_320, 1_999, 1_999)),
        ("wmt17", "de-en", (5_906_184, 2_999, 3_004)),
        ("wmt17", "lv-en", (3_567_528, 2_003, 2_001)),
        ("wmt18", "et-en", (2_175_873, 2_000, 2_000)),
        ("wmt19", "fr-de", (9_824_476, 1_512)),
        ("opus-100", "de-en", (1_000_000, 2_000, 2_000)),
        ("opus-100", "en-kn", (14_537, 917, 918)),
    ],
)
def test_hub_sets_have_the_numbers_of_their_cards(
    name: str, pair: str, counts: tuple[int, ...]
) -> None:
    entry = next(entry for entry in CATALOGUE if entry.name == name)
    assert tuple(split.count(pair) for split in entry.splits) == counts


def test_every_pair_of_a_wmt_set_has_every_split() -> None:
    for entry in CATALOGUE:
        if isinstance(entry.origin, Hub) and entry.name.startswith("wmt"):
            assert all(entry.pairs_in(split) == entry.pairs for split in entry.splits)


def test_opus_100_is_as_large_as_its_card_says() -> None:
    """The card counts the pairs with a million, with 100,000 and with 10,000 or more, too."""
    entry = next(entry for entry in CATALOGUE if entry.name == "opus-100")
    train, validation, test = entry.splits
    assert entry.pairs == tuple(sorted(train.by_pair)) and len(entry.pairs) == 99
    assert all(pair == "-".join(sorted(pair.split("-"))) for pair in entry.pairs)
    assert all("en" in pair.split("-") for pair in entry.pairs)
    at_least = {
        limit: sum(count >= limit for count in train.by_pair.values())
        for limit in (1_000_000, 100_000, 10_000)
    }
    assert at_least == {1_000_000: 44, 100_000: 73, 10_000: 95}
    train_alone = {"an-en", "dz-en", "en-hy", "en-mn", "en-yo"}
    assert set(validation.by_pair) == set(test.by_pair) == set(entry.pairs) - train_alone


def test_sacrebleu_has_every_test_set_in_the_pair_named() -> None:
    entry = next(entry for entry in CATALOGUE if isinstance(entry.origin, SacrebleuSets))
    assert set(entry.origin.sets) == {split.name for split in entry.splits}
    for name, (test_set, pair) in entry.origin.sets.items():
        assert pair in sacrebleu.get_langpairs_for_testset(test_set), name


def test_flores_knows_the_code_of_each_language() -> None:
    entry = next(entry for entry in CATALOGUE if isinstance(entry.origin, TarMembers))
    assert tuple(sorted(entry.origin.codes)) == entry.languages
    assert set(entry.origin.members) == {split.name for split in entry.splits}


def test_mirror_has_the_files_that_the_catalogue_names(mirror: Path) -> None:
    for entry in CATALOGUE:
        if isinstance(entry.origin, Files | TarMembers | SacrebleuSets):
            for split in entry.splits:
                for language in split.languages or entry.languages:
                    file = entry.origin.file.format(split=split.name, language=language)
                    assert (mirror / entry.name / file).is_file()
