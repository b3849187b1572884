from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.models.function_query import (
    FunctionQuery,
    MissingFromBundleError,
    NotAModuleFunctionError,
    UnbundledImportError,
    function_query,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = '''"""Visits."""
from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

RATE: Final[int] = 3
LABELS: dict[str, Decimal] = {}
LABELS["a"] = 1
LABELS.update(b=2)
UNUSED = 4


class Row:
    """A row."""

    kind: Decimal = 5


def visits(inputs: dict[str, int], interval: Decimal | None) -> Decimal:
    """Count them."""
    found: int = _doubled(inputs["n"])  # twice
    return found * RATE + len(LABELS) + math.floor(0.5) + len(defaultdict(int)) + Row.kind


def _doubled(n: int) -> int:
    return n * 2


def other(inputs, interval):
    return OrderedDict()
'''
_numbers = itertools.count()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Import a text as a module and give one of its names."""
    loaded: list[str] = []

    def from_text(text: str, name: str = "visits") -> Any:  # noqa: ANN401
        module_name = f"authored_{next(_numbers)}"
        path = tmp_path / f"{module_name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        loaded.append(module_name)
        spec.loader.exec_module(module)
        return getattr(module, name)

    yield from_text
    for name in loaded:
        sys.modules.pop(name, None)


def test_the_stored_bundle_runs_after_its_module_is_gone(load: Callable[..., Any], tmp_path: Path):
    function = load(MODULE)
    query = function_query(function)
    del sys.modules[function.__module__], function
    for file in tmp_path.glob("*.py"):
        file.unlink()

    ran = FunctionQuery(query.name, query.bundle).load()

    assert ran({"n": 10}, None) == 20 * 3 + 2 + 0 + 0 + 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # twice", ""),
        ('    """Count them."""\n', ""),
        ('    """A row."""\n', '    """A line."""\n'),
        ('"""Visits."""', '"""Other words."""'),
        ("return n * 2", "return (n  *  2)"),
        ("UNUSED = 4", "UNUSED = 5"),
        ("return OrderedDict()", "return None"),
        ("OrderedDict, defaultdict", "defaultdict, OrderedDict, deque"),
        ("n: int) -> int", "n: float) -> float"),
        ("RATE: Final[int] = 3", "RATE = 3"),
        ("import math\n", "import math, os\nimport json\n"),
    ],
)
def test_words_formats_types_and_the_rest_of_the_module_leave_the_bundle_as_it_is(
    load: Callable[..., Any], old: str, new: str
):
    assert old in MODULE
    assert function_query(load(MODULE.replace(old, new))) == function_query(load(MODULE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return n * 2", "return n * 3"),
        ("RATE: Final[int] = 3", "RATE: Final[int] = 4"),
        ('LABELS["a"] = 1', 'LABELS["c"] = 1'),
        ("LABELS.update(b=2)", "LABELS.update(b=2, c=3)"),
        ("kind: Decimal = 5", "kind: Decimal = 6"),
        ("floor(0.5)", "ceil(0.5)"),
        ("UNUSED = 4", "RATE = RATE + 1"),
    ],
)
def test_whatever_the_function_reaches_changes_the_bundle(
    load: Callable[..., Any], old: str, new: str
):
    changed = function_query(load(MODULE.replace(old, new)))

    assert changed != function_query(load(MODULE))
    assert changed.load()({"n": 1}, None)


def test_types_bring_no_import_into_the_bundle(load: Callable[..., Any]):
    bundle = function_query(load(MODULE)).bundle

    assert "TYPE_CHECKING" not in bundle
    assert "Final" not in bundle
    assert "import Decimal" not in bundle
    assert "OrderedDict" not in bundle


def test_a_local_name_is_not_the_modules_one(load: Callable[..., Any]):
    text = "other = 1\n\ndef visits(inputs, interval):\n    other = 2\n    return other\n"
    assert function_query(load(text)).bundle.startswith("def visits")


def test_a_dataclass_in_the_bundle_works(load: Callable[..., Any]):
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
        "@dataclass\nclass Rate:\n    value: int = 3\n\n"
        "def visits(inputs, interval):\n    return Rate().value\n"
    )
    assert function_query(load(text)).load()({}, None) == 3


def test_definitions_inside_a_top_level_try_come_along(load: Callable[..., Any]):
    text = (
        "try:\n    import nothing_of_that_name as fast\nexcept ImportError:\n    fast = None\n\n"
        "def visits(inputs, interval):\n    return fast is None\n"
    )
    assert function_query(load(text)).load()({}, None) is True


OWN = "backfill_assets_tests"


@pytest.mark.parametrize(
    "text",
    [
        f"from {OWN} import builders\n\ndef visits(inputs, interval):\n    return builders\n",
        f"import {OWN}.builders\n\ndef visits(inputs, interval):\n    return {OWN}\n",
        f"def visits(inputs, interval):\n    from {OWN}.builders import day\n    return day\n",
    ],
)
def test_code_of_its_own_package_is_refused_because_the_snapshot_would_lack_it(
    load: Callable[..., Any], text: str
):
    function = load(text)
    sys.modules[f"{OWN}.made_up"] = sys.modules[function.__module__]
    function.__module__ = f"{OWN}.made_up"
    try:
        with pytest.raises(UnbundledImportError, match="move that code into the function's own"):
            function_query(function)
    finally:
        del sys.modules[f"{OWN}.made_up"]


def test_an_import_of_its_own_package_that_it_does_not_reach_is_let_through(
    load: Callable[..., Any],
):
    function = load(f"from {OWN} import builders\n\ndef visits(inputs, interval):\n    return 1\n")
    assert "builders" not in function_query(function).bundle


def test_a_name_that_the_module_does_not_define_is_refused_before_it_can_fail_a_batch(
    load: Callable[..., Any],
):
    text = "from math import *\n\ndef visits(inputs, interval):\n    return floor(0.5)\n"
    with pytest.raises(MissingFromBundleError, match="'floor'"):
        function_query(load(text))


class _Holder:
    def method(self, interval: object) -> None: ...


@pytest.mark.parametrize(
    "function",
    [lambda *_: 1, _Holder().method, len, 5],
    ids=["lambda", "method", "built-in", "number"],
)
def test_only_a_function_at_the_top_level_of_a_file_can_be_stored(function: Any):  # noqa: ANN401
    with pytest.raises(NotAModuleFunctionError, match="top level of a file"):
        function_query(function)
