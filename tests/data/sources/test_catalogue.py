"""The catalogue is complete and says what each corpus is."""

from pathlib import Path

import sacrebleu

from nmt.data.captions import pairs
from nmt.data.sources.catalogue import CATALOGUE, describe
from nmt.data.sources.entries import Files, SacrebleuSets, TarMembers


def test_every_entry_has_what_a_user_must_know() -> None:
    rows = {row.name: row for row in describe()}
    assert list(rows) == [entry.name for entry in CATALOGUE]
    for row in rows.values():
        assert all((row.licence, row.source, row.languages, row.splits, row.pairs)), row.name
    assert all(entry.citation and entry.title for entry in CATALOGUE)
    assert all(split.num_pairs for entry in CATALOGUE for split in entry.splits)
    assert rows["multi30k"].languages == "cs, de, en, fr"
    assert rows["multi30k"].pairs == f"{29_000 + 1_014 + 1_000 + 1_000 + 461 + 1_071:,}"
    assert rows["wmt14"].source == "hub: wmt/wmt14"
    assert rows["wmt14"].size == "818.5 MB"


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


def test_opus_100_names_each_pair_in_alphabetical_order() -> None:
    entry = next(entry for entry in CATALOGUE if entry.name == "opus-100")
    assert len(set(entry.pairs)) == 99
    assert {"de-en", "en-fr", "af-en", "en-zh"} < set(entry.pairs)
    assert all(pair == "-".join(sorted(pair.split("-"))) for pair in entry.pairs)


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
