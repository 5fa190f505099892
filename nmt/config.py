"""Every key and its default, as frozen dataclasses read from strict YAML."""

import dataclasses
import difflib
import math
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NewType, TypeVar

import yaml

from nmt.errors import UserError

FilePath = NewType("FilePath", str)
"""A path relative to the config file (in `--set` to the current folder), made absolute."""

Section = TypeVar("Section")

_MAP = "tag:yaml.org,2002:map"


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


@dataclass(frozen=True)
class DataConfig:
    """Which corpora train, stop and score the model; dev sentences are validated as one set."""

    train: tuple[CorpusSpec, ...] = ()
    dev: tuple[CorpusSpec, ...] = ()
    test: tuple[CorpusSpec, ...] = ()


@dataclass(frozen=True)
class CleanConfig:
    """What is dropped from the training corpora; a token is a SentencePiece piece."""

    max_tokens: int = 250
    """Pairs with a longer side are dropped."""
    max_ratio: float = 3.0
    """Pairs whose longer side has more than this times the tokens of the shorter are dropped."""
    drop_copies: bool = True
    """Pairs whose target is the source are dropped."""
    dedup: Literal["pair", "source", "target", "none"] = "pair"
    """What must be new for a pair to stay; the first one does."""
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
    sample: int = 1_000_000
    """At most so many sentences of a side train it."""
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
    lr: float = 0.0007
    """The peak learning rate, reached at warmup_steps."""
    warmup_steps: int = 4000
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    """Largest gradient norm; 0 does not clip."""
    ema: float = 0.0
    """Decay of the moving average of the weights that decodes; 0 decodes with the weights."""
    max_steps: int = 100_000
    max_epochs: int = 0
    max_minutes: float = 0.0
    """Training and validation, over all sessions of a run."""
    patience: int = 0
    """Stop after so many validations without a better dev BLEU."""
    validate_every: int = 1000
    save_every: int = 1000
    keep: int = 3
    """How many checkpoints stay, `best` and `last` among them."""
    log_every: int = 50
    seed: int = 1
    device: str = "auto"
    precision: Literal["auto", "bf16", "fp32"] = "auto"


@dataclass(frozen=True)
class DecodingConfig:
    """The search of `nmt translate` and `nmt eval`."""

    beam: int = 5
    length_penalty: float = 1.0
    """A hypothesis scores the sum of log p / T ** length_penalty, T with the stop token."""
    batch_size: int = 64
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
    root = _parse(_read(Path(path)), str(path)) or yaml.MappingNode(_MAP, [])
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{path}: expected sections such as `data:` and `model:`.")
    for override in overrides:
        _override(root, override)
    config = _section(root, Config, Path(path).resolve().parent, "")
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


def nearest(word: str, words: Sequence[str]) -> str:
    """Return a hint that names the most similar of the words, or all of them."""
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f'the nearest is "{close[0]}"' if close else f"known are {', '.join(words)}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot read this config ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: a config must be UTF-8 text.") from None


def _parse(text: str, name: str) -> yaml.Node | None:
    try:
        loader = yaml.SafeLoader(text)
        loader.name = name
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{name}, line {line}: this is not YAML: {error.problem}.") from None
    except yaml.YAMLError as error:
        raise UserError(f"{name}: this is not YAML: {str(error).splitlines()[0]}.") from None


def _override(root: yaml.MappingNode, override: str) -> None:
    """Put `section.key=value` into the tree of nodes, so that it is checked like the file."""
    name = f"--set {override}"
    dotted, equals, value = override.partition("=")
    if not equals or not dotted.strip():
        raise UserError(f"{name}: expected section.key=value, such as training.lr=0.001.")
    node = _parse(value, name)
    if node is None:
        raise UserError(f"{name}: no value after the equals sign.")
    for key in reversed(dotted.strip().split(".")):
        key_node = yaml.ScalarNode("tag:yaml.org,2002:str", key, node.start_mark)
        node = yaml.MappingNode(_MAP, [(key_node, node)], node.start_mark)
    _merge(root, node)


def _merge(into: yaml.MappingNode, new: yaml.Node) -> None:
    for key, value in new.value:
        for index, (old_key, old) in enumerate(into.value):
            if old_key.value == key.value:
                if isinstance(old, yaml.MappingNode) and isinstance(value, yaml.MappingNode):
                    _merge(old, value)
                else:
                    into.value[index] = (key, value)
                break
        else:
            into.value.append((key, value))


def _where(node: yaml.Node) -> str:
    mark = node.start_mark
    return mark.name if mark.name.startswith("--set") else f"{mark.name}, line {mark.line + 1}"


def _section(node: yaml.Node, kind: type[Section], folder: Path, prefix: str) -> Section:
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{_where(node)}: {prefix} must hold keys and values.")
    types = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        dotted = f"{prefix}.{key}" if prefix else key
        if key not in types:
            hint = nearest(key, list(types))
            raise UserError(f'{_where(key_node)}: unknown key "{dotted}"; {hint}.')
        if key in values:
            raise UserError(f'{_where(key_node)}: the key "{dotted}" stands here twice.')
        values[key] = _value(value_node, types[key], folder, dotted)
    return kind(**values)


def _value(node: yaml.Node, kind: Any, folder: Path, key: str) -> Any:
    """Convert a node to the type of its key, or raise UserError."""
    if kind is CorpusSpec:
        return _corpus(node, folder, key)
    if dataclasses.is_dataclass(kind):
        return _section(node, typing.cast("type[Any]", kind), folder, key)
    if kind == tuple[int, int]:
        return _pair(node, folder, key)
    if typing.get_origin(kind) is tuple:
        if not isinstance(node, yaml.SequenceNode):
            raise _wrong(node, key, "a list, such as [multi30k]")
        inner = typing.get_args(kind)[0]
        return tuple(_value(item, inner, folder, key) for item in node.value)
    return _scalar(node, kind, folder, key)


def _corpus(node: yaml.Node, folder: Path, key: str) -> CorpusSpec:
    if isinstance(node, yaml.MappingNode):
        spec = _section(node, CorpusSpec, folder, key)
    else:
        spec = CorpusSpec(name=_value(node, str, folder, key))
    named = [bool(spec.name), bool(spec.src and spec.tgt), bool(spec.tsv)]
    if sum(named) != 1 or bool(spec.src) != bool(spec.tgt) or spec.weight <= 0:
        expected = "a name, {src: FILE, tgt: FILE} or {tsv: FILE}, with a weight above 0 if any"
        raise UserError(f"{_where(node)}: {key} expects each corpus as {expected}.")
    return spec


def _pair(node: yaml.Node, folder: Path, key: str) -> tuple[int, int]:
    if not isinstance(node, yaml.SequenceNode):
        both = _value(node, int, folder, key)
        return both, both
    if len(node.value) != 2:
        raise _wrong(node, key, "one number, or two: [encoder, decoder]")
    first, second = (_value(item, int, folder, key) for item in node.value)
    return first, second


def _scalar(node: yaml.Node, kind: Any, folder: Path, key: str) -> Any:
    choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    expected = f"one of {', '.join(choices)}" if choices else _NAMES[kind]
    if not isinstance(node, yaml.ScalarNode):
        raise _wrong(node, key, expected)
    text = str(node.value)
    is_plain = node.style is None
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except (ValueError, yaml.YAMLError):  # 2020-99-99 is no date, !x no tag
        raise _wrong(node, key, expected) from None
    if choices and text in choices:
        return text
    if kind is FilePath and value is not None:
        base = Path.cwd() if node.start_mark.name.startswith("--set") else folder
        return FilePath(str(base / Path(text).expanduser()) if text else "")
    if kind is str and not isinstance(value, NoneType):
        return text  # YAML reads a bare `no` as false; a language may be called so
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and is_plain and not isinstance(value, bool):
        try:
            number = float(text)  # YAML reads 1e-4 as a text
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise _wrong(node, key, expected)


_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    FilePath: "a path",
}


def _wrong(node: yaml.Node, key: str, expected: str) -> UserError:
    found = (
        f'"{node.value}"'
        if isinstance(node, yaml.ScalarNode)
        else ("a list" if isinstance(node, yaml.SequenceNode) else "keys")
    )
    return UserError(f"{_where(node)}: {key} expects {expected}, found {found}.")


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
        "training.label_smoothing must lie in [0, 1)": 0 <= training.label_smoothing < 1,
        "training.ema must lie in [0, 1)": 0 <= training.ema < 1,
        "training.lr must be above 0": training.lr > 0,
        "training.keep must be at least 1": training.keep >= 1,
        "decoding.length_penalty must not be negative": config.decoding.length_penalty >= 0,
        **{f"{key} must be at least 1": value >= 1 for key, value in _counts(config).items()},
    }
    for rule, holds in rules.items():
        if not holds:
            raise UserError(f"{name}: {rule}.")


def _counts(config: Config) -> dict[str, float]:
    keys = (
        "clean.max_tokens vocab.size vocab.sample model.d_ff model.max_positions "
        "training.batch_tokens training.group_tokens training.warmup_steps training.validate_every "
        "training.save_every training.log_every decoding.beam decoding.batch_size"
    )
    flat = flatten(config)
    return {key: flat[key] for key in keys.split()}
