"""Edits of a Python model's modules: what is called unchanged gives the same result when it runs."""

from __future__ import annotations

import sys
import typing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import backfill_assets
from backfill_assets import Column
from backfill_assets.models.python.function_query import ModuleQuery, changed_code
from backfill_assets.models.python.own_modules import StoredModule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODULE = '''"""Visits."""
from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Final

from backfill_assets import Column

if TYPE_CHECKING:
    from decimal import Decimal

RATE: Final[int] = 3
LABELS: dict[str, Decimal] = {}
LABELS["a"] = 1
LABELS.update(b=2)
UNUSED = 4
COLUMN = Column("visits", "int")


class Row:
    """A row."""

    kind: Decimal = 5


def visits(inputs: dict[str, int], interval: Decimal | None) -> Decimal:
    """Count them."""
    found: int = _doubled(7)  # twice
    return found * RATE + len(LABELS) + math.floor(0.5) + len(defaultdict(int)) + Row.kind


def _doubled(n: int) -> int:
    return n * 2


def other(inputs, interval):
    return OrderedDict()
'''
VISITS = "def visits(inputs, interval):\n    return {}\n"


def of(text: str | Mapping[str, str]) -> ModuleQuery:
    texts = {"visits": text} if isinstance(text, str) else text
    packages = {name.rpartition(".")[0] for name in texts}
    stored = tuple(StoredModule(name, texts[name], name in packages) for name in sorted(texts))
    return ModuleQuery("visits", "visits" if "visits" in texts else "shop.visits", stored)


def run(query: ModuleQuery) -> str:
    """Write what it gives; a failure is a result too."""
    try:
        return repr(query.load()({}, None))
    except Exception as error:  # noqa: BLE001 - whatever an edit leads to
        return repr(error)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # twice", ""),
        ('"""Visits."""', '"""Other words."""'),
        ("return n * 2", "return (n  *  2)"),
        ("UNUSED = 4", "UNUSED = [5, {'a': -1}]"),
        ("UNUSED = 4\n", ""),
        ("UNUSED = 4", "UNUSED = RATE"),
        ("return OrderedDict()", "return None"),
        ("def other(inputs, interval)", "def another(inputs, interval=None)"),
        ("OrderedDict, defaultdict", "defaultdict, OrderedDict"),
        ("import math\n", "import math\nimport json\nimport datetime as dt\n"),
        (
            "    from decimal import Decimal\n",
            "    from decimal import Decimal\n    import nowhere\n",
        ),
        ('COLUMN = Column("visits", "int")', 'COLUMN = Column("visits", "bigint")'),
        ("UNUSED = 4", "class Unused:\n    def kind_of(self): return 1"),
    ],
)
def test_what_provably_can_not_matter_is_no_change(old: str, new: str):
    assert old in MODULE
    before, after = of(MODULE), of(MODULE.replace(old, new))

    assert run(before) == run(after)
    if new != "defaultdict, OrderedDict":
        assert not changed_code(before, after)


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
        ('    """Count them."""\n', ""),
        ("n: int) -> int", "n: float) -> float"),
        ("import math\n", "import math\nimport pandas\n"),
        ("UNUSED = 4", "UNUSED = print()"),
        ("UNUSED = 4", "class Unused(Row): pass"),
        ("UNUSED = 4", "@print\ndef unused(): pass"),
        ("UNUSED = 4", "def unused(a=print()): pass"),
    ],
)
def test_whatever_may_matter_is_a_change(old: str, new: str):
    assert old in MODULE
    assert changed_code(of(MODULE), of(MODULE.replace(old, new)))


# Two spellings of a module each: (head with {} in it, one text, another text, the answer).
FORMS: dict[str, tuple[str, str, str, str]] = {
    "a call that fills": (
        "RATES = {{}}\ndef _fill(rates):\n    rates['a'] = {}\n_fill(RATES)",
        "1",
        "2",
        "RATES['a']",
    ),
    "a method of the type": ("RATES = {{}}\ndict.update(RATES, a={})", "1", "2", "RATES['a']"),
    "a deletion": ("RATES = {{'a': 1, 'b': 2}}\ndel RATES[{}]", "'a'", "'b'", "RATES"),
    "no deletion": ("RATES = {{'a': 1, 'b': 2}}\n{}", "del RATES['a']", "", "RATES"),
    "setattr": ("class Rate:\n    value = 0\nsetattr(Rate, 'value', {})", "1", "2", "Rate.value"),
    "a registry": (
        "KINDS = []\ndef kind(f):\n    KINDS.append(f())\n@kind\ndef one():\n    return {}",
        "1",
        "2",
        "KINDS",
    ),
    "one more in a registry": (
        "KINDS = []\ndef kind(f):\n    KINDS.append(f())\n{}",
        "@kind\ndef one(): return 1",
        "",
        "KINDS",
    ),
    "subclasses": (
        "class Rule: pass\n{}",
        "class One(Rule): pass",
        "",
        "len(Rule.__subclasses__())",
    ),
    "hooks of subclasses": (
        "FOUND = []\nclass Rule:\n    def __init_subclass__(cls): FOUND.append(cls.__name__)\n{}",
        "class One(Rule): pass",
        "class Two(Rule): pass",
        "FOUND",
    ),
    "singledispatch": (
        (
            "from functools import singledispatch\n@singledispatch\ndef size(x):\n    return 0\n"
            "@size.register\ndef _(x: int):\n    return {}"
        ),
        "1",
        "2",
        "size(3)",
    ),
    "a docstring": ("def f():\n    '''{}'''", "one", "two", "f.__doc__"),
    "the module's docstring": ("'''{}'''", "one", "two", "__doc__"),
    "a loop that calls": (
        "RATES = []\ndef add(n):\n    RATES.append(n)\nfor n in range({}):\n    add(n)",
        "1",
        "2",
        "RATES",
    ),
    "types": ("def f(x: {}): ...", "int", "str", "f.__annotations__"),
    "deferred types": (
        "from __future__ import annotations\ndef f(x: {}): ...",
        "int",
        "str",
        "f.__annotations__",
    ),
    "deferral": (
        "{}\ndef f(x: int): ...",
        "from __future__ import annotations",
        "",
        "f.__annotations__",
    ),
    "types of a module": ("RATE: {} = 1", "int", "str", "__annotations__"),
    "globals": ("RATE = {}", "1", "2", "globals()['RA' + 'TE']"),
    "a variable's name": (
        "RATE = {}\nimport sys\nME = sys.modules[__name__]",
        "1",
        "2",
        "getattr(ME, 'RA' + 'TE')",
    ),
    "a name in a text": ("RATE = {}\nimport operator\n", "1", "2", "eval('RATE')"),
    "a mangled name": (
        "_Rate__value = {}\nclass Rate:\n    def get(self): return __value",
        "1",
        "2",
        "Rate().get()",
    ),
    "a hidden built-in": ("{}", "def len(x): return 9", "", "len([])"),
    "a hidden module": ("import math\n{}", "math = None", "", "math and 1"),
    "a global statement": (
        "RATE = 0\ndef setup():\n    global RATE\n    RATE = {}\nsetup()",
        "1",
        "2",
        "RATE",
    ),
    "a property": (
        (
            "class Box:\n    n = {}\n    @property\n    def next(self):\n        Box.n += 1\n        return 0\n"
            "box = Box()\nUNUSED = box.next"
        ),
        "1",
        "2",
        "Box.n",
    ),
    "a read that counts": (
        "class Box:\n    n = 1\n    @property\n    def next(self):\n        Box.n += 1\nbox = Box()\n{}",
        "UNUSED = box.next",
        "",
        "Box.n",
    ),
    "a default that is called": (
        "N = []\n{}",
        "def unused(a=N.append(1)): ...",
        "def unused(): ...",
        "N",
    ),
    "a type that is called": (
        "N = []\n{}",
        "def unused(a: N.append(1)): ...",
        "def unused(): ...",
        "N",
    ),
    "a type that is subscripted": (
        "N = []\nclass Box:\n    def __class_getitem__(cls, x): N.append(x)\n{}",
        "def unused(a: Box[1]): ...",
        "def unused(a: int): ...",
        "N",
    ),
    "a metaclass": (
        "N = []\nclass Meta(type):\n    def __init__(cls, *a): N.append(a[0])\n{}",
        "class One(metaclass=Meta): pass",
        "",
        "N",
    ),
    "a hook of a name": (
        "N = []\nclass Hook:\n    def __set_name__(self, owner, name): N.append(name)\n{}",
        "class One:\n    a = Hook()",
        "",
        "N",
    ),
    "a module's hook": (
        "{}",
        "def __getattr__(name): return 1",
        "",
        "hasattr(__import__('sys').modules[__name__], 'a')",
    ),
    "lines": (
        "import inspect\n{}def f(): ...",
        "",
        "# a comment\n",
        "inspect.getsourcelines(f)[1]",
    ),
    "own source": (
        "import inspect\ndef f():\n    return 1{}",
        "",
        "  # why",
        "inspect.getsource(f)",
    ),
    "line of code": ("{}def f(): ...", "", "\n\n", "f.__code__.co_firstlineno"),
    "a walrus": ("{}", "(RATE := 1)", "(RATE := 2)", "RATE"),
    "an assignment by star": ("RATE, *_ = {}", "[1]", "[2]", "RATE"),
    "a condition": ("RATE = 1\nif {}:\n    RATE = 2", "True", "False", "RATE"),
    "a with": (
        "import contextlib\nRATE = []\nwith contextlib.suppress(Exception):\n    RATE.append({})",
        "1",
        "1 / 0",
        "RATE",
    ),
    "an import that adds a submodule": (
        "import xml\n{}",
        "import xml.dom as d",
        "",
        "'dom' in dir(xml) or sorted(vars(xml))[:0]",
    ),
    "a name that types only have": (
        "TYPE_CHECKING = {}\nRATE = 1\nif TYPE_CHECKING:\n    RATE = 2",
        "True",
        "False",
        "RATE",
    ),
    "a number's type": ("RATE = {}", "1", "1.0", "RATE"),
    "a sign": ("RATE = {}", "0.0", "-0.0", "RATE"),
    "bytes": ("RATE = {}", "'a'", "b'a'", "RATE"),
    "a debug text": ("RATE = 1", "", "", "f'{RATE=}'"),
    "the order of statements": (
        "RATE = 1\n{}",
        "RATE += 1\nRATE *= 2",
        "RATE *= 2\nRATE += 1",
        "RATE",
    ),
    "declared slots": ("class A:\n    __slots__ = {}", "('a',)", "('b',)", "A.__slots__"),
    "all names": ("__all__ = ['{}']\na = b = 1", "a", "b", "__all__"),
    "a name that is gone": ("A = 1\ndel A\n{}", "UNUSED = A", "", "1"),
    "a default that is gone": ("A = 1\ndel A\n{}", "def unused(a=A): ...", "", "1"),
    "a name that is not there": ("{}", "UNUSED = nowhere", "", "1"),
    "a formatted lookup": ("class A:\n    x = {}", "1", "2", "'{0.x}'.format(A)"),
    "a hook of types in a union": (
        "class Seen(list):\n    def __ror__(self, o): self.append(o)\nSEEN = Seen()\n{}",
        "def unused(x: int | SEEN): ...",
        "",
        "len(SEEN)",
    ),
    "a hook of types in typing": (
        (
            "from typing import Optional\nclass Seen(list):\n    def __hash__(self): return len(self.append(1) or '')\n"
            "    def __call__(self): ...\nSEEN = Seen()\n{}"
        ),
        "def unused(x: Optional[SEEN]): ...",
        "",
        "len(SEEN)",
    ),
    "a captured name": (
        (
            "SEEN = []\nclass Box:\n    def __class_getitem__(cls, x): SEEN.append(x)\nmatch Box:\n    case int: pass\n{}"
        ),
        "def unused(x: int[1]): ...",
        "",
        "SEEN",
    ),
    "a pattern that looks in": (
        "X = {}\ndef look(f):\n    match f:\n        case object(__globals__=g): return g.get(chr(88))",
        "1",
        "2",
        "look(look)",
    ),
    "a frame": (
        "import sys\nX = {}",
        "1",
        "2",
        "[frame.f_globals[chr(88)] for frame in sys._current_frames().values() if chr(88) in frame.f_globals]",
    ),
    "a generator's frame": (
        "X = {}\ndef one():\n    yield",
        "1",
        "2",
        "one().gi_frame.f_globals[chr(88)]",
    ),
    "halves of a hook's name": (
        "X = {}\ndef f(): ...",
        "1",
        "2",
        "('{0.__glo' + 'bals__[' + chr(88) + ']}').format(f)",
    ),
    "a line in a warning": (
        (
            "import warnings\n{}def warned():\n    with warnings.catch_warnings(record=True) as found:\n"
            "        warnings.simplefilter('always')\n        warnings.warn('a')\n    return found[0].lineno"
        ),
        "",
        "\n",
        "warned()",
    ),
    "a private name": ("{}", "", "# why", "__name__"),
    "a private path": ("{}", "", "# why", "__file__"),
    "a private name of a function": ("{}", "", "# why", "visits.__module__"),
    "a pickled name": ("import pickle\nclass A: ...\n{}", "", "# why", "pickle.dumps(A())"),
    "another TYPE_CHECKING": (
        "from typing import TYPE_CHECKING\nfrom typing import Final as TYPE_CHECKING\nRATE = 1\nif TYPE_CHECKING:\n    RATE = {}",
        "2",
        "3",
        "RATE",
    ),
    "another typing": (
        (
            "from typing import TYPE_CHECKING\nclass typing:\n    TYPE_CHECKING = True\n"
            "RATE = 1\nif typing.TYPE_CHECKING:\n    RATE = {}"
        ),
        "2",
        "3",
        "RATE",
    ),
    "a declaration that reads what is given": (
        (
            "from backfill_assets import Column\nSEEN = []\nclass Type(str):\n    def lower(self): return 'int'\n"
            "    def __contains__(self, x): return SEEN.append(x)\n    def __eq__(self, x): return SEEN.append(x)\n{}"
        ),
        "X = Column('a', Type('int'))",
        "",
        "SEEN",
    ),
}
SAME = {"an import that adds a submodule", "a declaration that reads what is given"}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_an_edit_that_changes_the_result_is_never_called_unchanged(form: str):
    head, first, other, answer = FORMS[form]
    queries = [of(f"{head.format(text)}\n\n{VISITS.format(answer)}") for text in (first, other)]

    if first != other and form not in SAME:
        assert run(queries[0]) != run(queries[1]), "the case is no edit that matters"
    if run(queries[0]) != run(queries[1]):
        assert changed_code(*queries)


SHOP = {
    "shop": "",
    "shop.rates": "RATE = 2\nUNUSED = 1\ndef helper(): return 1\n",
    "shop.unread": "X = 1\n",
    "shop.visits": f"from .rates import RATE\n\ndef lazy():\n    from shop import unread\n\n{VISITS.format('RATE')}",
}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("shop.rates", "RATE = 2\nUNUSED = 2\ndef helper(): return 2\n"),
        ("shop.unread", "X = print()\n"),
        ("shop", "'''Words.'''\n"),
    ],
)
def test_parts_of_other_own_modules_that_can_not_matter_are_no_change(module: str, text: str):
    assert not changed_code(of(SHOP), of({**SHOP, module: text}))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("shop.rates", "RATE = 3\n"),
        ("shop", "import shop.rates\nshop.rates.RATE = 5\n"),
        ("shop.visits", SHOP["shop.visits"].replace("from .rates", "from shop.rates")),
    ],
)
def test_other_own_modules_that_may_matter_are_a_change(module: str, text: str):
    assert changed_code(of(SHOP), of({**SHOP, module: text}))


def test_a_module_that_appears_is_a_change_even_if_it_is_empty():
    head = "try:\n    from shop import extra\nexcept ImportError:\n    extra = None"
    shop = {"shop": "", "shop.visits": f"{head}\n{VISITS.format('extra is None')}"}
    more = {**shop, "shop.extra": ""}

    assert run(of(shop)) != run(of(more))
    assert changed_code(of(shop), of(more))


def test_a_module_that_is_handed_on_may_be_looked_through():
    rates = "import shop.rates\ndef total(module): return sum(v for k, v in sorted(module.__dict__.items()) if k.isupper())\n"
    text = f"from shop import rates, tools\n{VISITS.format('tools.total(rates)')}"
    shop = {"shop": "", "shop.tools": rates, "shop.visits": text, "shop.rates": "A = 1\n"}
    more = {**shop, "shop.rates": "A = 1\nB = 2\n"}

    assert run(of(shop)) != run(of(more))
    assert changed_code(of(shop), of(more))


SEEN = "SEEN = []\nclass Seen:\n    def __class_getitem__(cls, x): SEEN.append(x)\ndef seen(*x): SEEN.append(x)\n"
TYPED = "from typing import TYPE_CHECKING\nRATE = 1\nif TYPE_CHECKING:\n    RATE = {}\n"
LATE = {"seen": SEEN, "visits": f"from seen import SEEN\nimport late\n{VISITS.format('len(SEEN)')}"}
LOOKS = VISITS.format("look('X' * 2)")

# Modules that stay, the one that is edited, its two texts.
EDITS_ELSEWHERE: dict[str, tuple[Mapping[str, str], str, Sequence[str]]] = {
    "an import that hides a built-in": (
        LATE, "late", ("from seen import Seen as list\ndef unused(x: list[1]): ...\n", "from seen import Seen as list\n"),
    ),
    "an import that hides a declaration": (
        LATE, "late", [f"from backfill_assets import Column\nfrom seen import seen as Column\nX = {value}\n" for value in ("Column(1)", "1")]
    ),
    "a declaration that another module replaced": (
        {**LATE, "seen": f"import backfill_assets\n{SEEN}backfill_assets.Column = seen\n"}, "late",
        [f"from backfill_assets import Column\nX = {value}\n" for value in ("Column('a', 'int')", "1")],
    ),
    "a declaration that another module replaced by name": (
        {**LATE, "seen": f"import backfill_assets as b\n{SEEN}setattr(b, 'Column', seen)\n"}, "late",
        [f"from backfill_assets import Column\nX = {value}\n" for value in ("Column('a', 'int')", "1")],
    ),
    "a hook of a module": (
        {**LATE, "lazy": "from seen import SEEN\ndef __getattr__(name): return SEEN.append(name)\n"}, "late",
        ("import lazy\nX = lazy.alpha\n", "import lazy\nX = 1\n"),
    ),
    "a hook of what hides a module": (
        {**LATE, "lazy": "", "box": "from seen import SEEN\nclass Box:\n    @property\n    def alpha(self): SEEN.append(1)\nBOX = Box()\n"},
        "late", ("import lazy\nfrom box import BOX as lazy\nX = lazy.alpha\n", "import lazy\nfrom box import BOX as lazy\nX = 1\n"),
    ),
    "a hook of imports": (
        {**LATE, "seen": f"import sys\n{SEEN}class Find:\n    def find_spec(self, *x): SEEN.append(x)\nsys.meta_path.insert(0, Find())\n"},
        "late", ("import nturl2path\n", ""),
    ),
    "another TYPE_CHECKING": (
        {"flags": "TYPE_CHECKING = True\n", "visits": f"import late\n{VISITS.format('late.RATE')}"}, "late",
        [TYPED.format(digit).replace("RATE = 1", "from flags import TYPE_CHECKING\nRATE = 1") for digit in "23"],
    ),
    "any TYPE_CHECKING": (
        {"flags": "TYPE_CHECKING = True\n", "visits": f"import late\n{VISITS.format('late.RATE')}"}, "late",
        [TYPED.format(digit).replace("RATE = 1", "from flags import *\nRATE = 1") for digit in "23"],
    ),
    "a TYPE_CHECKING that was set": (
        {"flags": "import typing\ntyping.TYPE_CHECKING = True\n", "visits": f"import flags\nimport late\n{VISITS.format('late.RATE')}"},
        "late", [TYPED.format(digit) for digit in "23"],
    ),
    "a module's dictionary": (
        {"visits": f"from late import __dict__ as held\ndef look(x): return held[x]\n{LOOKS}"}, "late", ("XX = 1\n", "XX = 2\n")
    ),
    "a module that is passed on": (
        {"tools": "import late\n", "visits": f"from tools import late as m\ndef look(x): return ('{{0.' + x + '}}').format(m)\n{LOOKS}"},
        "late", ("XX = 1\n", "XX = 2\n"),
    ),
    "a module that is passed on under another name": (
        {"tools": "import late as m\n", "visits": f"import tools\ndef look(x): return ('{{0.' + x + '}}').format(tools.m)\n{LOOKS}"},
        "late", ("XX = 1\n", "XX = 2\n"),
    ),
    "a module in a class": (
        {"visits": f"class A:\n    import late\ndef look(x): return ('{{0.late.' + x + '}}').format(A)\n{LOOKS}"},
        "late", ("XX = 1\n", "XX = 2\n"),
    ),
    "a submodule by star": (
        {"pack": "__all__ = ['late']\n", "visits": f"from pack import *\ndef unused():\n    import pack.late\n{VISITS.format('late.X')}"},
        "pack.late", ("X = 1\n", "X = 2\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS_ELSEWHERE)
def test_an_edit_elsewhere_that_changes_the_result_is_never_called_unchanged(
    edit: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        backfill_assets, "Column", Column
    )  # put back after the cases that replace it
    monkeypatch.setattr(typing, "TYPE_CHECKING", False)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "nturl2path", raising=False)
    others, module, texts = EDITS_ELSEWHERE[edit]
    queries = [of({**others, module: text}) for text in texts]

    assert len({run(query) for query in queries}) == 2, "the case is no edit that matters"
    assert changed_code(*queries)


def test_what_a_name_or_a_path_is_commonly_taken_for_hides_no_edit_of_words():
    text = f"import logging\nfrom pathlib import Path\nLOG = logging.getLogger(__name__)\nHERE = Path(__file__).parent\n{VISITS}"

    assert not changed_code(of(text), of(f"{text}# why\n"))


_NAMES = ("A", "B", "f", "g", "Box")
_VALUES = ("1", "2", "A", "[A]", "len([B])", "f()", "Box.n", "g", "{'A': 1}", "vars()", "f.__doc__")
_STATEMENTS = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(_NAMES), st.sampled_from(_VALUES)),
    st.builds("{}: {} = {}".format, st.sampled_from(_NAMES), st.sampled_from(_VALUES), st.sampled_from("12")),
    st.builds("def {}(x={}):\n    {}\n    return {}".format, st.sampled_from(("f", "g", "len")),
              st.sampled_from(_VALUES), st.sampled_from(("'''a'''", "'''b'''", "global A; A = 7", "pass")),
              st.sampled_from(_VALUES)),
    st.builds("class Box({}):\n    n = {}".format, st.sampled_from(("", "object", "Box")), st.sampled_from(_VALUES)),
    st.builds("{}\ndef g():\n    return {}".format, st.sampled_from(("", "@f", "@list.append")), st.sampled_from(_VALUES)),
    st.sampled_from(("g()", "f()", "del A", "A += 1", "Box.n = 5", "f.__doc__ = 'c'", "setattr(Box, 'n', 6)",
                     "for A in (1, 2): f()", "from math import floor as f", "import math as A", "globals()['B'] = 8")),
)  # fmt: skip
_BODIES = st.lists(_STATEMENTS, min_size=1, max_size=5)


@settings(max_examples=250, deadline=None)
@given(_BODIES, _STATEMENTS, st.integers(0, 4), st.sampled_from(_VALUES), st.booleans())
def test_no_generated_edit_is_called_unchanged_and_gives_another_result(
    body: list[str],
    statement: str,
    at: int,
    answer: str,
    replaces: bool,  # noqa: FBT001
):
    start = "A, B = 3, 4\ndef f(): return 5\ndef g(): return 6\nclass Box:\n    n = 9\n"
    edited = [*body[:at], statement, *body[at + replaces :]]
    before, after = (
        of("\n".join([start, *statements, VISITS.format(answer)])) for statements in (body, edited)
    )

    if not changed_code(before, after):
        assert _stable(run(before)) == _stable(run(after))


def _stable(text: str) -> str:
    """Leave out addresses of functions, and the private names of modules."""
    return "".join(part for part in text.split() if not part.startswith("0x"))
