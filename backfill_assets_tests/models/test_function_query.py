from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from backfill_assets.errors import DeclarationError
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.python.function_query import (
    FunctionQuery,
    ModuleQuery,
    StoredFile,
    function_query,
)
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets_tests.models.authoring import query_of, ran

if TYPE_CHECKING:
    from pathlib import Path

VISITS = "def visits(inputs, interval):\n    return {}\n"


def one_module(head: str, answer: str) -> dict[str, str]:
    return {"shop/__init__.py": "", "shop/visits.py": f"{head}\n\n{VISITS.format(answer)}"}


WRITTEN = {
    "a call that fills": (
        "RATES = {}\ndef _fill(rates):\n    rates['a'] = 3\n_fill(RATES)",
        "RATES['a']",
        3,
    ),
    "a method of the type": ("RATES = {}\ndict.update(RATES, a=3)", "RATES['a']", 3),
    "a deletion": ("RATES = {'a': 1, 'b': 2}\ndel RATES['a']", "len(RATES)", 1),
    "setattr": ("class Rate:\n    value = 1\nsetattr(Rate, 'value', 3)", "Rate.value", 3),
    "a registry": (
        "KINDS = []\ndef kind(f):\n    KINDS.append(f())\n    return f\n@kind\ndef one():\n    return 3",
        "KINDS",
        [3],
    ),
    "subclasses": (
        "class Rule: pass\nclass Double(Rule): factor = 2",
        "[rule.factor for rule in Rule.__subclasses__()]",
        [2],
    ),
    "singledispatch": (
        ("from functools import singledispatch\n@singledispatch\ndef size(x):\n    return 0\n"
        "@size.register\ndef _(x: int):\n    return x"),
        "size(3)",
        3,
    ),
    "a docstring": ('def f():\n    """three"""', "f.__doc__", "three"),
    "a loop that calls": (
        "RATES = []\ndef add(n):\n    RATES.append(n)\nfor n in range(3):\n    add(n)",
        "RATES",
        [0, 1, 2],
    ),
    "types": (
        "from typing import get_type_hints\ndef f(x: int) -> str: ...",
        "get_type_hints(f)['x'] is int",
        True,
    ),
    "a dataclass": (
        ("from __future__ import annotations\nfrom dataclasses import dataclass, field\n"
        "@dataclass\nclass Rate:\n    value: int = 3\n    more: list[int] = field(default_factory=list)"),
        "Rate() == Rate(3, []) and Rate().value",
        3,
    ),
    "a failed import": ("try:\n    import no_such_thing as fast\nexcept ImportError:\n    fast = None", "fast", None),
    "a star": ("from math import *", "floor(0.5)", 0),
    "types that are not there": (
        ("from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from nowhere import Rate\ndef f(rate: Rate) -> Rate:\n    return 3"),
        "f(1)",
        3,
    ),
    "an odd layout": ("RATE = (1 +  # one\n   2)\r\n\r\n", "RATE", 3),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN)
def test_a_module_runs_as_it_was_written_after_its_files_are_gone(case: str, tmp_path: Path):
    head, answer, expected = WRITTEN[case]
    files = one_module(head, answer)

    query = query_of(tmp_path / "code", files)

    assert ran(query) == expected
    stored = {module.name: module.source for module in query.modules}
    assert stored == {"shop": "", "shop.visits": files["shop/visits.py"]}


PACKAGE = {
    "shop/__init__.py": "NAME = 'shop'\n",
    "shop/rates/__init__.py": "from .base import BASE\nfrom . import more\n",
    "shop/rates/base.py": "BASE = 3\n",
    "shop/rates/more.py": "from ..rates.base import BASE\nfrom shop import NAME\nMORE = BASE + 1\n",
    "shop/late.py": "import other.deep as deep\nLATE = deep.DEEP\n",
    "other/deep.py": "DEEP = 100\n",
    "single.py": "ONE = 1000\n",
    "unused.py": "raise RuntimeError\n",
    "shop/visits.py": """
from typing import TYPE_CHECKING
import shop.rates.base
import shop.rates.more as m, single
from . import rates
from .rates import *
if TYPE_CHECKING:
    import unused

def visits(inputs, interval):
    import shop.rates
    from .late import LATE
    import math
    return [shop.NAME, shop.rates.base.BASE, m.MORE, rates.BASE, more.MORE, LATE, single.ONE]
""",
}


def test_all_own_modules_that_a_function_imports_are_stored_and_run(tmp_path: Path):
    query = query_of(tmp_path / "code", PACKAGE)

    assert {module.name for module in query.modules} == {
        "other.deep", "shop", "shop.late", "shop.rates", "shop.rates.base", "shop.rates.more",
        "shop.visits", "single",
    }  # fmt: skip
    assert ran(query) == ["shop", 3, 4, 3, 4, 100, 1000]


def test_a_stored_query_is_read_back_as_it_was(tmp_path: Path):
    query = query_of(
        tmp_path / "code", PACKAGE | {"shop/visits.py": "R = 'ü\\0'\r\n" + VISITS.format("R")}
    )

    assert loads(dumps(query), (ModuleQuery, StoredModule, StoredFile)) == query


def test_snapshots_run_side_by_side_and_see_neither_each_other_nor_the_files(tmp_path: Path):
    head = "from shop.rates import RATE"
    old = query_of(tmp_path / "a", one_module(head, "RATE") | {"shop/rates.py": "RATE = 1\n"})
    new = query_of(tmp_path / "b", one_module(head, "RATE") | {"shop/rates.py": "RATE = 2\n"})
    sys.modules["shop"] = sys.modules["shop.rates"] = type(sys)("shop.rates")
    try:
        assert [ran(old), ran(new), ran(old)] == [1, 2, 1]
        assert old.load().__globals__ is not new.load().__globals__
    finally:
        del sys.modules["shop"], sys.modules["shop.rates"]


def test_a_module_that_came_later_is_not_the_snapshots(tmp_path: Path):
    head = "try:\n    import fast\nexcept ImportError:\n    fast = None"
    query = query_of(tmp_path / "code", one_module(head, "fast"))
    (tmp_path / "fast.py").write_text("")
    sys.path.insert(0, str(tmp_path))
    try:
        assert ran(query) is None
        assert "fast" not in sys.modules
    finally:
        sys.path.remove(str(tmp_path))


def test_equal_modules_are_imported_once(tmp_path: Path):
    files = one_module("STATE = []", "STATE")
    query, same = query_of(tmp_path / "a", files), query_of(tmp_path / "b", files)

    assert ran(query) is ran(same)


def test_an_import_that_fails_leaves_nothing_behind(tmp_path: Path):
    query = query_of(tmp_path / "code", one_module("", "1"))
    broken = replace(
        query, modules=(*query.modules[:1], StoredModule("shop.visits", "import shop\n1 / 0\n"))
    )

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            broken.load()


def test_stored_code_can_be_inspected_and_pickled(tmp_path: Path):
    head = "from dataclasses import dataclass\n@dataclass\nclass Rate:\n    value: int = 3"
    function = query_of(tmp_path / "code", one_module(head, "Rate()")).load()

    assert inspect.getsource(function) == VISITS.format("Rate()")
    assert pickle.loads(pickle.dumps(function({}, None))) == function({}, None)  # noqa: S301 - our own


def test_functions_of_a_snapshot_reach_processes_that_do_not_have_it(tmp_path: Path):
    head = (
        "from . import rates\nfrom .rates import rate\ndef twice():\n    return rate() + rates.RATE"
    )
    files = one_module(head, "twice") | {
        "shop/rates.py": "RATE = 2\ndef rate():\n    return RATE\n"
    }
    query = query_of(tmp_path / "code", files)
    cloudpickle.register_pickle_by_value(sys.modules[query.private_package()])
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps(ran(query)))

    code = f"import pickle; print(pickle.loads(open({str(sent)!r}, 'rb').read())())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "4"


def test_declared_files_are_stored_and_read_where_the_module_seems_to_lie(tmp_path: Path):
    head = "from pathlib import Path"
    answer = "(Path(__file__).parent / 'data/rates.csv').read_text()"
    files = one_module(head, answer) | {"shop/data/rates.csv": "a,1\n"}

    query = query_of(tmp_path / "a", files, reads_files=["data/rates.csv"])
    edited = query_of(
        tmp_path / "b", files | {"shop/data/rates.csv": "a,2\n"}, reads_files=["data/rates.csv"]
    )

    assert [ran(query), ran(edited)] == ["a,1\n", "a,2\n"]
    assert query.identity() != edited.identity()


@pytest.mark.parametrize("path", ["rates.csv", "../elsewhere.csv", "."])
def test_a_declared_file_that_is_not_below_the_module_is_refused(tmp_path: Path, path: str):
    files = one_module("", "1") | {"elsewhere.csv": ""}

    with pytest.raises(DeclarationError, match="name a file there"):
        query_of(tmp_path / "code", files, reads_files=[path])


CATALOG = """
from backfill_assets import Column, Daily, IncrementalByTimeRange, Model, sql_file

def visits(inputs, interval):
    return 3

def declared(name, query):
    return Model(name=name, query=query, kind=IncrementalByTimeRange(time_column="ds"),
        cadence=Daily(start="2024-01-01"), upstreams=["shop.raw"], grain="one row per day",
        unique_key=["ds"], columns=[Column("ds", "date")], owner="team:shop")

MODELS = (declared("shop.a", visits), declared("shop.b", sql_file("b.sql")))
"""


def test_a_module_that_declares_models_too_can_be_stored(tmp_path: Path):
    sql = "SELECT ds FROM shop.raw WHERE ds >= :start_ds AND ds < :end_ds"
    files = {"shop/__init__.py": "", "shop/visits.py": CATALOG, "shop/b.sql": sql}

    query = query_of(tmp_path / "code", files)

    assert ran(query) == 3
    assert query.load().__globals__["MODELS"][0].query.modules == query.modules


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ('sql_file("b.sql")', 'sql_file("".join(["b.sql"]))'),
        ('sql_file("b.sql")', 'sql_file(name="b.sql")'),
        ("sql_file\n", "sql_file as load, sql_file\n"),
    ],
)
def test_a_sql_file_whose_name_the_text_does_not_say_is_refused(
    tmp_path: Path, written: str, instead: str
):
    sql = "SELECT ds FROM shop.raw WHERE ds >= :start_ds AND ds < :end_ds"
    text = CATALOG.replace(written, instead, 1)
    files = {"shop/__init__.py": "", "shop/visits.py": text, "shop/b.sql": sql}

    with pytest.raises(DeclarationError, match=r"module 'shop\.visits.* calls `sql_file` with"):
        query_of(tmp_path / "code", files)


def test_an_own_module_without_source_is_refused(tmp_path: Path):
    files = one_module("", "1") | {
        "shop/visits.py": "def visits(i, j):\n    from shop import fast\n"
    }
    suffix = __import__("importlib.machinery").machinery.EXTENSION_SUFFIXES[0]

    with pytest.raises(DeclarationError, match=r"'shop\.visits' imports 'shop\.fast'"):
        query_of(tmp_path / "code", files | {f"shop/fast{suffix}": ""})


class _Holder:
    def method(self, interval: object) -> None: ...


@pytest.mark.parametrize(
    "function",
    [lambda *_: 1, _Holder().method, len, 5],
    ids=["lambda", "method", "built-in", "number"],
)
def test_only_a_function_at_the_top_level_of_a_file_can_be_stored(function: Any):  # noqa: ANN401
    with pytest.raises(DeclarationError, match="top level of a file"):
        function_query(function)


def test_a_bundle_of_an_earlier_release_runs():
    text = "from dataclasses import dataclass\n\n@dataclass\nclass Rate:\n    value: int = 3\n\ndef f(i, j):\n    return Rate().value\n"

    assert FunctionQuery("f", text).load()({}, None) == 3
