"""Trains SentencePiece and turns text into piece ids and back."""

import hashlib
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import sentencepiece as spm

from nmt.config import VocabConfig
from nmt.errors import UserError
from nmt.lines import normalise, write_whole

UNK, START, STOP, PAD = 0, 1, 2, 3
_NUM_SPECIALS = 4
_NUM_BYTES = 256
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
        processor = self._processor
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
        return [[*ids, STOP] for ids in self._processor.encode(list(texts), out_type=int)]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the normalised text of each list of ids; control ids give nothing.

        Bytes that form no UTF-8 become U+FFFD, and no text holds a line end.
        """
        return [normalise(text) for text in self._processor.decode([list(row) for row in ids])]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces as SentencePiece writes them, `▁` for a blank."""
        return [self._processor.id_to_piece(int(piece_id)) for piece_id in ids]

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


def train_vocab(texts: Sequence[str], config: VocabConfig) -> Vocab:
    """Train SentencePiece on normalised texts.

    Text is taken as it is (`identity`). A size that it cannot fill shrinks, with one warning.
    """
    if not any(texts):
        raise UserError("No text is left to train the vocabulary on; see the ledger for what went.")
    texts = _without_rare_characters(texts, config.size)
    try:
        return _train(texts, config, config.size)
    except RuntimeError as error:
        largest = re.search(r"value <= (\d+)", str(error))
        if not largest:
            raise UserError(_too_small(texts, config)) from None
    size = int(largest.group(1))
    warnings.warn(
        f"vocab.size {config.size} is more than the text can fill: it has {size} pieces now.",
        stacklevel=2,
    )
    return _train(texts, config, size)


def _train(texts: Sequence[str], config: VocabConfig, size: int) -> Vocab:
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=config.type,
        vocab_size=size,
        character_coverage=1.0,
        byte_fallback=config.byte_fallback,
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


def _without_rare_characters(texts: Sequence[str], size: int) -> Sequence[str]:
    """Blank out the rarest characters where all would take over a quarter of the vocabulary.

    SentencePiece has an option for this, character_coverage, but takes no share below 0.98.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    room = max(2, size // 4)
    if len(counts) <= room:
        return texts
    counts[" "] = counts.total()  # always among the most frequent: it marks where words begin
    kept = {char for char, _ in counts.most_common(room)}
    blanks = {ord(char): " " for char in counts if char not in kept}
    return [" ".join(text.translate(blanks).split()) for text in texts]


def _too_small(texts: Sequence[str], config: VocabConfig) -> str:
    num_chars = len(set("".join(texts)))
    num_fixed = _NUM_SPECIALS + (_NUM_BYTES if config.byte_fallback else 0)
    return (
        f"vocab.size {config.size} is too small: {num_fixed} pieces are fixed (the byte pieces of "
        f"byte_fallback among them) and {num_chars} characters of the text are to be pieces; "
        f"take at least {num_fixed + num_chars + 1}."
    )
