"""Splits that we cut ourselves never move."""

from nmt.data.sources.origins import split_of


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
