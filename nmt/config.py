"""Every key and its default, as frozen dataclasses read from strict YAML."""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import yaml

from nmt.errors import UserError
from nmt.lines import normalise
from nmt.strict_yaml import FilePath, read_yaml


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus by catalogue name, by two files (src, tgt; plain or .gz) or by one TSV file.

    A pair of a corpus of weight 2 stands twice in an epoch, of weight 0.5 in every other one.
    """

    name: str = ""
    weight: float = 1.0
    src: FilePath = FilePath("")
    tgt: FilePath = FilePath("")
    tsv: FilePath = FilePath("")

    def __post_init__(self) -> None:
        forms = (bool(self.name), bool(self.src and self.tgt), bool(self.tsv))
        if sum(forms) != 1 or bool(self.src) != bool(self.tgt) or self.weight <= 0:
            raise ValueError(
                "each corpus as a name, {src: FILE, tgt: FILE} or {tsv: FILE}, with a weight "
                "above 0 if any"
            )

    @classmethod
    def from_text(cls, name: str) -> Self:
        return cls(name=name)


@dataclass(frozen=True)
class DataConfig:
    """Which corpora train, stop and score the model; dev sentences are validated as one set."""

    train: tuple[CorpusSpec, ...] = ()
    dev: tuple[CorpusSpec, ...] = ()
    test: tuple[CorpusSpec, ...] = ()


@dataclass(frozen=True)
class CleanConfig:
    """What is mended in the training corpora and what is dropped; a token is a SentencePiece piece.

    A pair goes when one side of it must. A large number admits every length, 0 every share.
    """

    max_tokens: int = 250
    """Pairs with a longer side are dropped."""
    max_ratio: float = 3.0
    """Pairs whose longer side has more than this times the tokens of the shorter are dropped."""
    unescape: bool = True
    """HTML entities become the characters they stand for; `nmt translate` leaves them alone."""
    max_chars: int = 2000
    """Pairs with a longer side are dropped."""
    max_word_chars: int = 100
    """Pairs with a longer word are dropped; punctuation ends a word as a blank does."""
    max_repeat: int = 20
    """Pairs where one character stands more times in a row are dropped."""
    min_letters: float = 0.2
    """Pairs with a smaller share of letters, among what is not blank, are dropped."""
    min_script: float = 0.1
    """Pairs with a smaller share of their letters in the script of the language are dropped."""
    drop_broken: bool = True
    """Pairs with U+FFFD, which stands where a character was lost, are dropped."""
    drop_other_numbers: bool = False
    """Pairs whose sides hold other numbers are dropped, and with them many a good one that writes
    a date or an amount in another way: 1 to 6 % of news in English and German."""
    drop_copies: bool = True
    """Pairs whose target is the source are dropped."""
    dedup: Literal["pair", "source", "target", "none"] = "pair"
    """What must be new for a pair to stay; the first one does, if its lengths in tokens let it."""
    keep_test_overlap: bool = False
    """Keep pairs that share a side with a dev or test sentence; scores then say so."""
    max_drop: float = 1.0
    """Stop where more than this share of the pairs would be dropped."""


@dataclass(frozen=True)
class VocabConfig:
    """How SentencePiece is trained, or which trained model is taken."""

    type: Literal["unigram", "bpe"] = "unigram"
    size: int = 8000
    byte_fallback: bool = True
    separate: bool = False
    """One vocabulary a side instead of a joint one."""
    sample: int = 200_000
    """At most so many sentences of a side train it."""
    user_symbols: tuple[str, ...] = ()
    """Texts that are always one piece, such as <2de>; normalised, without blanks."""
    model: FilePath = FilePath("")
    """A trained SentencePiece model with unk 0, start 1, stop 2, pad 3, taken as it is."""


@dataclass(frozen=True)
class ModelConfig:
    """The Transformer in the words of Vaswani et al. 2017; the defaults are its base model."""

    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    num_layers: tuple[int, int] = (6, 6)
    """Encoder and decoder; one number stands for both."""
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_positions: int = 1024
    """How many learned positions there are; sinusoidal ones have no end."""
    tie: Literal["all", "decoder", "none"] = "all"
    """Which embeddings are one matrix: both and the output projection, the target's two, none."""


@dataclass(frozen=True)
class TrainingConfig:
    """The update, when training stops, and what is written on the way; 0 means no limit."""

    batch_tokens: int = 25_000
    """Padded size of an update: pairs x longest side, over all groups, devices, micro-batches."""
    group_tokens: int = 4096
    """Padded size of a group of like length, which goes through the model at once."""
    device_tokens: int = 0
    """What of a group a device takes at once, padded; 0 takes all of it that memory has room for,
    as the largest group tells at the start. Changes no update, only how it is computed."""
    lr: float = 0.0007
    """The peak learning rate, reached at warmup_steps."""
    warmup_steps: int = 4000
    label_smoothing: float = 0.1
    subword_alpha: float = 0.0
    """Subword regularisation of the training pairs; 0 trains on the best pieces alone.

    For a BPE vocabulary the probability of dropping a merge (Provilkov et al. 2020), for a unigram
    one the exponent of the probabilities of the lattice that is sampled, where less is more
    uniform (Kudo 2018). An update holds the pairs that were planned, which may come to more than
    batch_tokens now; a group that grew over its limit is cut, and a pair that alone grew over it,
    or over max_positions, keeps its best pieces.
    """
    clip_norm: float = 1.0
    """Largest gradient norm; 0 does not clip."""
    weight_decay: float = 0.0
    """Decoupled (Loshchilov and Hutter 2019), of matrices alone."""
    ema: float = 0.0
    """Decay of the moving average of the weights that decodes; 0 decodes with the weights."""
    max_steps: int = 100_000
    max_epochs: int = 0
    max_minutes: float = 0.0
    """Training and validation, over all sessions of a run."""
    patience: int = 0
    """Stop after so many validations without a better score."""
    best_by: Literal["bleu", "chrf", "loss"] = "bleu"
    """The score on the dev set that chooses the best checkpoint."""
    validate_every: int = 1000
    save_every: int = 1000
    keep: int = 3
    """How many of the last checkpoints stay."""
    keep_best: int = 1
    """How many of the best checkpoints stay."""
    keep_every: int = 0
    """Checkpoints of each so manieth update stay too."""
    log_every: int = 50
    tensorboard: bool = False
    """Write what metrics.jsonl holds for TensorBoard too; needs the extra `tensorboard`."""
    init_from: FilePath = FilePath("")
    """A run folder whose best model and vocabulary training begins with."""
    rank_timeout_minutes: float = 10.0
    """How long the processes of a training wait for one of them."""
    seed: int = 1
    device: str = "auto"
    precision: Literal["auto", "bf16", "tf32", "fp32"] = "auto"
    """What matrix products compute in: auto is bf16 where the device does it natively, else fp32;
    tf32, on GPUs alone, computes in fp32 but rounds what goes into a product to 10 bits."""
    compile: bool = False
    """Let torch compile the layers, which takes a minute or more at the start of each session; for
    GPUs, as on CPUs it is slower than without. It rounds in another way."""


@dataclass(frozen=True)
class DecodingConfig:
    """The search of `nmt translate` and `nmt eval`."""

    beam: int = 5
    length_penalty: float = 1.0
    """A hypothesis scores the sum of log p / T ** length_penalty, T with the stop token."""
    batch_size: int = 256
    """Sentences decoded at once."""


@dataclass(frozen=True)
class Config:
    """Everything a run depends on."""

    src: str = ""
    tgt: str = ""
    data: DataConfig = field(default_factory=DataConfig)
    clean: CleanConfig = field(default_factory=CleanConfig)
    vocab: VocabConfig = field(default_factory=VocabConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file, then `section.key=value` overrides, later ones winning.

    Raises UserError for an unknown key, a wrong type or a value that makes no sense.
    """
    config = read_yaml(path, overrides, Config)
    _check(config, str(path))
    return config


def dump_config(config: Config) -> str:
    """Return the YAML text that `load_config` reads back as the same config."""
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True, width=100)


def flatten(config: Config) -> dict[str, Any]:
    """Return every value under its dotted key, `training.lr` among them."""
    flat: dict[str, Any] = {}
    for name, value in _plain(config).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _plain(value: Any) -> Any:
    """Turn dataclasses and tuples into what YAML writes; a corpus holds only what is set."""
    if isinstance(value, CorpusSpec):
        return {key: item for key, item in dataclasses.asdict(value).items() if item}
    if dataclasses.is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _check(config: Config, name: str) -> None:
    model, training, clean = config.model, config.training, config.clean
    rules = {
        "src and tgt must name the two languages, such as en and de": config.src and config.tgt,
        "data.train must list at least one corpus": config.data.train,
        "data.dev must list at least one corpus": config.data.dev,
        "clean.max_ratio must be at least 1": clean.max_ratio >= 1,
        "clean.max_drop must lie between 0 and 1": 0 <= clean.max_drop <= 1,
        "clean.min_letters must lie between 0 and 1": 0 <= clean.min_letters <= 1,
        "clean.min_script must lie between 0 and 1": 0 <= clean.min_script <= 1,
        "model.num_heads must divide model.d_model": model.num_heads > 0
        and model.d_model % model.num_heads == 0,
        "model.d_model must be even": model.d_model > 0 and model.d_model % 2 == 0,
        "model.num_layers must be at least 1": min(model.num_layers) >= 1,
        "model.dropout must lie between 0 and 0.95": 0 <= model.dropout <= 0.95,
        "model.tie: all needs a joint vocabulary; with vocab.separate choose decoder or none": not (
            config.vocab.separate and model.tie == "all"
        ),
        "vocab.model is one joint model; it cannot be used with vocab.separate": not (
            config.vocab.separate and config.vocab.model
        ),
        "vocab.model brings its own symbols; it cannot be used with vocab.user_symbols": not (
            config.vocab.user_symbols and config.vocab.model
        ),
        "training.subword_alpha must lie between 0 and 1": 0 <= training.subword_alpha <= 1,
        "training.label_smoothing must lie in [0, 1)": 0 <= training.label_smoothing < 1,
        "training.ema must lie in [0, 1)": 0 <= training.ema < 1,
        "training.lr must be above 0": training.lr > 0,
        "training.rank_timeout_minutes must be above 0": training.rank_timeout_minutes > 0,
        "training.init_from brings its vocabulary; it cannot be used with vocab.model": not (
            training.init_from and config.vocab.model
        ),
        **{f"{key} must be at least 1": value >= 1 for key, value in _named(config, _COUNTS)},
        **{f"{key} must not be negative": value >= 0 for key, value in _named(config, _LIMITS)},
    }
    for rule, holds in rules.items():
        if not holds:
            raise UserError(f"{name}: {rule}.")
    symbols = config.vocab.user_symbols
    for index, symbol in enumerate(symbols):
        if why := _why_no_symbol(symbol, symbols[:index]):
            raise UserError(f'{name}: vocab.user_symbols: "{symbol}" {why}.')


def _why_no_symbol(symbol: str, before: Sequence[str]) -> str:
    """Return why a text cannot be a user symbol beside those before it, or ""."""
    if symbol in before:
        return "stands there twice"
    if _SPECIAL_PIECE.fullmatch(symbol):
        return "is a piece with a meaning of its own; choose another text"
    if symbol.split() != [symbol]:
        return "must hold some text and no blank"
    if normalise(symbol) != symbol:
        return f'would never be found, as normalised text has "{normalise(symbol)}" in its place'
    return ""


_SPECIAL_PIECE = re.compile("<unk>|<s>|</s>|<pad>|<0x[0-9A-F]{2}>")

_COUNTS = (
    "clean.max_tokens clean.max_chars clean.max_word_chars clean.max_repeat "
    "vocab.size vocab.sample model.d_ff model.max_positions "
    "training.batch_tokens training.group_tokens training.warmup_steps training.validate_every "
    "training.save_every training.log_every training.keep training.keep_best "
    "decoding.beam decoding.batch_size"
)
_LIMITS = (
    "training.clip_norm training.max_steps training.max_epochs training.max_minutes "
    "training.patience training.seed training.device_tokens training.weight_decay "
    "training.keep_every decoding.length_penalty"
)


def _named(config: Config, keys: str) -> list[tuple[str, float]]:
    flat = flatten(config)
    return [(key, flat[key]) for key in keys.split()]
