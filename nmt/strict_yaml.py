"""Reads YAML strictly into dataclasses; an error names the file, the line and the key."""

import dataclasses
import difflib
import math
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NewType, TypeVar

import yaml

from nmt.errors import UserError

FilePath = NewType("FilePath", str)
"""A URL, or a path relative to the config file (in `--set` to the current folder)."""

Section = TypeVar("Section")

_MAP = "tag:yaml.org,2002:map"
_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    FilePath: "a path",
}


def read_yaml(path: str | Path, overrides: Sequence[str], kind: type[Section]) -> Section:
    """Return a dataclass from a file and `section.key=value` overrides, later ones winning.

    A dataclass that says in a ValueError what it expects is refused with that. One that has
    `from_text` may be written as a text.
    """
    root = _parse(_read(Path(path)), str(path)) or yaml.MappingNode(_MAP, [])
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{path}: expected sections such as `data:` and `model:`.")
    for override in overrides:
        _override(root, override)
    return _section(root, kind, Path(path).resolve().parent, "")


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
        raise _wrong(node, prefix, "keys and values")
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
    return _made(lambda: kind(**values), node, prefix)


def _made(make: Callable[[], Section], node: yaml.Node, key: str) -> Section:
    """Make a dataclass; what it says in a ValueError becomes a message with its place."""
    try:
        return make()
    except ValueError as error:
        raise UserError(f"{_where(node)}: {key} expects {error}.") from None


def _value(node: yaml.Node, kind: Any, folder: Path, key: str) -> Any:
    """Convert a node to the type of its key, or raise UserError."""
    if dataclasses.is_dataclass(kind):
        if isinstance(node, yaml.ScalarNode) and hasattr(kind, "from_text"):
            text = _scalar(node, str, folder, key)
            return _made(lambda: kind.from_text(text), node, key)
        return _section(node, typing.cast("type[Any]", kind), folder, key)
    if kind == tuple[int, int]:
        return _pair(node, folder, key)
    if typing.get_origin(kind) is tuple:
        if not isinstance(node, yaml.SequenceNode):
            raise _wrong(node, key, "a list, such as [one, two]")
        inner = typing.get_args(kind)[0]
        return tuple(_value(item, inner, folder, key) for item in node.value)
    return _scalar(node, kind, folder, key)


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
        return _path(text, base)
    if kind is str and value is not None:
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


def _path(text: str, base: Path) -> FilePath:
    if not text or "://" in text:
        return FilePath(text)
    return FilePath(str(base / Path(text).expanduser()))


def _wrong(node: yaml.Node, key: str, expected: str) -> UserError:
    found = (
        f'"{node.value}"'
        if isinstance(node, yaml.ScalarNode)
        else ("a list" if isinstance(node, yaml.SequenceNode) else "keys")
    )
    return UserError(f"{_where(node)}: {key} expects {expected}, found {found}.")
