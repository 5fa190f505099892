"""Every pair is accounted for, rare scripts get pieces, training and translation read alike."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from prepared import (
    corpora,
    ledger_rows,
    prepare_small,
    some_pairs,
    stored_ids,
    stored_rows,
    write_corpus,
    write_small,
    write_vocab,
)

from nmt import chain
from nmt.config import DecodingConfig, VocabConfig
from nmt.data.sample import sample_pairs
from nmt.decoding.search import Hypothesis
from nmt.decoding.translate import Translator
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import START, STOP, UNK, Vocab, Vocabs, load_vocab, train_vocab

ANY_TEXT = ("clean.min_script=0", "clean.min_letters=0", "clean.max_ratio=99")

DEV = some_pairs(5, seed=2)
# One or more reasons to go, and some to stay.
SIDES = [
    *(
        "",
        " ",
        "\u00a0\u3000",
        "\ufeff",
        "\0",
        "\u2028",
        "ant",
        "ANT",
        "ant\u2028",
        "&amp;",
        "&#0;",
    ),
    *("ant " * 30, "a" * 120, "a" * 30, "12345 67890", "Слово и дело", "bro\ufffdken", "caf\u00e9"),
    *("cafe\u0301", DEV[0][0], DEV[1][0].upper(), DEV[0][1], "ant bat cat den eel", "lo mi na ota"),
]


@pytest.fixture(scope="module")
def vocab_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"vocab.model={write_vocab(tmp_path_factory.mktemp('vocab') / 'bytes.model')}"


@pytest.mark.parametrize("dedup", ["pair", "source", "target", "none"])
def test_a_pair_is_either_stored_or_dropped_for_one_reason(
    tmp_path: Path, vocab_model: str, dedup: str
) -> None:
    rng = random.Random(8)
    config = write_small(tmp_path)
    names = ["one", "two"]
    for name in names:
        pairs = [(rng.choice(SIDES), rng.choice(SIDES)) for _ in range(400)]
        write_corpus(tmp_path, name, pairs)
    rules = [f"clean.dedup={dedup}", "clean.max_tokens=40", "clean.drop_other_numbers=true"]
    run, statistics = prepare_small(config, corpora(tmp_path, *names), vocab_model, *rules)
    index = {corpus["name"]: number for number, corpus in enumerate(statistics.corpora)}
    told = [(index[row[0]], int(row[1]), *row[2:]) for row in ledger_rows(run)[1:]]
    dropped = [(corpus, line) for corpus, line, action, _ in told if action == "dropped"]
    stored = [row[:2] for row in stored_rows(run)]
    assert sorted([*dropped, *stored]) == [
        (corpus, line) for corpus in (0, 1) for line in range(1, 401)
    ]
    assert len({row[:2] for row in told}) == len(told)
    for number, corpus in enumerate(statistics.corpora):
        reasons = Counter(row[3] for row in told if row[0] == number and row[2] == "dropped")
        assert corpus["dropped"] == reasons
        assert corpus["pairs"] == corpus["kept"] + reasons.total() == 400
        assert len(reasons) >= 10


GREEK = "αβγδεζηθικλμνξοπρστυφχψω"


def in_latin(num: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abdeghiklmnoprstu", k=rng.randint(3, 7))) for _ in range(200)]
    return [
        (" ".join(rng.choices(words, k=6)), " ".join(rng.choices(words, k=6))) for _ in range(num)
    ]


def in_greek(num: int) -> list[tuple[str, str]]:
    """Return pairs whose target holds each letter once, in words of four letters."""
    rng = random.Random(7)
    letters = ["".join(rng.sample(GREEK, len(GREEK))) for _ in range(num)]
    return [
        (f"greek {n}", " ".join(text[i : i + 4] for i in range(0, len(text), 4)))
        for n, text in enumerate(letters)
    ]


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_a_script_of_a_few_lines_has_its_pieces(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    latin = in_latin(2000, seed=1)
    config = write_small(tmp_path, [*latin[:first], *in_greek(20), *latin[first:]])
    num_texts = []

    def train(texts: Sequence[str], config: VocabConfig) -> Vocab:
        num_texts.append(len(texts))
        return train_vocab(texts, config)

    monkeypatch.setattr(chain, "train_vocab", train)
    vocab = "vocab={type: bpe, size: 300, byte_fallback: false, sample: 500}"
    run, _ = prepare_small(config, vocab, *ANY_TEXT)
    assert num_texts == [2 * 500]
    model = load_vocab(run.vocab_file("src", is_separate=False))
    assert set(GREEK) <= set(model.pieces(range(len(model))))


def test_hardly_any_twenty_lines_are_left_out_of_a_quarter() -> None:
    """Wherever they stand: of any 20 lines about 5 are among 500 of 2,020, and 3 in 1,000 times
    none, as for any uniform sample."""
    numbers = [str(row) for row in range(2020)]

    def read() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"src": numbers, "tgt": numbers})

    drawn = set(map(int, sample_pairs(read, 500)[0]))
    assert len(drawn) == 500
    found = [len(drawn & set(range(first, first + 20))) for first in range(2001)]
    assert found.count(0) < 0.01 * len(found)
    assert abs(sum(found) / len(found) - 4.95) < 0.1


MEASURE = """
import re, sys
import pyarrow as pa
from nmt.config import VocabConfig
from nmt.data.sample import sample_pairs
from nmt.tokens.vocab import train_vocab

def read():
    for first in range(0, int(sys.argv[1]), 10_000):
        texts = [f"sentence {n} of a file that goes on" for n in range(first, first + 10_000)]
        yield pa.record_batch({"src": texts, "tgt": texts})

src, tgt = sample_pairs(read, 500)
assert len(src) == len(tgt) == 500
train_vocab(src + tgt, VocabConfig(size=300))
# Not ru_maxrss: a child inherits its parent's.
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_sample_of_ten_times_the_text_takes_no_more_memory() -> None:
    peaks = []
    for num_rows in (50_000, 500_000):
        command = [sys.executable, "-c", MEASURE, str(num_rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    # The text itself would be some 100 MB more.
    assert peaks[1] < 1.05 * peaks[0]


# As it is written, and as model and user see it.
TEXTS = {
    "１２３ is 123": "１２３ is 123",
    "a ﬁne oﬃce": "a ﬁne oﬃce",
    " two  blanks\u00a0\u3000": "two blanks",
    "co\u00adoperate": "co\u00adoperate",
    "zero\u200bwidth": "zero\u200bwidth",
    "▁typed▁ ▁": "_typed_ _",
    "cafe\u0301": "café",
    "\ufeffmark\ufeff": "mark",
    "a\u2028b\x85c\rd\x0ce\0f\r": "a b c d e f",
    "see </s> and <unk> or <s>": "see </s> and <unk> or <s>",
    "<pad><0x0A>▁<s></s>": "<pad><0x0A>_<s></s>",
    "😀 👩‍👩‍👧 ɪntəˈnæʃənəl 漢字 Ελλάδα العربية": "😀 👩‍👩‍👧 ɪntəˈnæʃənəl 漢字 Ελλάδα العربية",
    "\U0010fffd \ue000 ▅": "\U0010fffd \ue000 ▅",
    "A & B": "A & B",
}


class Reader:
    """An engine that remembers the ids of the sentences that it was given."""

    precision = "none"
    max_positions = None

    def __init__(self) -> None:
        self.read: list[list[int]] = []

    def search_batches(
        self, batches: Sequence[list[list[int]]], options: DecodingConfig, num_best: int
    ) -> Iterator[list[list[Hypothesis]]]:
        for batch in batches:
            self.read += batch
            yield [[Hypothesis([], 0.0, True)] for _ in batch]


def read_by_translator(vocab: Vocab, lines: Sequence[str]) -> list[list[int]]:
    reader = Reader()
    decoding = DecodingConfig(beam=1, batch_size=1)
    Translator(reader, Vocabs(vocab, vocab), decoding).translate(lines)
    return reader.read


def test_training_and_translation_read_a_text_alike(tmp_path: Path, vocab_model: str) -> None:
    config = write_small(tmp_path, [(raw, f"lo {n}") for n, raw in enumerate(TEXTS)])
    run, _ = prepare_small(config, vocab_model, *ANY_TEXT)
    store = TokenStore(run.store)
    trained_on = [stored_ids(store, "src", row) for row in range(len(store))]
    vocab = load_vocab(run.vocab_file("src", is_separate=False))
    assert read_by_translator(vocab, list(TEXTS)) == trained_on
    assert vocab.decode(trained_on) == list(TEXTS.values())
    assert not any({UNK, START, STOP} & set(ids[:-1]) for ids in trained_on)


def test_entities_are_mended_in_training_corpora_alone(tmp_path: Path, vocab_model: str) -> None:
    """What a user has translated, and what scores a model, is text as somebody wrote it."""
    config = write_small(tmp_path, [("A&amp;B", "lo"), ("A&B", "mi")])
    write_corpus(tmp_path, "dev", [("A&amp;B C", "A&amp;B D")])
    run, _ = prepare_small(config, vocab_model, *ANY_TEXT)
    assert [row[2] for row in stored_rows(run)] == ["A&B", "A&B"]
    assert run.lines_file("dev", "src").read_text() == "A&amp;B C\n"
    vocab = load_vocab(run.vocab_file("src", is_separate=False))
    assert vocab.decode(read_by_translator(vocab, ["A&amp;B", "A&B"])) == ["A&amp;B", "A&B"]
