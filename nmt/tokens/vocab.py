"""Trains SentencePiece and turns text into piece ids and back."""

import hashlib
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import sentencepiece as spm

from nmt.config import Config, VocabConfig
from nmt.errors import UserError
from nmt.lines import normalise, write_whole
from nmt.run_folder import RunFolder

UNK, START, STOP, PAD = 0, 1, 2, 3
_NUM_SPECIALS = 4
_NUM_BYTES = 256
Words = Counter[str]
_NUM_THREADS = 4  # a constant: the sums of the training depend on it, and so would the pieces


class Vocabs(NamedTuple):
    """The vocabularies of the two sides; one object twice where they are joint."""

    src: "Vocab"
    tgt: "Vocab"


class Vocab:
    """A SentencePiece model: text to ids that end with the stop token, and ids to text."""

    def __init__(self, model: bytes, name: str) -> None:
        self.model = model
        self._processor = spm.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise UserError(f"{name}: this is not a SentencePiece model.") from None
        self._check_special_ids(name)

    def _check_special_ids(self, name: str) -> None:
        processor = self._processor
        for piece in ("<s>", "</s>", "<pad>"):
            piece_id = processor.piece_to_id(piece)
            if piece_id != processor.unk_id() and not processor.is_control(piece_id):
                raise UserError(
                    f"{name}: {piece} is a piece of text in this model, so that a text could give "
                    f"its id; train it without {piece} among its symbols, or drop vocab.model."
                )
        found = [processor.unk_id(), processor.bos_id(), processor.eos_id(), processor.pad_id()]
        if found != [UNK, START, STOP, PAD]:
            raise UserError(
                f"{name}: expected the ids unk 0, start 1, stop 2, pad 3, found {found}; "
                f"train it with --unk_id=0 --bos_id=1 --eos_id=2 --pad_id=3, or drop vocab.model."
            )

    def __reduce__(self) -> tuple[type["Vocab"], tuple[bytes, str]]:
        return Vocab, (self.model, "the vocabulary")

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of normalised texts, each followed by the stop token.

        No text gives a control id: `</s>` that stands in it is encoded letter by letter.
        """
        num_threads = 1 if len(texts) == 1 else -1  # to start threads takes longer than a text
        ids_of_texts = self._processor.encode(list(texts), out_type=int, num_threads=num_threads)
        return [[*ids, STOP] for ids in ids_of_texts]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the normalised text of each list of ids; control ids give nothing.

        Bytes that form no UTF-8 become U+FFFD, and no text holds a line end.
        """
        # One by one: for a list SentencePiece starts threads, which take longer than they save.
        return [normalise(self._processor.decode(list(row))) for row in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces as SentencePiece writes them, `▁` for a blank."""
        return [self._processor.id_to_piece(int(piece_id)) for piece_id in ids]

    def scores(self) -> dict[str, float]:
        """Return the pieces that text is cut into and their scores; the greater, the sooner.

        Control ids, the unknown one, bytes and the user's symbols are none of them. SentencePiece
        does not say which pieces are symbols, but it gives them 0, and others less (-0.0 at most).
        """
        processor = self._processor
        scores: dict[str, float] = {}
        for piece_id in range(len(self)):
            score = processor.get_score(piece_id)
            is_special = processor.is_control(piece_id) or processor.is_unknown(piece_id)
            if not is_special and not processor.is_byte(piece_id) and math.copysign(1, score) < 0:
                scores[processor.id_to_piece(piece_id)] = score
        return scores

    def save(self, path: Path) -> None:
        with write_whole(path) as stream:
            stream.write(self.model)


def load_vocab(path: Path, sha256: str = "") -> Vocab:
    """Read a model file; where a hash is given, refuse a file with another one."""
    try:
        vocab = Vocab(path.read_bytes(), str(path))
    except OSError as error:
        raise UserError(f"{path}: cannot read the vocabulary ({error.strerror}).") from None
    if sha256 and vocab.sha256 != sha256:
        raise UserError(
            f"{path}: this vocabulary has sha256 {vocab.sha256}, but the run was made with "
            f"{sha256}; put the run's own file back."
        )
    return vocab


def load_vocabs(config: Config, run: RunFolder) -> Vocabs:
    """Return the vocabularies of a run, checked against the hashes in run.json."""
    record = run.read_record()
    if "vocab" not in record:
        raise UserError(f"{run.path}: is not prepared to its end; let nmt prepare do it.")
    hashes = record["vocab"]
    files = vocab_files(config, run)
    loaded = {path: load_vocab(path, hashes[path.name]) for path in files}
    return Vocabs(*(loaded[path] for path in files))


def vocab_files(config: Config, run: RunFolder) -> list[Path]:
    """Return the files of the two sides, one file twice where they are joint."""
    return [run.vocab_file(side, is_separate=config.vocab.separate) for side in ("src", "tgt")]


def train_vocab(texts: Iterable[str], config: VocabConfig) -> Vocab:
    """Train SentencePiece on normalised texts.

    Text is taken as it is (`identity`). A size that it cannot fill shrinks, with one warning.
    """
    # Each word once, with its count: no piece crosses a blank, and most of the text is repeated.
    words: Words = Counter()
    for text in texts:
        words.update(text.split())
    if not words:
        raise UserError("No text is left to train the vocabulary on; see the ledger for what went.")
    words = _without_rare_characters(words, config)
    try:
        return _train(words, config, config.size)
    except RuntimeError as error:
        largest = re.search(r"value <= (\d+)", str(error))
        if not largest:
            raise UserError(_too_small(words, config)) from None
    size = int(largest.group(1))
    warnings.warn(
        f"vocab.size {config.size} is more than the text can fill: it has {size} pieces now.",
        stacklevel=2,
    )
    return _train(words, config, size)


def _train(words: Words, config: VocabConfig, size: int) -> Vocab:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=(f"{word}\t{count}" for word, count in words.items()),
        input_format="tsv",
        model_writer=model,
        model_type=config.type,
        vocab_size=size,
        character_coverage=1.0,
        byte_fallback=config.byte_fallback,
        user_defined_symbols=list(config.user_symbols),
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        unk_id=UNK,
        bos_id=START,
        eos_id=STOP,
        pad_id=PAD,
        num_threads=_NUM_THREADS,
        max_sentence_length=1 << 20,
        minloglevel=3,
    )
    return Vocab(model.getvalue(), "the new vocabulary")


def _without_rare_characters(words: Words, config: VocabConfig) -> Words:
    """Cut words at the rarest characters where all would take over a quarter of the vocabulary.

    SentencePiece has an option for this, character_coverage, but takes no share below 0.98.
    """
    counts: Counter[str] = Counter()
    for word, count in _without_symbols(words, config.user_symbols):
        for char in word:
            counts[char] += count
    room = max(2, config.size // 4) - 1  # the blank, or what marks it, has a piece too
    if len(counts) <= room:
        return words
    # A symbol must stay whole, so that SentencePiece knows it and makes no pieces of it.
    kept = {char for char, _ in counts.most_common(room)}.union(*config.user_symbols)
    blanks = {ord(char): " " for char in counts if char not in kept}
    parts: Words = Counter()
    for word, count in words.items():
        for part in word.translate(blanks).split():
            parts[part] += count
    return parts


def _without_symbols(words: Words, symbols: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Take the user's symbols out of words: a character that stands in them alone is no piece."""
    if not symbols:
        return words.items()
    longest_first = sorted(symbols, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return ((pattern.sub("", word), count) for word, count in words.items())


def _too_small(words: Words, config: VocabConfig) -> str:
    num_chars = 1 + len(
        set().union(*(word for word, _ in _without_symbols(words, config.user_symbols)))
    )
    num_fixed = (
        _NUM_SPECIALS + len(config.user_symbols) + (_NUM_BYTES if config.byte_fallback else 0)
    )
    return (
        f"vocab.size {config.size} is too small: {num_fixed} pieces are fixed (user_symbols and "
        f"the bytes of byte_fallback among them) and {num_chars} characters are to be pieces; "
        f"take at least {num_fixed + num_chars + 1}."
    )
