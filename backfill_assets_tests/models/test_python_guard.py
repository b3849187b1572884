from __future__ import annotations

import re

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery, StoredFile
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.models.python.python_guard import Outside, check_python
from backfill_assets.pipelines.catalog import MODELS
from backfill_assets_tests.builders import a_model


def function(body: str, head: str = "", **others: str) -> ModuleQuery:
    text = f"{head}\ndef f(inputs, interval):\n    return {body}\n"
    modules = {"m": text, **others}
    return ModuleQuery("f", "m", tuple(StoredModule(name, modules[name]) for name in modules))


FUNCTIONS = "from pyspark.sql import functions as F"
VOLATILE = [
    ("F.rand()", FUNCTIONS, "rand"),
    ("F.unix_timestamp()", FUNCTIONS, "unix_timestamp"),
    ("F.localtimestamp()", FUNCTIONS, "localtimestamp"),
    ("F.expr('uuid()')", FUNCTIONS, "uuid"),
    ("F.expr('current_timestamp')", FUNCTIONS, "current_timestamp"),
    ("F.expr('a + ' + 'rand()')", FUNCTIONS, "rand"),
    ("F.expr(f'{a} + rand()')", f"{FUNCTIONS}\na = 'b'", "rand"),
    ("F.expr(NOW)", f"{FUNCTIONS}\nNOW = 'current_date'", "current_date"),
    ("F.expr('unix_timestamp()')", FUNCTIONS, "unix_timestamp"),
    ("F.expr(\"TIMESTAMP 'now'\")", FUNCTIONS, "now"),
    ("F.call_function('rand')", FUNCTIONS, "rand"),
    ("F.lit('now').cast('timestamp')", FUNCTIONS, "lit('now')"),
    ("getattr(F, 'rand')()", FUNCTIONS, "rand"),
    ("F.expr(NOW)", f"{FUNCTIONS}\nNOW: str = 'current_date'", "current_date"),
    ("F.expr(str=NOW)", f"{FUNCTIONS}\nNOW = 'current_date'", "current_date"),
    (
        "F.expr(dedent(NOW))",
        f"{FUNCTIONS}\nfrom textwrap import dedent\nNOW = 'current_date'",
        "current_date",
    ),
    ("F.expr(NOW.strip())", f"{FUNCTIONS}\nNOW = 'current_date '", "current_date"),
    ("F.expr('{}'.format(NOW))", f"{FUNCTIONS}\nNOW = 'current_date'", "current_date"),
    ("F.expr('{n}_date'.format(n=NOW))", f"{FUNCTIONS}\nNOW = 'current'", "current_date"),
    ("F.expr(f'{NOW}_date')", f"{FUNCTIONS}\nNOW = 'current'", "current_date"),
    ("F.expr('ra' + END)", f"{FUNCTIONS}\nEND = 'nd()'", "rand"),
    (
        "F.expr(A if inputs else B)",
        f"{FUNCTIONS}\nA, B = 'a', 'b'\nA = 'current_date'",
        "current_date",
    ),
    (
        "[F.expr(f'max({name})') for name in NOW]",
        f"{FUNCTIONS}\nNOW = ['current_date']",
        "current_date",
    ),
    ("[F.expr(f'{name}(a)') for name in DRAW]", f"{FUNCTIONS}\nDRAW = ['randn']", "randn"),
    ("[F.call_function(name) for name in DRAW]", f"{FUNCTIONS}\nDRAW = ['randn']", "randn"),
    ("frame.selectExpr(*['a', 'current_date'])", "", "current_date"),
    ("frame.where(condition=NOW)", "NOW = 'current_date'", "current_date"),
    ("frame.where('a > `current_timestamp`')", "", "current_timestamp"),
    ("frame.selectExpr('_metadata.file_name')", "", "_metadata"),
    ("F.expr('REFLECT(a, b)')", FUNCTIONS, "reflect"),
    ("frame.selectExpr('id', 'Current_Timestamp() AS at')", "", "current_timestamp"),
    ("frame.where('at < current_date')", "", "current_date"),
    ("frame.sparkSession.sql('SELECT uuid() FROM {f}', f=frame)", "", "uuid"),
    ("inputs.run('SELECT uuid() AS u')", "", "uuid"),
    ("inputs.run(f'SELECT {DRAW}() AS u')", "DRAW = 'rand'", "rand"),
    ("dice()", "from pyspark.sql.functions import rand as dice", "rand"),
    ("rand()", "from pyspark.sql.functions import *", "rand"),
    ("datetime.now()", "from datetime import datetime", "datetime.datetime.now"),
    ("map(datetime.today, [])", "from datetime import datetime", "datetime.datetime.today"),
    ("date.today()", "from datetime import date", "datetime.date.today"),
    ("dt.datetime.utcnow()", "import datetime as dt", "datetime.datetime.utcnow"),
    ("pd.Timestamp('today')", "import pandas as pd", "Timestamp('now')"),
    ("time.time()", "import time", "time.time"),
    ("ticks()", "from time import perf_counter as ticks", "time.perf_counter"),
    ("uuid.uuid4()", "import uuid", "uuid.uuid4"),
    ("random.random()", "import random", "random.random"),
    ("choice([1])", "from random import choice", "random.choice"),
    ("secrets.token_hex()", "import secrets", "secrets.token_hex"),
    ("os.urandom(1)", "import os", "os.urandom"),
    ("np.random.default_rng()", "import numpy as np", "numpy.random.default_rng"),
    ("frame.sample(0.1)", "", "sample"),
    ("AT", "import time\nAT = time.time()", "time.time"),
    ("1", "import time\ntime.time()", "time.time"),
    ("helper()", "import random\ndef helper():\n    return random.random()", "random.random"),
]


@pytest.mark.parametrize(("body", "head", "name"), VOLATILE)
def test_a_volatile_call_of_a_function_is_refused_by_name(body: str, head: str, name: str):
    with pytest.raises(
        DeclarationError, match=rf"uses {re.escape(name)}, so a rebuild .* volatile=True"
    ):
        check_python(a_model(query=function(body, head)))


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("F.col('rand')", FUNCTIONS),
        ("F.to_date('now')", FUNCTIONS),
        ("F.expr('brand(x)')", FUNCTIONS),
        ("F.expr('user > 1')", FUNCTIONS),
        ("F.expr(\"a = 'rand()'\")", FUNCTIONS),
        ("'no (user) came, not even o\\'clock'", ""),
        ("F.unix_timestamp('at')", FUNCTIONS),
        ("F.exists('a', bool)", FUNCTIONS),
        ("inputs['uuid']", ""),
        ("uuid.uuid5(uuid.NAMESPACE_DNS, 'a')", "import uuid"),
        ("datetime.strptime('1', '%d')", "from datetime import datetime"),
        ("time.strptime('1', '%d')", "import time"),
        ("os.path.join('a', 'b')", "import os"),
        ("shuffle(inputs)", "def shuffle(rows):\n    return rows"),
        ("1", "import random\ndef unused():\n    return random.random()"),
        ("1", "import os\nclass Unused:\n    def now(self): return os.environ"),
        ("frame.sparkSession.sql('SELECT EXTRACT(YEAR FROM at) FROM {f} AS x', f=frame)", ""),
        ("[F.expr(f'{name}(a)') for name in ('sum', 'max')]", FUNCTIONS),
        ("[F.expr(f'max({name})') for name in ('user', 'version')]", FUNCTIONS),
        ("frame.where(condition)", "condition = (bool, 'current_date')"),
        ("frame.where('EXTRACT(YEAR FROM at) = 1')", ""),
        ("spark.sql(Q, f=inputs)", "Q: str = 'SELECT * FROM {f}'"),
        ("spark.sql(f\"SELECT * FROM {{f}} WHERE ds = '{interval.start}'\", f=inputs)", ""),
        (
            "[spark.sql('SELECT * FROM {f} WHERE %s' % value, f=1) for value in inputs]",
            "HINT = 'select one'",
        ),
        ("sql(inputs)", "def sql(rows):\n    return rows"),
        ("spark.sql('WITH a AS (SELECT 1) SELECT * FROM a')", ""),
        ("(rows.createOrReplaceTempView('v'), spark.sql('SELECT * FROM v'))", ""),
        ("re.compile('a').sub('', 'open(')", "import re"),
    ],
)
def test_what_is_a_function_of_the_inputs_is_let_through(body: str, head: str):
    check_python(a_model(query=function(body, head)))


READS = [
    ("open('a')", "", Outside.FILE, "open"),
    ("Path('a').read_text()", "from pathlib import Path", Outside.FILE, "read_text"),
    ("pd.read_csv('a')", "import pandas as pd", Outside.FILE, "pandas.read_csv"),
    ("DATA", "import json\nDATA = json.load(open('a'))", Outside.FILE, "open"),
    ("1", "with open('a') as file:\n    file.read()", Outside.FILE, "open"),
    ("files('m')", "from importlib.resources import files", Outside.FILE, "importlib.resources.files"),
    ("pkgutil.get_data('m', 'a')", "import pkgutil", Outside.FILE, "pkgutil.get_data"),
    ("os.listdir('.')", "import os", Outside.FILE, "os.listdir"),
    ("os.environ['A']", "import os", Outside.ENVIRONMENT, "os.environ"),
    ("getenv('A')", "from os import getenv", Outside.ENVIRONMENT, "os.getenv"),
    ("RATE", "import os\nRATE = os.environ.get('RATE')", Outside.ENVIRONMENT, "os.environ.get"),
    ("sys.argv", "import sys", Outside.ENVIRONMENT, "sys.argv"),
    ("requests.get('a')", "import requests", Outside.SYSTEM, "requests.get"),
    ("request.urlopen('a')", "from urllib import request", Outside.SYSTEM, "urllib.request.urlopen"),
    ("subprocess.run('a')", "import subprocess", Outside.SYSTEM, "subprocess.run"),
    ("spark.read.parquet('a')", "", Outside.TABLE, ".read"),
    ("spark.table('a')", "", Outside.TABLE, "table"),
    ("spark.sql('SELECT * FROM other')", "", Outside.TABLE, "the table other"),
    (
        "spark.sql(f'SELECT * FROM {inputs}')",
        "",
        Outside.TABLE,
        "a table whose name is put together when it runs",
    ),
    ("spark.sql(Q)", "Q: str = 'SELECT * FROM other'", Outside.TABLE, "the table other"),
    ("spark.sql(sqlQuery='SELECT * FROM other')", "", Outside.TABLE, "the table other"),
    ("spark.sql(dedent('SELECT * FROM other'))", "from textwrap import dedent", Outside.TABLE, "the table other"),
    ("spark.sql('SELECT * FROM {}'.format(T))", "T = 'other'", Outside.TABLE, "the table other"),
    ("spark.sql(f'SELECT * FROM {T}')", "T = 'other'", Outside.TABLE, "the table other"),
    ("spark.sql(' '.join(['SELECT * FROM', T]))", "T = 'other'", Outside.TABLE, "the table other"),
    ("spark.sql(A.replace('x', T))", "A, T = 1, 2\nA = 'SELECT * FROM x'\nT = 'other'", Outside.TABLE, "the table other"),
    ("spark.sql('SELECT * FROM %s' % inputs)", "", Outside.TABLE, "a table whose name is put together when it runs"),
    ("spark.sql(made(1))", "def made(n):\n    return 'x' * n", Outside.TABLE, "SQL that is put together when it runs"),
    ("spark.sql(Q)", "Q = 'SELECT 1'\nQ += inputs", Outside.TABLE, "SQL that is put together when it runs"),
    ("(lambda Q: spark.sql(Q))(inputs)", "from tools import Q", Outside.TABLE, "SQL that is put together when it runs"),
    ("[spark.sql(text) for text in inputs]", "", Outside.TABLE, "SQL that is put together when it runs"),
    ("spark.sql(**inputs)", "", Outside.TABLE, "SQL that is put together when it runs"),
    ("map(spark.sql, ['SELECT 1'])", "", Outside.TABLE, ".sql"),
    ("getattr(spark, 'sql')(inputs)", "", Outside.TABLE, ".sql"),
    ("frame.where('a IN (SELECT b FROM other)')", "", Outside.TABLE, "the table other"),
    (
        "[spark.sql(f'SELECT * FROM {{f}} WHERE {part}', f=1) for part in PARTS]",
        "PARTS = ['a IN (SELECT b FROM other)']", Outside.TABLE, "the table other",
    ),
    ("DeltaTable.forPath(s, 'a')", "from delta.tables import DeltaTable", Outside.TABLE, "delta.tables.DeltaTable.forPath"),
    ("import_module('a')", "from importlib import import_module", Outside.IMPORT, "importlib.import_module"),
    ("__import__('a')", "", Outside.IMPORT, "__import__"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "head", "outside", "name"), READS)
def test_what_a_function_reads_besides_its_inputs_is_refused_with_its_line(
    body: str, head: str, outside: Outside, name: str
):
    with pytest.raises(DeclarationError, match=r"uses .+ in line \d+ of ") as caught:
        check_python(a_model(query=function(body, head)))

    assert re.search(rf"uses {re.escape(name)} in line \d+ of m: ", str(caught.value))
    assert str(caught.value).endswith(f"; {outside.value}")


@pytest.mark.parametrize(("body", "head", "outside", "name"), READS)
def test_a_volatile_model_may_read_what_it_likes(body: str, head: str, outside: Outside, name: str):
    del outside, name
    check_python(a_model(query=function(body, head), volatile=True))


DATACLASS = (
    "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    sql: str = 'a > 1'\n"
)
HELPER = "def run(frame, text):\n    return spark.sql(text, f=frame)\n"
NAMED = {"f": "SELECT * FROM {f}", "other": "SELECT * FROM other"}
HARMLESS = {"f": NAMED["f"]}
TWINS = {  # what is known to be harmless; its dangerous twin; what the refusal of the twin names
    "part of a date": (
        ("[F.expr(f'extract({part} FROM at)') for part in inputs]", FUNCTIONS),
        ("F.expr(f'(select {inputs} FROM other)')", FUNCTIONS),
        "the table other",
    ),
    "part of a text": (
        ("[F.expr(f'substring({start} from 2)') for start in inputs]", FUNCTIONS),
        ("F.expr(f'substring((select {inputs} from other), 2)')", FUNCTIONS),
        "the table other",
    ),
    "end of a query": (
        ("F.expr(f'{inputs}')", f"{FUNCTIONS}\nPART = f'trim({{TEXT}} from x)'"),
        ("(F.expr(f'{inputs}'), f'{inputs} from other')", FUNCTIONS),
        "the table other",
    ),
    "column of an aggregate": (
        (
            "frame.groupBy('user').agg(*[F.expr(f'{name}(amount)') for name in ('sum', 'max')])",
            FUNCTIONS,
        ),
        (
            "frame.groupBy('user').agg(*[F.expr(f'{name}(amount)') for name in ('sum', 'user')])",
            FUNCTIONS,
        ),
        "user",
    ),
    "column beside a hole": (
        ("frame.groupBy(['uuid']).agg(F.expr(f'{inputs}(a)'))", FUNCTIONS),
        ("pick('uuid', F.expr(f'{inputs}(a)'))", FUNCTIONS),
        "uuid",
    ),
    "new column beside a hole": (
        ("frame.withColumn('current_date', F.expr(f'{inputs} + 1'))", FUNCTIONS),
        ("frame.withColumn('day', F.expr(f'{inputs} + 1')).drop(DAY)", f"{FUNCTIONS}\nDAY = 'current_date'"),
        "current_date",
    ),
    "own function named like one of Spark": (
        ("frame.alias('uuid').select(F.expr(f'{inputs}(a)'))", FUNCTIONS),
        (
            "alias('uuid', inputs)",
            f"{FUNCTIONS}\ndef alias(*names):\n    return [F.expr(f'{{name}}(a)') for name in names]",
        ),
        "uuid",
    ),
    "message of an error": (
        ("checked(F.expr(f'{inputs}'))", f"{FUNCTIONS}\ndef checked(a):\n    raise ValueError('from other to x')"),
        ("checked(F.expr(f'{inputs}'))", f"{FUNCTIONS}\ndef checked(a):\n    return 'from other'"),
        "the table other",
    ),
    "field of an own class": (
        ("frame.where(settings.sql)", f"{DATACLASS}settings = Settings()"),
        ("map(settings.sql, inputs)", f"{DATACLASS}settings = Settings()\nsettings = spark"),
        ".sql",
    ),
    "field of a parameter": (
        ("g(inputs)", f"{DATACLASS}def g(settings: Settings):\n    return settings.sql"),
        ("g(spark)", f"{DATACLASS}def g(settings):\n    return settings.sql"),
        ".sql",
    ),
    "field that is inherited": (
        ("Settings(1).sql", DATACLASS),
        ("Settings(1).sql", "from pyspark.sql import SparkSession\nclass Settings(SparkSession):\n    a = 1"),
        ".sql",
    ),
    "entry of a dictionary": (
        ("spark.sql(Q['f'], f=frame)", f"Q = {NAMED}"),
        ("spark.sql(Q[inputs], f=frame)", f"Q = {NAMED}"),
        "the table other",
    ),
    "entry that may be changed": (
        ("[spark.sql(Q['f'], f=1), len(Q)]", f"Q = {HARMLESS}"),
        ("[spark.sql(Q['f'], f=1), Q.update(inputs)]", f"Q = {HARMLESS}"),
        "SQL that is put together when it runs",
    ),
    "entry that is set": (
        ("spark.sql(Q['f'], f=frame)", f"Q = {HARMLESS}"),
        ("spark.sql(Q['f'], f=frame)", f"Q = {HARMLESS}\nQ['f'] = open_sql"),
        "SQL that is put together when it runs",
    ),
    "attribute of a class": (
        ("spark.sql(Q.f, f=frame)", f"class Q:\n    f = '{NAMED['f']}'"),
        ("spark.sql(Q.f, f=frame)", f"class Q:\n    f = '{NAMED['other']}'"),
        "the table other",
    ),
    "attribute that is set": (
        ("spark.sql(Q.f, f=frame)", f"class Q:\n    f: str = '{NAMED['f']}'"),
        ("spark.sql(Q.f, f=frame)", f"class Q:\n    f = '{NAMED['f']}'\nQ.f = made"),
        "SQL that is put together when it runs",
    ),
    "parameter of a helper": (
        ("run(frame, 'SELECT * FROM {f}')", HELPER),
        ("run(frame, 'SELECT * FROM other')", HELPER),
        "the table other",
    ),
    "parameter by its name": (
        ("run(frame, text='SELECT * FROM {f}')", HELPER),
        ("run(frame, **inputs)", HELPER),
        "SQL that is put together when it runs",
    ),
    "parameter with a default": (
        ("run(frame)", HELPER.replace("text)", "text='SELECT 1')", 1)),
        ("run(frame)", HELPER.replace("text)", "text='SELECT * FROM other')", 1)),
        "the table other",
    ),
    "helper that is passed on": (
        ("[run(frame, 'SELECT 1'), run(frame, 'SELECT 2')]", HELPER),
        ("[run(frame, 'SELECT 1'), map(run, inputs)]", HELPER),
        "SQL that is put together when it runs",
    ),
    "helper that is decorated": (
        ("run(frame, 'SELECT 1')", HELPER),
        ("run(frame, 'SELECT 1')", f"@other\n{HELPER}"),
        "SQL that is put together when it runs",
    ),
    "parameter that is bound again": (
        ("run(frame, 'SELECT 1')", HELPER),
        ("run(frame, 'SELECT 1')", HELPER.replace("    return", "    text = inputs\n    return")),
        "SQL that is put together when it runs",
    ),
    "text that a helper returns": (
        ("spark.sql(made(1), f=frame)", f"def made(n):\n    return '{NAMED['f']}'"),
        ("spark.sql(made(1), f=frame)", f"def made(n):\n    return '{NAMED['other']}'"),
        "the table other",
    ),
    "text that a helper makes": (
        ("spark.sql(made('{f}'), f=frame)", "def made(t):\n    return f'SELECT * FROM {t}'"),
        ("spark.sql(made('other'))", "def made(t):\n    return f'SELECT * FROM {t}'"),
        "the table other",
    ),
    "loop over texts": (
        ("[spark.sql(text, f=frame) for text in ('SELECT * FROM {f}',)]", ""),
        ("[spark.sql(text, f=frame) for text in ('SELECT * FROM other',)]", ""),
        "the table other",
    ),
    "loop over a list": (
        ("[spark.sql(text, f=frame) for text in Q]", "Q = ['SELECT * FROM {f}']"),
        ("[spark.sql(text, f=frame) for text in Q]", "Q = ['SELECT 1']\nQ.append(made)"),
        "SQL that is put together when it runs",
    ),
    "loop over pairs": (
        ("[spark.sql(text, f=frame) for name, text in Q.items()]", f"Q = {{'a': '{NAMED['f']}'}}"),
        ("[spark.sql(text, f=frame) for name, text in Q.items()]", f"Q = {NAMED}"),
        "the table other",
    ),
    "text that is made from itself": (
        ("spark.sql(Q)", "Q = 'SELECT 1'"),
        ("spark.sql(Q)", "Q = 'SELECT 1'\nQ = Q"),
        "SQL that is put together when it runs",
    ),
    "function that calls itself": (
        ("spark.sql(made())", "def made():\n    return 'SELECT 1'"),
        ("spark.sql(made())", "def made():\n    return made() if made() else made()"),
        "SQL that is put together when it runs",
    ),
    "arguments of a query": (
        ("spark.sql('SELECT * FROM {f}', {'x': 1}, f=frame)", ""),
        ("spark.sql(*['SELECT * FROM other'])", ""),
        "the table other",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("plain", "twin", "name"), TWINS.values(), ids=TWINS)
def test_a_text_that_the_code_tells_is_let_through_and_its_dangerous_twin_is_refused(
    plain: tuple[str, str], twin: tuple[str, str], name: str
):
    check_python(a_model(query=function(*plain)))

    with pytest.raises(DeclarationError, match=re.escape(f"uses {name}")):
        check_python(a_model(query=function(*twin)))


def test_what_other_modules_pass_to_a_helper_is_read_where_it_is_run():
    harmless = "from tools import run, TEXTS\nCONSTANT = 1"
    tools = f"{HELPER}TEXTS = ({NAMED['f']!r},)\n"
    body = "[run(inputs, text) for text in TEXTS]"
    check_python(a_model(query=function(body, harmless, tools=tools)))

    for more in ("run(inputs, 'SELECT * FROM other')", "map(run, inputs)"):
        with pytest.raises(DeclarationError, match="in line 2 of tools"):
            check_python(a_model(query=function(f"[{body}, {more}]", harmless, tools=tools)))


def test_the_parameters_of_the_models_own_function_are_never_known():
    head = "def again():\n    return f('SELECT 1', 'SELECT 1')"

    with pytest.raises(DeclarationError, match="SQL that is put together when it runs"):
        check_python(a_model(query=function("[spark.sql(inputs), again()]", head)))


def test_what_an_own_module_reads_is_the_models_doing():
    tools = "import os\ndef rate():\n    return os.environ['RATE']\n"
    query = function("rate()", "from tools import rate", tools=tools)

    with pytest.raises(DeclarationError, match=r"os\.environ in line 3 of tools"):
        check_python(a_model(query=query))


def test_a_module_that_passes_a_name_on_hides_nothing():
    query = function("tools.dice()", "import tools", tools="from random import random as dice\n")

    with pytest.raises(DeclarationError, match=r"uses random\.random.*, so a rebuild would differ"):
        check_python(a_model(query=query))


@pytest.mark.parametrize(
    ("body", "head", "tools"),
    [
        ("spark.sql(Q)", "from tools import Q", "Q = 'SELECT * FROM other'"),
        ("spark.sql(tools.Q)", "import tools", "Q: str = 'SELECT * FROM other'"),
        ("spark.sql(n.Q.format(T))", "import tools as n\nT = 'other'", "Q = 'SELECT * FROM {}'"),
        ("spark.sql(Q)", "from tools import Q", "from more import TEXT as Q"),
    ],
)
def test_sql_that_another_module_holds_is_read_where_it_is_run(body: str, head: str, tools: str):
    more = "TEXT = 'SELECT * FROM other'"

    with pytest.raises(DeclarationError, match="the table other in line"):
        check_python(a_model(query=function(body, head, tools=tools, more=more)))


def test_a_declared_file_may_be_read_and_nothing_else():
    reading = function("open('a')")
    declared = ModuleQuery("f", "m", reading.modules, (StoredFile("a", ""),))
    by_sql_file = ModuleQuery("f", "m", reading.modules, (StoredFile("a", "", declared=False),))
    more = ModuleQuery(
        "f", "m", function("open(os.environ['A'])", "import os").modules, declared.files
    )

    check_python(a_model(query=declared))
    for refused in (by_sql_file, more):
        with pytest.raises(DeclarationError, match=r"uses .+ in line \d+ of "):
            check_python(a_model(query=refused))


WORKER = "from pyspark.sql.functions import udf\n@udf\ndef rated(n):\n    from tools import RATE\n    return RATE\n"


def test_an_own_import_inside_a_function_that_workers_may_run_is_refused():
    query = function("rated('n')", WORKER, tools="RATE = 1\n")

    with pytest.raises(DeclarationError, match=r"tools in line 4 of m: .* top of its module"):
        check_python(a_model(query=query, volatile=True))

    check_python(a_model(query=function("rated('n')", WORKER.replace("from tools", "from math"))))


def test_a_bundle_was_checked_by_the_release_that_made_it():
    check_python(a_model(query=FunctionQuery("f", "def f(i, j):\n    return open('a')\n")))


def test_the_models_of_this_project_are_let_through():
    for model in MODELS:
        check_python(model)
