"""The corpora that have a name: what they hold, under which licence, and where they come from."""

from itertools import combinations, zip_longest
from typing import NamedTuple

from nmt.data.captions import SPLITS as CAPTIONS
from nmt.data.sources import hub_counts
from nmt.data.sources.entries import (
    Entry,
    Files,
    Generated,
    Hub,
    Origin,
    SacrebleuSets,
    Split,
    TarMembers,
    ZippedTsv,
)


class Description(NamedTuple):
    """A row of `nmt corpora`, as text."""

    name: str
    languages: str
    splits: str
    pairs: str
    size: str
    licence: str
    source: str


def describe() -> list[Description]:
    """Return a row for each corpus."""
    return [
        Description(
            name=entry.name,
            languages=", ".join(entry.languages),
            splits=", ".join(split.name for split in entry.splits),
            pairs=_all_pairs(entry),
            size=size_of(entry),
            licence=entry.licence,
            source=source_of(entry.origin),
        )
        for entry in CATALOGUE
    ]


def _all_pairs(entry: Entry) -> str:
    """Return the sum over the splits, and over the language pairs where they differ, or ""."""
    by_pair = sum(sum(split.by_pair.values()) for split in entry.splits)
    if by_pair:
        return f"{by_pair:,} in {len(entry.pairs)} language pairs"
    known = sum(split.num_pairs or 0 for split in entry.splits)
    return f"{known:,}" if known else ""


def size_of(entry: Entry) -> str:
    """Return how much there is to fetch, as one reads it, or ""."""
    if entry.size is None:
        return ""
    return f"{entry.size / 1e6:,.1f} MB{f' ({entry.counted})' if entry.counted else ''}"


def source_of(origin: Origin) -> str:
    """Return where a corpus comes from, as one reads it."""
    match origin:
        case Hub():
            return f"hub: {origin.repo}"
        case SacrebleuSets():
            return "sacreBLEU"
        case Generated():
            return "generated"
        case _:
            return origin.url.removesuffix("{file}")


def _pairs_of(*languages: str) -> tuple[str, ...]:
    return tuple(f"{left}-{right}" for left, right in combinations(sorted(languages), 2))


def _hub_splits(counts: hub_counts.Counts) -> tuple[Split, ...]:
    """Return the splits with their numbers by pair; one that no pair has is left out."""
    columns = zip_longest(*counts.values())
    return tuple(
        Split(
            name,
            by_pair={
                pair: num_pairs
                for pair, num_pairs in zip(counts, column, strict=True)
                if num_pairs is not None
            },
        )
        for name, column in zip(hub_counts.SPLITS, columns, strict=False)
    )


def _wmt(year: int, counts: hub_counts.Counts, size: int, citation: str) -> Entry:
    """Return the hub set of a WMT news task; the size is that of de-en."""
    return Entry(
        name=f"wmt{year}",
        title=f"Training data of the WMT 20{year} news translation task",
        pairs=tuple(counts),
        splits=_hub_splits(counts),
        licence="WMT, for research (the hub says: unknown)",
        citation=citation,
        origin=Hub(f"wmt/wmt{year}"),
        size=size,
        counted="de-en",
    )


_MULTI30K_SHA256 = {
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    "test_2018_flickr.cs.gz": "7d0a9db904f94c554a8c58049a9f3a5357c27f46cc3d710d70cb0b4a2585b8c2",
    "test_2018_flickr.de.gz": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
    "test_2018_flickr.en.gz": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
    "test_2018_flickr.fr.gz": "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}

_NEWSTEST_PAIRS = {
    2008: 2051,
    2009: 2525,
    2010: 2489,
    2011: 3003,
    2012: 3003,
    2013: 3000,
    2014: 3003,
    2015: 2169,
    2016: 2999,
    2017: 3004,
    2018: 2998,
}

_NEWSTEST_SETS = {
    **{f"newstest{year}": (f"wmt{year - 2000:02}", "en-de") for year in _NEWSTEST_PAIRS},
    # The set of 2014 as it was handed out had 2,737 lines; results are reported on the full one.
    "newstest2014": ("wmt14/full", "en-de"),
    "newstest2019-ende": ("wmt19", "en-de"),
    "newstest2019-deen": ("wmt19", "de-en"),
    "newstest2020-ende": ("wmt20", "en-de"),
    "newstest2020-deen": ("wmt20", "de-en"),
}

CATALOGUE = (
    Entry(
        name="captions",
        title="Picture captions of a small grammar, for work without any network",
        pairs=("de-en",),
        splits=tuple(Split(name, count) for name, count in CAPTIONS.items()),
        licence="Apache-2.0",
        citation="this package",
        origin=Generated(),
    ),
    Entry(
        name="multi30k",
        title="Image captions of Flickr30k and their translations",
        pairs=_pairs_of("cs", "de", "en", "fr"),
        splits=(
            Split("train", 29_000),
            Split("val", 1_014),
            Split("test_2016_flickr", 1_000),
            Split("test_2017_flickr", 1_000, ("de", "en", "fr")),
            Split("test_2017_mscoco", 461, ("de", "en", "fr")),
            Split("test_2018_flickr", 1_071),
        ),
        licence="for research (CC BY-NC-SA 4.0 is quoted; the repository has no licence file)",
        citation="Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions",
        origin=Files(
            file="{split}.{language}.gz",
            url="https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/{file}",
            sha256=_MULTI30K_SHA256,
        ),
        size=2_600_000,
    ),
    Entry(
        name="tatoeba",
        title="Everyday sentences of volunteers; dev and test are cut by English sentence",
        pairs=("de-en", "ja-en"),
        splits=(Split("train", 166_771), Split("dev", 1_491), Split("test", 1_551)),
        licence="CC BY 2.0",
        citation="tatoeba.org, by way of manythings.org/anki",
        origin=ZippedTsv(
            url="https://www.manythings.org/anki/{file}",
            files={"de-en": ("deu-eng.zip", "deu.txt"), "ja-en": ("jpn-eng.zip", "jpn.txt")},
        ),
        size=6_600_000,
        counted="de-en of 2018-05-13; the archive grows",
    ),
    Entry(
        name="wmt-newstest",
        title="Test sets of the WMT news translation tasks, English and German",
        pairs=("de-en",),
        splits=(
            *(Split(f"newstest{year}", count) for year, count in _NEWSTEST_PAIRS.items()),
            Split("newstest2019-ende", 1_997),
            Split("newstest2019-deen", 2_000),
            Split("newstest2020-ende", 1_418),
            Split("newstest2020-deen", 785),
        ),
        licence="WMT, for research",
        citation="the findings papers of the WMT of each year; sacreBLEU prints them (--cite)",
        origin=SacrebleuSets(file="{split}.{language}.gz", sets=_NEWSTEST_SETS),
    ),
    Entry(
        name="flores",
        title="FLORES: Wikipedia sentences translated by professionals; test is its devtest",
        pairs=_pairs_of("de", "en", "fr", "ja", "ru", "tr", "zh"),
        splits=(Split("dev", 997), Split("test", 1_012)),
        licence="CC BY-SA 4.0",
        citation="NLLB Team 2022, No Language Left Behind; Goyal et al. 2022, FLORES-101",
        origin=TarMembers(
            file="flores-{split}.{language}.gz",
            url="https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz",
            members={
                "dev": "flores200_dataset/dev/{code}.dev",
                "test": "flores200_dataset/devtest/{code}.devtest",
            },
            codes={
                "de": "deu_Latn",
                "en": "eng_Latn",
                "fr": "fra_Latn",
                "ja": "jpn_Jpan",
                "ru": "rus_Cyrl",
                "tr": "tur_Latn",
                "zh": "zho_Hans",
            },
        ),
    ),
    Entry(
        name="opus-100",
        title="OPUS-100: a million pairs or fewer of English and each of 99 languages",
        pairs=tuple(hub_counts.OPUS_100),
        splits=_hub_splits(hub_counts.OPUS_100),
        licence="unknown; that of each corpus of OPUS",
        citation="Zhang et al. 2020, Improving Massively Multilingual Neural Machine Translation "
        "and Zero-Shot Translation; Tiedemann 2012, Parallel Data, Tools and Interfaces in OPUS",
        origin=Hub("Helsinki-NLP/opus-100"),
    ),
    _wmt(
        14,
        hub_counts.WMT14,
        818_467_512,
        "Bojar et al. 2014, Findings of the 2014 Workshop on Statistical Machine Translation",
    ),
    _wmt(
        15,
        hub_counts.WMT15,
        821_722_473,
        "Bojar et al. 2015, Findings of the 2015 Workshop on Statistical Machine Translation",
    ),
    _wmt(
        16,
        hub_counts.WMT16,
        827_152_589,
        "Bojar et al. 2016, Findings of the 2016 Conference on Machine Translation",
    ),
    _wmt(
        17,
        hub_counts.WMT17,
        1_011_327_465,
        "Bojar et al. 2017, Findings of the 2017 Conference on Machine Translation",
    ),
    _wmt(
        18,
        hub_counts.WMT18,
        3_808_612_335,
        "Bojar et al. 2018, Findings of the 2018 Conference on Machine Translation",
    ),
    _wmt(
        19,
        hub_counts.WMT19,
        4_079_732_256,
        "Barrault et al. 2019, Findings of the 2019 Conference on Machine Translation",
    ),
)
