"""The catalogue is complete and says what each corpus is."""

from pathlib import Path

import sacrebleu

from nmt.data.catalogue import CATALOGUE, Files, SacrebleuSets, TarMembers, describe


def test_every_entry_has_what_a_user_must_know() -> None:
    rows = {row.name: row for row in describe()}
    assert list(rows) == [entry.name for entry in CATALOGUE]
    for row in rows.values():
        assert row.licence and row.source and row.languages and row.splits, row.name
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
