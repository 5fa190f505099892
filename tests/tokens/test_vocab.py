"""SentencePiece: text that comes back, sizes that fit, files that are refused."""

import hashlib
import io
import random
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
import sentencepiece as spm

from nmt.config import VocabConfig
from nmt.errors import UserError
from nmt.lines import normalise
from nmt.tokens.vocab import PAD, START, STOP, UNK, Vocab, load_vocab, train_vocab

Kind = Literal["unigram", "bpe"]
KINDS: list[Kind] = ["unigram", "bpe"]
SIZE = 400


def sentences(num: int) -> list[str]:
    """Return sentences of made-up words, with a few letters beyond ASCII and punctuation."""
    rng = random.Random(7)
    words = ["".join(rng.choices("abdeghiklmnoprstuäöüß", k=rng.randint(2, 7))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=rng.randint(3, 12))) + " ." for _ in range(num)]


@pytest.fixture(scope="module", params=KINDS)
def vocab(request: pytest.FixtureRequest) -> Vocab:
    return train_vocab(sentences(400), VocabConfig(type=request.param, size=SIZE))


def come_back(vocab: Vocab, texts: Sequence[str]) -> list[str]:
    return vocab.decode(vocab.encode(texts))


def test_size_is_what_was_asked_for(vocab: Vocab) -> None:
    assert len(vocab) == SIZE


def test_specials_stand_first(vocab: Vocab) -> None:
    assert vocab.pieces([UNK, START, STOP, PAD]) == ["<unk>", "<s>", "</s>", "<pad>"]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "a",
        "  a   b ",
        "\ufeffa b",
        "A&amp;B",
        "１２３ ﬁne co\u00adop",
        "a▁b ▁ c",
        "cafe\u0301 ano\u0302",
        "a\u2028b\u0085c\rd\x00e\x0cf",
        "U+2585 is ▅ which SentencePiece keeps for itself",
        "see </s> and <unk> or <s> and <pad>",
        "<0x0A> <0x41>",
        "😀 👩‍👩‍👧 ɪntəˈnæʃənəl 漢字 Ελλάδα العربية हिन्दी",
        "\U0010fffd \ue000",
        "ab" * 3000,
    ],
)
def test_normalised_text_comes_back(vocab: Vocab, raw: str) -> None:
    text = normalise(raw)
    ids = vocab.encode([text])
    assert ids[0][-1] == STOP
    assert not {UNK, START, STOP, PAD} & set(ids[0][:-1])
    assert vocab.decode(ids) == [text]
    assert "⁇" not in text


def test_any_character_of_unicode_comes_back(vocab: Vocab) -> None:
    rng = random.Random(1)
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    chars = [*map(chr, codes[:0x3000]), *map(chr, rng.sample(codes, 5000))]
    texts = [normalise("".join(rng.choices([" ", *chars], k=20))) for _ in range(1000)]
    assert come_back(vocab, texts) == texts


def test_a_text_is_encoded_as_if_alone(vocab: Vocab) -> None:
    texts = sentences(30)
    assert vocab.encode(texts) == [vocab.encode([text])[0] for text in texts]


def test_nothing_in_nothing_out(vocab: Vocab) -> None:
    assert vocab.encode([]) == []
    assert vocab.decode([]) == []
    assert vocab.decode([[], [STOP], [START, PAD, STOP]]) == ["", "", ""]


def byte_ids(vocab: Vocab, raw: bytes) -> list[int]:
    pieces = vocab.pieces(range(len(vocab)))
    return [pieces.index(f"<0x{byte:02X}>") for byte in raw]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xc3\xa4", "ä"),
        (b"\xff", "�"),
        (b"a\xc3", "a�"),
        (b"a\xc3b", "a�b"),
        (b"\xa4a", "�a"),
        (b"\xed\xa0\x80", "���"),
        (b"a\nb", "a b"),
        (b"a\r\n\x00b\n", "a b"),
        ("a\u2028b\u0085c".encode(), "a b c"),
        ("a\u2581b".encode(), "a_b"),
    ],
)
def test_bytes_that_a_model_makes_up_stay_one_line_of_utf8(
    vocab: Vocab, raw: bytes, expected: str
) -> None:
    assert vocab.decode([byte_ids(vocab, raw)]) == [expected]


def test_random_ids_decode_to_one_normalised_line(vocab: Vocab) -> None:
    rng = random.Random(2)
    rows = [rng.choices(range(len(vocab)), k=30) for _ in range(500)]
    for text in vocab.decode(rows):
        assert text == normalise(text)
        assert len(text.encode().splitlines()) == 1


def test_only_byte_pieces_hold_controls(vocab: Vocab) -> None:
    assert all(piece.isprintable() for piece in vocab.pieces(range(len(vocab))))


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_bytes(kind: Kind) -> None:
    config = VocabConfig(type=kind, size=SIZE)
    first, second = (train_vocab(sentences(400), config) for _ in range(2))
    assert first.model == second.model
    assert first.sha256 == hashlib.sha256(second.model).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_size_that_the_text_cannot_fill_shrinks_with_one_warning(
    kind: Kind, byte_fallback: bool
) -> None:
    config = VocabConfig(type=kind, size=8000, byte_fallback=byte_fallback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vocab = train_vocab(sentences(12), config)
    assert len(vocab) < 1000
    assert [str(warning.message) for warning in caught] == [
        f"vocab.size 8000 is more than the text can fill: it has {len(vocab)} pieces now."
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_one_word_is_enough(kind: Kind) -> None:
    with pytest.warns(UserWarning, match="more than the text can fill"):
        vocab = train_vocab(["word"], VocabConfig(type=kind))
    assert come_back(vocab, ["a word"]) == ["a word"]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_refused(texts: list[str]) -> None:
    with pytest.raises(UserError, match="No text is left to train the vocabulary on"):
        train_vocab(texts, VocabConfig())


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_too_small_says_what_is_enough(kind: Kind) -> None:
    with pytest.raises(UserError) as caught:
        train_vocab(sentences(50), VocabConfig(type=kind, size=265))
    message = str(caught.value)
    assert message.startswith("vocab.size 265 is too small: 260 pieces are fixed")
    advice = int(message.removesuffix(".").rsplit(" ", 1)[1])
    assert len(train_vocab(sentences(50), VocabConfig(type=kind, size=advice))) == advice


@pytest.mark.parametrize("kind", KINDS)
def test_without_byte_fallback_no_piece_is_a_byte(kind: Kind) -> None:
    config = VocabConfig(type=kind, size=110, byte_fallback=False)
    vocab = train_vocab(sentences(200), config)
    assert not [piece for piece in vocab.pieces(range(len(vocab))) if piece.startswith("<0x")]
    assert UNK in vocab.encode(["漢"])[0]


def with_rare_characters(num: int) -> list[str]:
    """Return sentences of which `num` hold one rare character each, the n-th of them n // 20 + 1
    times, so that later ones are less rare."""
    rare = [chr(0x4E00 + index) * (index // 20 + 1) for index in range(num)]
    texts = sentences(1500)
    return [f"{text} {chars}" for text, chars in zip(texts, rare, strict=False)] + texts[num:]


@pytest.mark.parametrize("kind", KINDS)
def test_characters_take_at_most_a_quarter_and_the_commonest_ones(kind: Kind) -> None:
    texts = with_rare_characters(120)
    vocab = train_vocab(texts, VocabConfig(type=kind, size=SIZE))
    singles = [piece for piece in vocab.pieces(range(len(vocab))) if len(piece) == 1]
    assert 0.9 * SIZE / 4 <= len(singles) <= SIZE / 4
    kept = {char for char in singles if char >= "\u4e00"}
    assert chr(0x4E00) not in kept
    assert chr(0x4E00 + 119) in kept
    assert come_back(vocab, texts) == texts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "byte_fallback"), [(SIZE, True), (120, False)])
def test_a_text_of_many_common_characters_trains_too(
    kind: Kind, size: int, byte_fallback: bool
) -> None:
    """As Chinese has them: a quarter of the vocabulary covers half of the text."""
    rng = random.Random(3)
    chars = [chr(0x4E00 + index) for index in range(size // 2)]
    texts = ["".join(rng.choices(chars, k=20)) for _ in range(500)]
    vocab = train_vocab(texts, VocabConfig(type=kind, size=size, byte_fallback=byte_fallback))
    singles = [piece for piece in vocab.pieces(range(len(vocab))) if len(piece) == 1]
    assert 0.9 * size / 4 <= len(singles) <= size / 4


@pytest.mark.parametrize("kind", KINDS)
def test_every_character_is_a_piece_where_a_quarter_has_room(kind: Kind) -> None:
    texts = with_rare_characters(60)
    vocab = train_vocab(texts, VocabConfig(type=kind, size=SIZE))
    assert set("".join(texts)) - {" "} <= set(vocab.pieces(range(len(vocab))))


def test_a_file_comes_back(vocab: Vocab, tmp_path: Path) -> None:
    path = tmp_path / "run" / "vocab.model"
    vocab.save(path)
    assert path.read_bytes() == vocab.model
    loaded = load_vocab(path, vocab.sha256)
    assert loaded.encode(sentences(20)) == vocab.encode(sentences(20))


def test_another_vocabulary_is_refused_by_both_hashes(vocab: Vocab, tmp_path: Path) -> None:
    path = tmp_path / "vocab.model"
    vocab.save(path)
    expected = "0" * 64
    with pytest.raises(UserError) as caught:
        load_vocab(path, expected)
    for part in (str(path), vocab.sha256, expected):
        assert part in str(caught.value)


def test_a_missing_file_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"vocab\.model: cannot read the vocabulary \(No such"):
        load_vocab(tmp_path / "vocab.model")


@pytest.mark.parametrize("raw", [b"not a model", b"\x80\x04pickle"])
def test_a_file_that_is_no_model_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vocab.model"
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"vocab\.model: this is not a SentencePiece model"):
        load_vocab(path)


def test_a_model_with_other_ids_is_refused_with_the_flags_to_use(tmp_path: Path) -> None:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(50)), model_writer=model, vocab_size=100, minloglevel=3
    )
    path = tmp_path / "theirs.model"
    path.write_bytes(model.getvalue())
    with pytest.raises(UserError) as caught:
        load_vocab(path)
    assert "theirs.model: expected the ids unk 0, start 1, stop 2, pad 3" in str(caught.value)
    assert "found [0, 1, 2, -1]" in str(caught.value)
    assert "--pad_id=3" in str(caught.value)


# The last two are words like any other, of which a lattice would rather take the parts.
SYMBOLS = ("<2de>", "[N]", "｟x｠", ",", '"', "a\\b", "12", "handelsmarine", "großmarkt")


def with_symbols(num: int) -> list[str]:
    """Return sentences with symbols before, between, behind and inside words."""
    rng = random.Random(11)
    return [
        f"{rng.choice(SYMBOLS)} {text}{rng.choice(SYMBOLS)} {rng.choice(SYMBOLS)}{text}"
        for text in sentences(num)
    ]


def with_user_symbols(kind: Kind, *, size: int = SIZE, byte_fallback: bool = True) -> Vocab:
    config = VocabConfig(type=kind, size=size, byte_fallback=byte_fallback, user_symbols=SYMBOLS)
    return train_vocab(with_symbols(400), config)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "byte_fallback"), [(SIZE, True), (120, False)])
def test_a_user_symbol_is_one_piece_wherever_it_stands(
    kind: Kind, size: int, byte_fallback: bool
) -> None:
    vocab = with_user_symbols(kind, size=size, byte_fallback=byte_fallback)
    assert len(vocab) == size
    symbols = vocab.pieces(range(4, 4 + len(SYMBOLS)))
    assert symbols == list(SYMBOLS)
    texts = with_symbols(300)
    assert come_back(vocab, texts) == texts
    pattern = re.compile("|".join(map(re.escape, SYMBOLS)))
    for text, ids in zip(texts, vocab.encode(texts), strict=True):
        found = [piece for piece in vocab.pieces(ids) if piece in SYMBOLS]
        assert found == pattern.findall(text)
    assert not [piece for piece in vocab.scores() if pattern.search(piece)]


@pytest.mark.parametrize("kind", KINDS)
def test_control_ids_stay_out_of_reach_beside_user_symbols(kind: Kind) -> None:
    vocab = with_user_symbols(kind)
    text = "see </s> and <unk>[N]<s> or <pad> <0x0A>"
    ids = vocab.encode([text])
    assert not {UNK, START, STOP, PAD} & set(ids[0][:-1])
    assert vocab.decode(ids) == [text]


@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_that_stands_in_symbols_alone_is_no_piece_and_takes_no_room(kind: Kind) -> None:
    assert not {"｟", "｠", "x", "["} & with_user_symbols(kind).scores().keys()
    symbol = "".join(chr(0x4E00 + index) for index in range(SIZE // 4))
    texts = [f"{text} {symbol * 5} {chr(0x6000 + n)}" for n, text in enumerate(sentences(500))]
    config = VocabConfig(type=kind, size=SIZE, user_symbols=(symbol,))
    vocab = train_vocab(texts, config)
    assert set("abdeghiklmnoprstuäöüß") <= {piece.strip("▁") for piece in vocab.scores()}
    assert not set(symbol) & vocab.scores().keys()
    assert come_back(vocab, texts) == texts


@pytest.mark.parametrize("kind", KINDS)
def test_no_piece_is_made_of_a_symbol_with_a_rare_letter(kind: Kind) -> None:
    texts = [f"{text} 漢handelsmarine {chr(0x6000 + n)}" for n, text in enumerate(sentences(400))]
    texts.append("漢 alone")
    config = VocabConfig(type=kind, size=SIZE, user_symbols=("漢handelsmarine",))
    vocab = train_vocab(texts, config)
    assert not [piece for piece in vocab.scores() if "marin" in piece]
    assert come_back(vocab, texts) == texts


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_too_small_for_its_symbols_says_what_is_enough(kind: Kind) -> None:
    with pytest.raises(UserError) as caught:
        with_user_symbols(kind, size=270)
    message = str(caught.value)
    num_chars = len(set("".join(sentences(400))))
    assert f" and {num_chars} characters are to be pieces" in message
    assert message.startswith(f"vocab.size 270 is too small: {260 + len(SYMBOLS)} pieces are fixed")
    advice = int(message.removesuffix(".").rsplit(" ", 1)[1])
    assert len(with_user_symbols(kind, size=advice)) == advice


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_that_cannot_be_filled_shrinks_with_symbols_too(kind: Kind) -> None:
    with pytest.warns(UserWarning, match="vocab.size 8000 is more than the text can fill"):
        vocab = with_user_symbols(kind, size=8000)
    assert come_back(vocab, with_symbols(20)) == with_symbols(20)


@pytest.mark.parametrize("piece", ["<s>", "</s>", "<pad>"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_whose_control_id_is_text_is_refused(
    kind: Kind, piece: str, tmp_path: Path
) -> None:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(200)),
        model_writer=model,
        model_type=kind,
        vocab_size=100,
        user_defined_symbols=[piece],
        unk_id=UNK,
        bos_id=START,
        eos_id=STOP,
        pad_id=PAD,
        minloglevel=3,
    )
    theirs = spm.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(model.getvalue())
    assert {START, STOP, PAD} & set(theirs.encode(f"see {piece} there"))
    path = tmp_path / "theirs.model"
    path.write_bytes(model.getvalue())
    with pytest.raises(UserError) as caught:
        load_vocab(path)
    assert f"theirs.model: {piece} is a piece of text in this model" in str(caught.value)
