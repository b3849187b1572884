"""The shape of the code: rooms, words, the length of a function."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.state.tables import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "backfill_assets"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FUNCTION = 50


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function's code has; what its docstring takes is no burden."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def test_no_function_is_longer_than_a_screen():
    lengths = {
        f"{module.relative_to(ROOT)}:{function.name}": _lines_of(function)
        for module in MODULES
        for function in _functions(_tree(module))
    }

    assert {name: found for name, found in lengths.items() if found > LONGEST_FUNCTION} == {}


@pytest.mark.parametrize("room", ["orchestration"])
def test_dagster_reads_real_annotations(room: str):
    deferred = [module.name for module in (PACKAGE / room).rglob("*.py") if _defers(module)]

    assert deferred == []


def test_annotations_are_deferred_everywhere_else():
    others = [
        module
        for module in MODULES
        if "orchestration" not in module.parts and module.read_text().strip()
    ]

    assert [str(module.relative_to(ROOT)) for module in others if not _defers(module)] == []


def _defers(module: Path) -> bool:
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for node in _tree(module).body
    )


def test_every_module_opens_with_its_concept():
    silent = [
        module
        for module in MODULES
        if module.read_text().strip() and not ast.get_docstring(_tree(module))
    ]

    assert silent == []


def _table(page: str, columns: int) -> list[list[str]]:
    rows = re.findall(
        r"^\|(.+)\|$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE
    )
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [row for row in cells if len(row) == columns and not set(row[0]) <= {"-"}]


def test_every_word_of_the_glossary_is_a_name_in_the_code():
    words = {word: name for row in _table("glossary.md", 3)[1:] for word, name in _names(row)}
    defined = {name for module in MODULES for name in _defined(_tree(module))}

    assert len(words) > 20
    assert {word: name for word, name in words.items() if name not in defined} == {}


def _names(row: list[str]) -> Iterator[tuple[str, str]]:
    word, _, names = row
    for name in re.findall(r"`(\w+)`", names):
        yield f"{word}: {name}", name


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                continue


def test_the_architecture_names_every_room():
    rooms = {
        room.stem
        for room in PACKAGE.iterdir()
        if room.suffix == ".py" or (room.is_dir() and (room / "__init__.py").exists())
    } - {"__init__"}
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

    assert {
        room for room in rooms if not re.search(rf"^    .*\b{room}\b", text, re.MULTILINE)
    } == set()


def test_the_linter_knows_every_room():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layered = (contract for contract in contracts["contracts"] if contract["type"] == "layers")
    (layers,) = (
        contract["layers"] for contract in layered if contract["containers"] == [PACKAGE.name]
    )
    known = {room.strip() for layer in layers for room in layer.split("|")}
    rooms = {room.stem for room in PACKAGE.iterdir() if room.suffix == ".py" or room.is_dir()}

    assert rooms - {"__init__", "__pycache__"} == known


def test_the_architecture_lists_the_tables_of_the_state():
    listed = {row[0].strip("`") for row in _table("architecture.md", 2)}

    assert set(METADATA.tables) <= listed


def test_the_six_files_that_tell_the_story_are_read_in_minutes():
    readme = (ROOT / "README.md").read_text()
    named = re.search(r"Read in this order: (.*?)Then the", readme, re.DOTALL)
    story = re.findall(r"\(backfill_assets/(\S+?)\)", named[1] if named else "")

    assert len(story) == 6
    assert sum(len((PACKAGE / file).read_text().splitlines()) for file in story) < 780


def test_a_migration_carries_its_rules_itself():
    importing = {
        module.name
        for module in (PACKAGE / "state" / "migrations" / "versions").glob("*.py")
        for node in ast.walk(_tree(module))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        if getattr(node, "level", 0) or (name or "").partition(".")[0] == PACKAGE.name
    }

    assert importing == set()


def test_only_the_edges_read_clock_and_environment():
    edges = {"cli", "orchestration", "testing"}
    reading = re.compile(r"datetime\.now|os\.environ|getenv|uuid4|time\.time\(")
    inner = [module for module in MODULES if not edges & {*module.relative_to(PACKAGE).parts}]

    found = {
        str(module.relative_to(PACKAGE)) for module in inner if reading.search(module.read_text())
    }
    takes_away = {"warehouse/spark/session.py"}  # SPARK_REMOTE, which PySpark would read
    sets = {"warehouse/spark/connect.py"}  # what PySpark says of itself when it connects
    named = {"models/python/python_guard.py"}  # what models may not call
    allowed = {"reading.py", "pipelines/commerce/jaffle_shop.py"} | named
    assert found <= allowed | takes_away | sets


_PUBLIC = {"_replace", "_asdict", "_exit"}
"""Of `namedtuple` and `os`, documented under these names."""


def test_no_private_name_of_a_library_is_used_but_in_the_modules_that_say_why():
    others = [module for module in MODULES if module.name != "private_names.py"]
    ours = {name for module in others for name in _given(_tree(module))} | _PUBLIC
    found = {
        str(module.relative_to(PACKAGE)): private
        for module in others
        if (private := {*_private(_tree(module))} - ours)
    }
    silenced = [module for module in others if "SLF001" in module.read_text()]

    assert found == {}
    assert silenced == []  # the linter knows attributes that are called as ours are


@pytest.mark.parametrize("room", ["orchestration", "warehouse.spark"])
def test_the_modules_of_private_names_were_tried_with_what_is_installed(room: str):
    library = {"orchestration": "dagster", "warehouse.spark": "pyspark"}[room]

    tried = importlib.import_module(f"backfill_assets.{room}.private_names").TRIED

    assert tried == importlib.metadata.version(library)


def _given(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives by itself."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                continue


def _private(tree: ast.Module) -> Iterator[str]:
    """The private names that a module uses: imported, as an attribute, or by `getattr`."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                used = [*module.split("."), *(alias.name for alias in names)]
            case ast.Import(names=names):
                used = [part for alias in names for part in alias.name.split(".")]
            case ast.Attribute(attr=name):
                used = [name]
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr"),
                args=[_, ast.Constant(value=str(name)), *_],
            ):
                used = [name]
            case _:
                continue
        yield from (word for word in used if re.match("_[^_]", word))
