"""Every key is checked: what is wrong is named with its file, its line and what was expected."""

import json
from pathlib import Path

import pytest

from nmt.config import (
    Config,
    CorpusSpec,
    ModelConfig,
    TrainingConfig,
    flatten,
    load_config,
)
from nmt.errors import UserError
from nmt.strict_yaml import FilePath, nearest

BASE = "src: en\ntgt: de\ndata: {train: [captions], dev: [captions/dev]}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "toy.yaml"
    path.parent.mkdir()
    return path


def loaded(file: Path, text: str, *overrides: str) -> Config:
    file.write_text(BASE + text, encoding="utf-8")
    return load_config(file, overrides)


def refused(file: Path, text: str, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        loaded(file, text, *overrides)
    return str(caught.value).replace(str(file), "FILE")


def test_what_is_not_given_is_as_in_the_dataclasses(file: Path) -> None:
    config = loaded(file, "training: {lr: 0.002}")
    assert config.training == TrainingConfig(lr=0.002)
    assert config.model == ModelConfig()
    assert config.data.train == (CorpusSpec(name="captions"),)


WRONG_VALUES = [
    ('batch_tokens: "4k"', 'training.batch_tokens expects a whole number, found "4k"'),
    ("batch_tokens: 4000.0", 'training.batch_tokens expects a whole number, found "4000.0"'),
    ("batch_tokens: true", 'training.batch_tokens expects a whole number, found "true"'),
    ("batch_tokens: [1]", "training.batch_tokens expects a whole number, found a list"),
    ("batch_tokens: {a: 1}", "training.batch_tokens expects a whole number, found keys"),
    ("batch_tokens:", 'training.batch_tokens expects a whole number, found ""'),
    (
        "batch_tokens: 2020-99-99",
        'training.batch_tokens expects a whole number, found "2020-99-99"',
    ),
    ("batch_tokens: !!int x", 'training.batch_tokens expects a whole number, found "x"'),
    ("lr: fast", 'training.lr expects a number, found "fast"'),
    ('lr: "0.1"', 'training.lr expects a number, found "0.1"'),
    ("lr: true", 'training.lr expects a number, found "true"'),
    ("lr: !tag 1", 'training.lr expects a number, found "1"'),
    ("lr: inf", 'training.lr expects a number, found "inf"'),
    ("clip_norm: nan", 'training.clip_norm expects a number, found "nan"'),
    ("precision: fp16", 'training.precision expects one of auto, bf16, tf32, fp32, found "fp16"'),
    ("device: [cpu]", "training.device expects a text, found a list"),
]


@pytest.mark.parametrize(("line", "message"), WRONG_VALUES)
def test_a_wrong_type_is_named_with_its_line(file: Path, line: str, message: str) -> None:
    assert refused(file, f"training:\n  seed: 3\n  {line}\n") == f"FILE, line 6: {message}."


WRONG_ELSEWHERE = [
    ("clean: {drop_copies: 1}", 'clean.drop_copies expects true or false, found "1"'),
    ('clean: {drop_copies: "yes"}', 'clean.drop_copies expects true or false, found "yes"'),
    ("clean: {dedup: both}", 'clean.dedup expects one of pair, source, target, none, found "both"'),
    ("vocab: {model: }", 'vocab.model expects a path, found ""'),
    ("vocab: {model: [a]}", "vocab.model expects a path, found a list"),
    ("vocab: 8000", "vocab expects keys and values"),
    ("vocab: [8000]", "vocab expects keys and values"),
    ("vocab:", "vocab expects keys and values"),
    ("model: {num_layers: six}", 'model.num_layers expects a whole number, found "six"'),
    ("model: {num_layers: [6, six]}", 'model.num_layers expects a whole number, found "six"'),
    (
        "model: {num_layers: [1, 2, 3]}",
        "model.num_layers expects one number, or two: [encoder, decoder], found a list",
    ),
    ("model: {d_modl: 3}", 'unknown key "model.d_modl"; the nearest is "d_model"'),
    ("training: {lable_smoothing: 0.1}", 'unknown key "training.lable_smoothing"; the nearest is'),
    ("modell: {d_model: 3}", 'unknown key "modell"; the nearest is "model"'),
    (
        "decoding: {xyz: 3}",
        'unknown key "decoding.xyz"; known are beam, length_penalty, batch_size',
    ),
    ("src: fr", 'the key "src" stands here twice'),
    ("model: {d_ff: 3, d_ff: 4}", 'the key "model.d_ff" stands here twice'),
    ("model: {d_ff: 3", "this is not YAML: expected ',' or '}'"),
    ("model:\td_ff", "this is not YAML: found character '\\t'"),
    ("--- a second document", "this is not YAML: but found another document"),
]


@pytest.mark.parametrize(("line", "message"), WRONG_ELSEWHERE)
def test_a_mistake_is_named_with_its_line(file: Path, line: str, message: str) -> None:
    found = refused(file, f"\n{line}")
    assert found.startswith(f"FILE, line 5: {message}")


CORPUS = "expects each corpus as a name, {src: FILE, tgt: FILE} or {tsv: FILE}, with a weight above"


@pytest.mark.parametrize(
    ("corpora", "message"),
    [
        ("captions", 'data.train expects a list, such as [one, two], found "captions"'),
        ("{name: captions}", "data.train expects a list, such as [one, two], found keys"),
        ("[{}]", f"data.train {CORPUS}"),
        ("['']", f"data.train {CORPUS}"),
        ("[{weight: 2}]", f"data.train {CORPUS}"),
        ("[{src: a}]", f"data.train {CORPUS}"),
        ("[{name: captions, tsv: b}]", f"data.train {CORPUS}"),
        ("[{tsv: b, src: a}]", f"data.train {CORPUS}"),
        ("[{name: captions, weight: 0}]", f"data.train {CORPUS}"),
        ("[{name: captions, weight: -1}]", f"data.train {CORPUS}"),
        ("[{name: captions, weight: nan}]", 'data.train.weight expects a number, found "nan"'),
        ("[[captions]]", "data.train expects keys and values, found a list"),
        ("[{nam: captions}]", 'unknown key "data.train.nam"; the nearest is "name"'),
    ],
)
def test_a_corpus_is_a_name_or_files(file: Path, corpora: str, message: str) -> None:
    file.write_text(f"src: en\ntgt: de\ndata:\n  train: {corpora}\n")
    with pytest.raises(UserError) as caught:
        load_config(file)
    assert str(caught.value).startswith(f"{file}, line 4: {message}")


@pytest.mark.parametrize(("text", "message"), [("- a\n", "expected sections"), ("hi", "expected")])
def test_a_config_holds_sections(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(UserError, match=f"{file}: {message}"):
        load_config(file)


def test_an_empty_config_says_what_is_missing(file: Path) -> None:
    file.write_text("# nothing yet\n")
    with pytest.raises(UserError, match="src and tgt must name the two languages"):
        load_config(file)


def test_a_config_that_cannot_be_read(file: Path) -> None:
    with pytest.raises(UserError, match="cannot read this config"):
        load_config(file)
    with pytest.raises(UserError, match="cannot read this config"):
        load_config(file.parent)
    file.write_bytes("src: größe".encode("latin-1"))
    with pytest.raises(UserError, match="a config must be UTF-8 text"):
        load_config(file)
    file.write_bytes(b"src: a\0b")
    with pytest.raises(UserError, match="this is not YAML"):
        load_config(file)


RULES = [
    ("src=''", "src and tgt must name the two languages"),
    ("tgt=''", "src and tgt must name the two languages"),
    ("data.train=[]", "data.train must list at least one corpus"),
    ("data.dev=[]", "data.dev must list at least one corpus"),
    ("clean.max_ratio=0.9", "clean.max_ratio must be at least 1"),
    ("clean.max_chars=0", "clean.max_chars must be at least 1"),
    ("clean.max_word_chars=0", "clean.max_word_chars must be at least 1"),
    ("clean.max_repeat=0", "clean.max_repeat must be at least 1"),
    ("clean.min_letters=1.1", "clean.min_letters must lie between 0 and 1"),
    ("clean.min_script=-0.1", "clean.min_script must lie between 0 and 1"),
    ("clean.max_drop=1.1", "clean.max_drop must lie between 0 and 1"),
    ("clean.max_drop=-0.1", "clean.max_drop must lie between 0 and 1"),
    ("model.num_heads=3", "model.num_heads must divide model.d_model"),
    ("model.num_heads=0", "model.num_heads must divide model.d_model"),
    ("model={d_model: 7, num_heads: 7}", "model.d_model must be even"),
    ("model.d_model=0", "model.d_model must be even"),
    ("model.num_layers=0", "model.num_layers must be at least 1"),
    ("model.num_layers=[1, 0]", "model.num_layers must be at least 1"),
    ("model.dropout=1", "model.dropout must lie between 0 and 0.95"),
    ("model.dropout=-0.1", "model.dropout must lie between 0 and 0.95"),
    ("vocab.separate=true", "model.tie: all needs a joint vocabulary"),
    ("training.label_smoothing=1", "training.label_smoothing must lie in [0, 1)"),
    ("training.subword_alpha=1.1", "training.subword_alpha must lie between 0 and 1"),
    ("training.subword_alpha=-0.1", "training.subword_alpha must lie between 0 and 1"),
    (
        "vocab={user_symbols: [a], model: b}",
        "vocab.model brings its own symbols; it cannot be used with vocab.user_symbols",
    ),
    ("training.ema=1", "training.ema must lie in [0, 1)"),
    ("training.lr=0", "training.lr must be above 0"),
    ("training.keep=0", "training.keep must be at least 1"),
    ("decoding.length_penalty=-1", "decoding.length_penalty must not be negative"),
    *(
        (f"{key}=0", f"{key} must be at least 1")
        for key in (
            "clean.max_tokens vocab.size vocab.sample model.d_ff model.max_positions "
            "training.batch_tokens training.group_tokens training.warmup_steps "
            "training.validate_every training.save_every training.log_every decoding.beam "
            "decoding.batch_size"
        ).split()
    ),
]


@pytest.mark.parametrize(("change", "rule"), RULES)
def test_a_value_that_makes_no_sense(file: Path, change: str, rule: str) -> None:
    assert refused(file, "", change).startswith(f"FILE: {rule}")


@pytest.mark.parametrize(
    "key", ["clip_norm", "max_steps", "max_epochs", "max_minutes", "patience", "seed"]
)
def test_a_limit_below_nothing_makes_no_sense(file: Path, key: str) -> None:
    assert f"training.{key} must not be negative" in refused(file, "", f"training.{key}=-1")


@pytest.mark.parametrize(
    ("symbols", "symbol", "why"),
    [
        (["</s>"], "</s>", "is a piece with a meaning of its own"),
        (["<2de>", "<s>"], "<s>", "is a piece with a meaning of its own"),
        (["<unk>"], "<unk>", "is a piece with a meaning of its own"),
        (["<pad>"], "<pad>", "is a piece with a meaning of its own"),
        (["<0x0A>"], "<0x0A>", "is a piece with a meaning of its own"),
        ([""], "", "must hold some text and no blank"),
        ([" "], " ", "must hold some text and no blank"),
        (["a b"], "a b", "must hold some text and no blank"),
        (["a\u00a0b"], "a\u00a0b", "must hold some text and no blank"),
        (["a\n"], "a\n", "must hold some text and no blank"),
        (["▁a"], "▁a", 'would never be found, as normalised text has "_a" in its place'),
        (["cafe\u0301"], "cafe\u0301", "would never be found, as normalised text has"),
        (["\ufeffa"], "\ufeffa", "would never be found, as normalised text has"),
        (["a\x00"], "a\x00", "would never be found, as normalised text has"),
        (["x", "y", "x"], "x", "stands there twice"),
    ],
)
def test_a_user_symbol_that_cannot_be_one_is_named(
    file: Path, symbols: list[str], symbol: str, why: str
) -> None:
    found = refused(file, f"vocab: {{user_symbols: {json.dumps(symbols)}}}")
    assert found.startswith(f'FILE: vocab.user_symbols: "{symbol}" {why}')
    assert found.endswith(".")


def test_user_symbols_are_texts_whatever_yaml_makes_of_them(file: Path) -> None:
    text = "vocab: {user_symbols: [<2de>, no, 1e-4, 2020-01-01, '#', '\"', ',', <0x0a>, </S>]}"
    symbols = ("<2de>", "no", "1e-4", "2020-01-01", "#", '"', ",", "<0x0a>", "</S>")
    assert loaded(file, text).vocab.user_symbols == symbols
    assert "vocab.user_symbols expects a list" in refused(file, "vocab: {user_symbols: <2de>}")
    assert "vocab.user_symbols expects a text" in refused(file, "vocab: {user_symbols: [[a]]}")


def test_two_vocabularies_are_not_one_model(file: Path) -> None:
    changes = ["vocab={separate: true, model: a.model}", "model.tie=none"]
    assert refused(file, "", *changes) == (
        "FILE: vocab.model is one joint model; it cannot be used with vocab.separate."
    )


@pytest.mark.parametrize(
    "change",
    [
        "clean.max_ratio=1",
        "clean.max_drop=0",
        "clean.max_drop=1",
        "model.dropout=0",
        "training.label_smoothing=0",
        "training.subword_alpha=0",
        "training.subword_alpha=1",
        "training.clip_norm=0",
        "training.max_steps=0",
        "training.keep=1",
        "decoding.length_penalty=0",
        "decoding.beam=1",
    ],
)
def test_a_bound_itself_is_allowed(file: Path, change: str) -> None:
    key, _, value = change.partition("=")
    assert flatten(loaded(file, "", change))[key] == float(value)


@pytest.mark.parametrize("name", ["no", "off", "y", "NO", "1.5", "on"])
def test_a_language_is_a_text_whatever_yaml_makes_of_it(file: Path, name: str) -> None:
    assert loaded(file, "", f"src={name}").src == name
    file.write_text(f"src: {name}\ntgt: de\ndata: {{train: [a], dev: [b]}}\n")
    assert load_config(file).src == name


@pytest.mark.parametrize("text", ["1e-4", "1.0e-4", "0.0001", "1E-04"])
def test_a_number_in_any_spelling(file: Path, text: str) -> None:
    assert loaded(file, f"training: {{lr: {text}}}").training.lr == 0.0001
    assert loaded(file, "", f"training.lr={text}").training.lr == 0.0001


def test_a_whole_number_may_stand_for_a_number(file: Path) -> None:
    max_minutes = loaded(file, "training: {max_minutes: 20}").training.max_minutes
    assert (max_minutes, type(max_minutes)) == (20.0, float)


@pytest.mark.parametrize(("text", "layers"), [("2", (2, 2)), ("[12, 1]", (12, 1))])
def test_num_layers_is_one_number_or_two(file: Path, text: str, layers: tuple[int, int]) -> None:
    assert loaded(file, f"model: {{num_layers: {text}}}").model.num_layers == layers
    assert loaded(file, "", f"model.num_layers={text}").model.num_layers == layers


def test_overrides_win_in_order_and_leave_the_rest(file: Path) -> None:
    config = loaded(
        file,
        "training: {lr: 0.1, seed: 3, device: cpu}\n",
        "training.lr=0.2",
        "training.lr=0.3",
        "training={device: cuda}",
        "decoding.beam=7",
        "data.train=[multi30k, {name: captions, weight: 2}]",
        " tgt =fr",
    )
    assert config.training == TrainingConfig(lr=0.3, seed=3, device="cuda")
    assert config.decoding.beam == 7
    assert config.data.train == (CorpusSpec("multi30k"), CorpusSpec("captions", 2.0))
    assert config.data.dev == (CorpusSpec("captions/dev"),)
    assert config.tgt == "fr"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.lr", ": expected section.key=value, such as training.lr=0.001."),
        ("=3", ": expected section.key=value, such as training.lr=0.001."),
        ("training.lr=", ": no value after the equals sign."),
        ("training.lr=x", ': training.lr expects a number, found "x".'),
        ("training.rl=1", ': unknown key "training.rl"; the nearest is "lr".'),
        ("lr=1", ': unknown key "lr"; '),
        ("training=1", ': training expects keys and values, found "1".'),
        ("training.lr.x=1", ": training.lr expects a number, found keys."),
        ("data.train=[", ", line 1: this is not YAML: "),
    ],
)
def test_a_wrong_override_is_named_as_it_was_typed(file: Path, override: str, message: str) -> None:
    assert refused(file, "", override).startswith(f"--set {override}{message}")


def test_paths_start_at_the_config_those_of_set_at_the_current_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = "vocab: {model: ../v.model}\n"
    override = "data.dev=[{src: d.en, tgt: /d.de}, {tsv: ~/d.tsv}]"
    config = loaded(file, text, override, "data.train=[{tsv: t.tsv}]")
    assert Path(config.vocab.model) == file.parent / ".." / "v.model"
    assert config.data.dev == (
        CorpusSpec(src=FilePath(str(here / "d.en")), tgt=FilePath("/d.de")),
        CorpusSpec(tsv=FilePath(str(tmp_path / "home" / "d.tsv"))),
    )
    assert config.data.train == (CorpusSpec(tsv=FilePath(str(here / "t.tsv"))),)
    file.write_text("src: en\ntgt: de\ndata: {train: [{tsv: t.tsv}], dev: [a]}\n")
    monkeypatch.chdir(tmp_path)
    assert load_config("folder/toy.yaml").data.train[0].tsv == str(file.parent / "t.tsv")


def test_nearest() -> None:
    assert nearest("lable", ["label", "lr"]) == 'the nearest is "label"'
    assert nearest("xyz", ["label", "lr"]) == "known are label, lr"
