"""The shape of the house: imports flow one way, files say their job, README's tree is true."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "nmt"
FILES = sorted(PACKAGE.rglob("*.py"))
# A module imports from its own stage and from those before it.
STAGES = [
    {"nmt.errors"},
    {"nmt.strict_yaml", "nmt.lines"},
    {"nmt.config", "nmt.tasks"},
    {"nmt.run_folder", "nmt.device"},
    {"nmt.data"},
    {"nmt.tokens"},
    {"nmt.chain"},
    {"nmt.prepare"},
    {"nmt.report"},
    {"nmt.model"},
    {"nmt.training"},
    {"nmt.plan"},
    {"nmt.decoding"},
    {"nmt.evaluation"},
    {"nmt.train", "nmt.launch", "nmt.export"},
    {"nmt.self_test"},
    {"nmt.cli"},
    {"nmt", "nmt.__main__"},
]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def stage_of(module: str) -> int:
    for number, names in enumerate(STAGES):
        if module in names or ".".join(module.split(".")[:2]) in names - {"nmt"}:
            return number
    raise AssertionError(f"{module} belongs to no stage")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("nmt"):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "nmt"}
    return found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_flow_one_way(path: Path) -> None:
    for module in imports_of(path):
        assert stage_of(module) <= stage_of(module_of(path)), f"{path} imports {module}"


def test_search_knows_no_model() -> None:
    assert imports_of(PACKAGE / "decoding" / "search.py") == {"nmt.decoding.candidates"}
    assert imports_of(PACKAGE / "decoding" / "candidates.py") == set()


def test_training_knows_no_decoding() -> None:
    for path in (PACKAGE / "training").glob("*.py"):
        assert not any("decoding" in module for module in imports_of(path))


def tree_of_readme() -> dict[str, str]:
    """Return what README's tree says of each file of the package: path to its line."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(nmt/\n.*?)```", text, re.DOTALL)
    assert block, "README has no tree of nmt/"
    found, folders = {}, ["nmt"]
    for line in block.group(1).splitlines()[1:]:
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, job = line.strip().partition("  ")
        folders = [*folders[:depth], name.rstrip("/")]
        if not name.endswith("/"):
            found["/".join(folders)] = job.strip()
    return found


def test_readme_tree_is_the_folder_and_says_each_files_first_line() -> None:
    expected = {}
    for path in FILES:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, f"{path} does not say its job"
        if path.name != "__init__.py":
            expected[str(path.relative_to(ROOT))] = docstring.splitlines()[0]
    assert tree_of_readme() == expected


def test_the_top_level_holds_what_the_design_names() -> None:
    named = {"pyproject.toml", "README.md", "configs", "nmt", "scripts", "tests", "Makefile"}
    named |= {"LICENSE", "CHANGELOG.md"}
    # What git ignores may lie there too.
    ignored = {"runs", "build", "nmt.egg-info"}
    there = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert there - ignored == named
