"""Alarms about a whole corpus: each on a corpus that deserves it, none on its clean twin."""

import gzip
import random
import re
import zipfile
from collections.abc import Iterator
from itertools import combinations, islice
from pathlib import Path

import pyarrow as pa
import pytest

from nmt.data import captions
from nmt.data.alarms import alarms, merge, observe, read_summary, summarise_shard
from nmt.data.shards import cut
from nmt.data.sources.corpora import SCHEMA

Pairs = list[tuple[str, str]]


def batch_of(pairs: Pairs, first: int = 1) -> pa.RecordBatch:
    columns = {
        "line": pa.array(range(first, first + len(pairs)), pa.int64()),
        "src": pa.array([src for src, _ in pairs], pa.string()),
        "tgt": pa.array([tgt for _, tgt in pairs], pa.string()),
    }
    return pa.record_batch(columns)


def alarms_of(pairs: Pairs, languages: str = "de-en") -> list[str]:
    src_lang, tgt_lang = languages.split("-")
    return alarms(observe(batch_of(pairs), src_lang, tgt_lang), src_lang, tgt_lang)


def shifted(pairs: Pairs, first: int, last: int, offset: int = 1) -> Pairs:
    """Move the targets of rows first to last (counted from 1) some rows down, the last to first.

    The rows that are wrong then say so with that offset, but those at one end.
    """
    targets = [tgt for _, tgt in pairs]
    moved = targets[first - 1 : last]
    targets[first - 1 : last] = [*moved[-offset:], *moved[:-offset]]
    return [(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=True)]


def without_target(pairs: Pairs, row: int) -> Pairs:
    """Lose one target: from there on each stands one row too early."""
    targets = [tgt for number, (_, tgt) in enumerate(pairs, start=1) if number != row]
    return [(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=False)]


def numbered(num_pairs: int) -> Pairs:
    return [
        (f"Der Zug Nummer {n} kommt um {n % 24}.15 Uhr an.", f"Train {n} is due at {n % 24}:15.")
        for n in range(1000, 1000 + num_pairs)
    ]


def of_any_length(num_pairs: int) -> Pairs:
    """Return pairs without numbers, one side about as long as the other."""
    rng = random.Random(5)
    lengths = [rng.randint(3, 25) for _ in range(num_pairs)]
    return [("ba " * length, "mu " * max(1, length + rng.randint(-2, 2))) for length in lengths]


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
@pytest.mark.parametrize(("first", "last"), [(1, 40), (81, 120), (101, 115), (161, 200), (1, 200)])
def test_a_shifted_run_is_named_with_its_offset(first: int, last: int, offset: int) -> None:
    pairs = numbered(200)
    assert alarms_of(pairs) == []
    (alarm,) = alarms_of(shifted(pairs, first, last, offset))
    named, said = alarm.split(": ")
    assert said == f"the target of row k seems to stand in row k{offset:+}."
    rows, *words = named.removeprefix("rows ").split()
    assert words == f"look misaligned, offset {offset:+}".split()
    begin, end = map(int, rows.split("-"))
    # Nothing stands beyond the ends of a corpus that could tell where a run begins or ends.
    assert begin == first + max(0, -offset) or begin == first == 1
    assert end == last - max(0, offset) or end == last == 200


@pytest.mark.parametrize("lost", [1, 2])
def test_lost_targets_shift_all_rows_that_follow(lost: int) -> None:
    pairs = numbered(200)
    for _ in range(lost):
        pairs = without_target(pairs, 101)
    (alarm,) = alarms_of(pairs)
    assert alarm.startswith(f"rows {101 + lost}-{200 - lost} look misaligned, offset -{lost}")


def test_lengths_alone_tell() -> None:
    pairs = of_any_length(600)
    assert alarms_of(pairs) == []
    (alarm,) = alarms_of(shifted(pairs, 201, 400))
    first, last = map(int, alarm.split()[1].split("-"))
    assert abs(first - 201) <= 5 and abs(last - 399) <= 5


def test_rows_that_look_alike_raise_nothing() -> None:
    assert alarms_of([("Ja.", "Yes.")] * 500) == []
    short = [("Ja.", "Yes."), ("Nein.", "No."), ("Doch!", "Of course!"), ("Wo?", "Where is it?")]
    drawn = random.Random(1).choices(short, k=2000)
    assert alarms_of(drawn) == []
    assert alarms_of(of_any_length(500) + [("Ja.", "Yes.")] * 3000 + of_any_length(500)) == []


def test_unrelated_sides_are_no_shift() -> None:
    pairs = of_any_length(2000)
    targets = [tgt for _, tgt in pairs]
    random.Random(2).shuffle(targets)
    assert alarms_of([(src, tgt) for (src, _), tgt in zip(pairs, targets, strict=True)]) == []


def test_rows_are_named_by_line_where_lines_have_gaps() -> None:
    whole = batch_of(shifted(numbered(300), 101, 200))
    kept = pa.array([line % 5 != 0 for line in range(1, 301)])
    (alarm,) = alarms(observe(whole.filter(kept), "de", "en"), "de", "en")
    assert alarm.startswith("rows 101-198 look misaligned, offset +1")


def test_many_runs_are_summed_up() -> None:
    pairs = numbered(1200)
    for first in range(21, 1200, 80):
        pairs = shifted(pairs, first, first + 39)
    found = alarms_of(pairs)
    assert len(found) == 11
    assert found[-1] == "5 more runs look misaligned, of 195 rows."


def test_neither_cuts_nor_order_change_an_alarm() -> None:
    pairs = shifted(numbered(300), 81, 220)
    pairs[:40] = [(tgt, src) for src, tgt in pairs[:40]]
    expected = alarms_of(pairs)
    assert len(expected) == 2
    rng = random.Random(0)
    for _ in range(10):
        cuts = [0, *sorted(rng.sample(range(301), 5)), 300]
        parts = [
            observe(batch_of(pairs[start:stop], start + 1), "de", "en")
            for start, stop in zip(cuts, cuts[1:], strict=False)
        ]
        rng.shuffle(parts)
        halves = [merge(parts[:3]), merge(parts[3:])]
        assert alarms(merge(halves), "de", "en") == expected


def test_shards_in_files_give_the_same_alarms(tmp_path: Path) -> None:
    batch = batch_of(shifted(numbered(300), 81, 220))
    batch = batch.filter(pa.array([line % 50 != 0 for line in range(1, 301)]))
    with pa.OSFile(str(tmp_path / "raw"), "wb") as file, pa.ipc.new_file(file, SCHEMA) as sink:
        sink.write_batch(batch)
    summaries = []
    for shard in cut([tmp_path / "raw"], [batch.num_rows], rows_per_shard=70):
        path = tmp_path / f"{shard.first}.npz"
        assert summarise_shard(shard, "de", "en", path) == shard.last - shard.first
        summaries.append(read_summary(path))
    expected = observe(batch, "de", "en")
    whole = merge(reversed(summaries))
    assert alarms(whole, "de", "en") == alarms(expected, "de", "en") != []
    assert (whole.votes, whole.src_scripts) == (expected.votes, expected.src_scripts)


def test_what_is_kept_of_a_row_is_a_few_bytes() -> None:
    summary = observe(batch_of(of_any_length(1000)), "de", "en")
    assert sum(rows.nbytes for _, rows in summary.stretches) <= 8 * 1000


def test_swapped_columns_are_named_with_their_share() -> None:
    pairs = [(f"Das Haus ist {n} Jahre alt.", f"The house is {n} years old.") for n in range(100)]
    assert alarms_of(pairs) == []
    swapped = [(tgt, src) for src, tgt in pairs]
    (alarm,) = alarms_of(swapped)
    assert alarm.startswith("columns look swapped in 100.0% of the pairs that tell (100 of 100)")
    (alarm,) = alarms_of(swapped[:20] + pairs[20:])
    assert alarm.startswith("columns look swapped in 20.0%")
    assert alarms_of(swapped[:2] + pairs[2:]) == []


SENTENCES = {
    "ar": "هذا البيت يقع على الجبل الكبير.",
    "cs": "Dům, který jsme viděli, je na kopci a byl už starý.",
    "de": "Das Haus, das wir sahen, ist auf dem Berg und es war alt.",
    "el": "Το σπίτι βρίσκεται στον λόφο.",
    "en": "The house that we saw is on the hill, and it was old.",
    "es": "La casa que vimos está en la colina y era muy vieja.",
    "fr": "La maison que nous avons vue est sur la colline et elle était vieille.",
    "he": "הבית נמצא על הגבעה.",
    "hi": "यह घर पहाड़ी पर है।",
    "ja": "私たちが見た家は丘の上にあります。",
    "ko": "우리가 본 집은 언덕 위에 있습니다.",
    "nl": "Het huis dat we zagen is op de heuvel en het was oud.",
    "pl": "Dom, który jest na wzgórzu, był już stary i nie ma go tam.",
    "ru": "Дом, который мы видели, стоит на холме, и он был старый.",
    "tr": "Bu ev çok eski ve bir tepe için daha güzel değil.",
    "uk": "Будинок, який ми бачили, був на пагорбі, і він що не старий.",
    "zh": "我们看到的房子在山上。",
}


@pytest.mark.parametrize("one", SENTENCES)
def test_swapped_columns_are_seen_in_any_two_languages(one: str) -> None:
    for other in SENTENCES.keys() - {one}:
        pairs = [(SENTENCES[one], SENTENCES[other])] * 10
        assert alarms_of(pairs, f"{one}-{other}") == []
        (alarm,) = alarms_of(pairs, f"{other}-{one}")
        assert alarm.startswith("columns look swapped in 100.0% of the pairs that tell (10 of 10)")
        assert f"source {other} and target {one} are declared" in alarm


def test_another_script_is_named_with_its_share() -> None:
    pairs = [("Das ist ein Haus.", "This is a house.")] * 30
    pairs[10:20] = [("Это дом на горе.", "This is a house.")] * 10
    assert alarms_of(pairs) == [
        "source: script Cyrl, expected Latn, in 33.3% of the rows (10 of 30)."
    ]
    assert alarms_of(pairs, "xx-en") == []
    both = [("Das ist ein Haus.", "Αυτό είναι ένα σπίτι.")] * 30
    assert alarms_of(both) == [
        "target: script Grek, expected Latn, in 100.0% of the rows (30 of 30)."
    ]
    assert alarms_of(both, "de-ja") == [
        "target: script Grek, expected Hani or Hira or Kana, in 100.0% of the rows (30 of 30)."
    ]


def test_the_captions_raise_nothing_but_where_a_line_is_lost() -> None:
    pairs = list(islice(captions.pairs("train"), 2000))
    assert alarms_of(pairs, "en-de") == []
    (alarm,) = alarms_of(without_target(pairs, 1001), "en-de")
    run = re.match(r"rows (\d+)-1999 look misaligned, offset -1", alarm)
    assert run and abs(int(run[1]) - 1002) <= 40


def test_nothing_to_look_at_raises_nothing() -> None:
    assert alarms(merge([]), "de", "en") == []
    assert alarms_of([]) == []
    assert alarms_of([("", "")] * 50) == []
    nulls = pa.record_batch(
        {"line": [1, 2], "src": pa.array([None, "a"]), "tgt": pa.array(["b", None])}
    )
    assert alarms(observe(nulls, "de", "en"), "de", "en") == []


def real_corpora(mirror: Path) -> Iterator[tuple[str, str, Pairs]]:
    """Yield name, languages and pairs of the aligned corpora of the mirror."""

    def side(file: str) -> list[str]:
        return gzip.decompress((mirror / file).read_bytes()).decode().split("\n")[:-1]

    for file in sorted((mirror / "multi30k").glob("*.en.gz")):
        split = file.name.removesuffix(".en.gz")
        for a, b in combinations(("cs", "de", "en", "fr"), 2):
            names = [f"multi30k/{split}.{language}.gz" for language in (a, b)]
            if all((mirror / name).exists() for name in names):
                yield f"multi30k/{split}", f"{a}-{b}", list(zip(*map(side, names), strict=True))
    for split in ("dev", "test"):
        for other in ("de", "fr", "ja", "zh", "ru", "tr"):
            names = [f"flores/flores-{split}.{language}.gz" for language in ("en", other)]
            yield f"flores/{split}", f"en-{other}", list(zip(*map(side, names), strict=True))
    for file in sorted((mirror / "wmt-newstest").glob("*.en.gz")):
        names = [f"wmt-newstest/{file.name}", f"wmt-newstest/{file.name[:-5]}de.gz"]
        yield names[0], "en-de", list(zip(*map(side, names), strict=True))
    for archive, member, other in (("deu-eng", "deu.txt", "de"), ("jpn-eng", "jpn.txt", "ja")):
        with zipfile.ZipFile(mirror / f"tatoeba/{archive}.zip") as files:
            rows = files.read(member).decode().split("\n")[:-1]
        pairs = [(row.split("\t")[0], row.split("\t")[1]) for row in rows]
        yield archive, f"en-{other}", pairs


def check_twins(name: str, languages: str, pairs: Pairs) -> None:
    """No alarm on the corpus; one that names the rows where it is shifted from the middle on."""
    assert alarms_of(pairs, languages) == [], (name, languages)
    middle = len(pairs) // 2
    (alarm,) = alarms_of(without_target(pairs, middle + 1), languages)
    rows, offset = alarm.split()[1], alarm.split()[5]
    first, last = map(int, rows.split("-"))
    # Captions and pairs that are sorted by length tell little a row.
    assert abs(first - middle - 2) <= 40, (name, languages, alarm)
    assert (last, offset) == (len(pairs) - 1, "-1:"), (name, languages, alarm)
    swapped = alarms_of([(tgt, src) for src, tgt in pairs], languages)
    assert len(swapped) == 1, (name, languages, swapped)
    assert swapped[0].startswith("columns look swapped"), (name, languages, alarm)


def test_real_corpora_raise_nothing_but_where_they_are_spoilt(mirror: Path) -> None:
    for name, languages, pairs in real_corpora(mirror):
        if 1000 <= len(pairs) <= 1100 or "newstest2014" in name:
            check_twins(name, languages, pairs)


@pytest.mark.slow
def test_all_real_corpora_raise_nothing_but_where_they_are_spoilt(mirror: Path) -> None:
    for name, languages, pairs in real_corpora(mirror):
        check_twins(name, languages, pairs)
