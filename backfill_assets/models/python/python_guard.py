"""Find what a Python model reads from elsewhere than its inputs: it must be declared, or is refused.

The guard reads the code that may matter (`models.settled`) of the function's module and of all own
modules that it imports, import time included. It follows names through imports. Where the type of a
value can't be known, the name of the method decides. It guards against mistakes and is no proof.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from backfill_assets.errors import DeclarationError
from backfill_assets.models.python.function_query import ModuleQuery
from backfill_assets.models.python.own_modules import imported_base
from backfill_assets.models.python.python_names import Names
from backfill_assets.models.python.python_texts import PERCENT, PUT_IN, Texts
from backfill_assets.models.python.syntax import words
from backfill_assets.models.sql.spark_tokens import UnreadableSqlError, tokens_of
from backfill_assets.models.sql.sql_volatility import VOLATILE, volatile_in, volatile_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from backfill_assets.models.model import Model
    from backfill_assets.models.python.reflection import KeptStatements


class Outside(Enum):
    """The origin of a value that is no input; the text of the member says how to declare it."""

    CLOCK = "remove it, or declare the model volatile=True"
    FILE = (
        "declare the file, query=function_query(f, reads_files=[...]), so that the snapshot stores it; "
        "or land it as a source"
    )
    ENVIRONMENT = "write the value into the code, or declare the model volatile=True"
    SYSTEM = "load its result as a source, or declare the model volatile=True"
    TABLE = "declare it as an upstream, and take it from the function's inputs"
    IMPORT = "name the module in an `import` statement, so that the snapshot stores it"
    WORKER = "import it at the top of its module"


def _outside_read(*, model: str, use: Use) -> DeclarationError:
    return DeclarationError(
        found=f"model '{model}' uses {use.name} in line {use.line} of {use.module}: "
        f"{_WHY[use.outside]}",
        do=use.outside.value,
    )


_WHY = {
    Outside.FILE: "the file may have another content when a cell is rebuilt",
    Outside.ENVIRONMENT: "the environment may have another value when a cell is rebuilt",
    Outside.SYSTEM: "it may give another result when a cell is rebuilt",
    Outside.TABLE: "a table that is not an input is read without a pinned version",
    Outside.IMPORT: "the imported code is not stored, so a snapshot would run the code on disk",
    Outside.WORKER: (
        "an import of the project inside a function finds no module on Spark's workers, or the code on disk"
    ),
}


@dataclass(frozen=True, slots=True)
class Use:
    """One use of something from outside.

    Attributes:
        outside: where it comes from.
        name: as it is called.
        module: in whose code.
        line: of its file.
    """

    outside: Outside
    name: str
    module: str
    line: int


def check_python(model: Model) -> None:
    """Refuse what a Python function of a model reads besides its inputs, unless it is declared.

    A model that is declared volatile may use such reads; declared files may be read.

    Raises:
        DeclarationError: it uses a clock, random numbers, or a volatile function of SQL.
        DeclarationError: it reads files, the environment, other tables or other systems.
    """
    for query in model.functions:
        if isinstance(
            query, ModuleQuery
        ):  # an earlier release has checked a bundle when it was declared
            _check_function(model, query)


def _check_function(model: Model, query: ModuleQuery) -> None:
    stored = frozenset(module.name for module in query.modules)
    for use in _imports_on_workers(query.kept(), stored):
        raise _outside_read(model=model.name, use=use)
    if model.volatile:
        return
    declares_files = any(file.declared for file in query.files)
    for use in uses(query.kept(), (query.module, query.name)):
        if use.outside is Outside.CLOCK:
            raise volatile_query(model=model.name, function=use.name)
        if not (use.outside is Outside.FILE and declares_files):
            raise _outside_read(model=model.name, use=use)


def uses(kept: Iterable[KeptStatements], entry: tuple[str, str]) -> Iterator[Use]:
    """Find every use of something from outside, module by module.

    Args:
        kept: the code.
        entry: module and name of the function that is called from outside of it.
    """
    kept = tuple(kept)
    imports = {kept_module.module.name: _imported_names(kept_module) for kept_module in kept}
    names = Names(kept, imports, entry)
    texts = Texts(names)
    bound = {
        name
        for kept_module in kept
        for node, _ in _with_parents(kept_module.body)
        for name in _bindings(node)
    }
    column_names = {
        text for kept_module in kept for text in _said(kept_module, texts, _NAMES_COLUMNS - bound)
    }
    for kept_module in kept:
        reader = _Reader(kept_module, imports, names, texts, column_names)
        for node, parent in _with_parents(kept_module.body):
            for outside, name in reader.found(node, parent):
                yield Use(outside, name, kept_module.module.name, getattr(node, "lineno", 0))


# By the start of a name as its import gives it; the longest one that fits decides, None allows.
_BY_NAME: Mapping[str, Outside | None] = {
    **dict.fromkeys(
        (
            "random", "secrets", "uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7", "uuid.getnode",
            "time", "os.urandom", "os.getrandom", "datetime.datetime.now", "datetime.datetime.today",
            "datetime.datetime.utcnow", "datetime.date.today", "numpy.random", "pandas.Timestamp.now",
            "pandas.Timestamp.today", "pandas.Timestamp.utcnow",
        ),
        Outside.CLOCK,
    ),
    **dict.fromkeys(("time.strptime", "time.struct_time", "time.sleep", "time.mktime"), None),
    **dict.fromkeys(
        (
            "open", "io.open", "io.FileIO", "io.open_code", "codecs.open", "gzip.open", "bz2.open",
            "lzma.open", "zipfile.ZipFile", "tarfile", "fileinput", "linecache", "glob", "mmap",
            "shutil", "tempfile", "importlib.resources", "importlib_resources", "pkgutil.get_data",
            "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "joblib.load", "dbm",
            "pyarrow.fs", "pyarrow.dataset", "os", "configparser", "pathlib.Path.cwd",
            "pathlib.Path.home",
        ),
        Outside.FILE,
    ),
    **dict.fromkeys(
        (
            "os.fspath", "os.PathLike", "os.sep", "os.linesep", "os.path.join", "os.path.basename",
            "os.path.dirname", "os.path.split", "os.path.splitext", "os.path.normpath",
        ),
        None,
    ),
    **dict.fromkeys(
        (
            "os.environ", "os.environb", "os.getenv", "os.getenvb", "os.getcwd", "os.getpid",
            "os.getlogin", "os.cpu_count", "os.uname", "sys.argv", "sys.stdin", "sys.platform", "input",
            "platform", "getpass", "locale", "dotenv", "environs",
        ),
        Outside.ENVIRONMENT,
    ),
    **dict.fromkeys(
        (
            "subprocess", "socket", "ssl", "urllib.request", "http.client", "requests", "httpx",
            "aiohttp", "urllib3", "ftplib", "smtplib", "imaplib", "poplib", "telnetlib", "xmlrpc",
            "boto3", "botocore", "google.cloud", "azure", "s3fs", "fsspec", "gcsfs", "adlfs",
            "paramiko", "psycopg", "psycopg2", "sqlalchemy", "sqlite3", "pymysql", "redis", "pymongo",
            "kafka", "duckdb", "os.system", "os.popen", "os.fork", "ctypes", "webbrowser",
        ),
        Outside.SYSTEM,
    ),
    **dict.fromkeys(
        ("delta", "deltalake", "pyspark.SparkFiles", "backfill_assets.read", "backfill_assets.resolve",
         "backfill_assets.reading"),
        Outside.TABLE,
    ),
    **dict.fromkeys(
        ("importlib.import_module", "importlib.util", "importlib.machinery", "importlib.reload",
         "__import__", "runpy", "imp"),
        Outside.IMPORT,
    ),
}  # fmt: skip
_READERS = ("pandas.", "polars.", "pyarrow.", "pyspark.pandas.")
_FUNCTIONS = "pyspark.sql.functions."
_METHODS: Mapping[str, Outside] = {
    **dict.fromkeys(VOLATILE | {"utcnow", "today", "uuid1", "uuid4", "urandom", "sample"}, Outside.CLOCK),
    **dict.fromkeys(
        ("open", "read_text", "read_bytes", "iterdir", "rglob", "is_file", "is_dir", "expanduser"),
        Outside.FILE,
    ),
    **dict.fromkeys(
        ("table", "textFile", "wholeTextFiles", "binaryFiles", "pickleFile", "sequenceFile",
         "hadoopFile", "newAPIHadoopFile"),
        Outside.TABLE,
    ),
}  # fmt: skip
_TAKES_SQL = frozenset(
    {"expr", "selectExpr", "sql", "where", "filter", "call_function", "call_udf"}
)
_LEADS_TO_TABLES = frozenset({"read", "readStream", "sql"})
_OR_A_COLUMN = frozenset({"where", "filter"})
_OF_TEXT = frozenset({"sqlQuery", "condition", "str", "funcName", "udfName"})
_SPECIAL_TIMES = re.compile(r"\s*(now|today|tomorrow|yesterday)\s*", re.IGNORECASE)
_IN_SQL = re.compile(r"'\s*(now|today|tomorrow|yesterday)\s*'", re.IGNORECASE)
_QUOTED = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_CALLED = re.compile(r"\b([a-z_]\w*)\s*\(")
_WITHOUT_BRACKETS = frozenset(
    {"current_timestamp", "current_date", "current_time", "localtimestamp"}
)
_LIKELY_COLUMNS = frozenset({"user"})  # the columns of a frame are not known here
_PUT_BEFORE_BRACKET = re.compile(rf"{re.escape(PUT_IN)}\s*\(")
_HOLDS_A_QUERY = re.compile(r"(?:^|\()\s*(?:select|with|from|table)\b", re.IGNORECASE)
_GOES_ON = re.compile(rf"{re.escape(PUT_IN)}\s*(?:select|with|from|table)\b", re.IGNORECASE)
_TAKEN_FROM = re.compile(  # `extract(year FROM at)` and the like: no query
    r"\b(?:extract|substr|substring|trim|overlay)\s*\((?:[^()]|\([^()]*\))*?\bfrom\b", re.IGNORECASE
)
_NAMES_COLUMNS = frozenset(
    {
        "alias", "col", "column", "cube", "drop", "dropDuplicates", "fillna", "groupBy", "groupby",
        "orderBy", "partitionBy", "rollup", "select", "sort", "withColumn", "withColumnRenamed",
    }
)  # fmt: skip
_ODD_TABLE = "a table whose name is put together when it runs"
_MADE_WHEN_IT_RUNS = "SQL that is put together when it runs"
_TABLES = re.compile(r"\b(?:from|join|table)\s+([^\s(),;]+)", re.IGNORECASE)
_GIVEN = re.compile(r"\{(\w+)\}")
_NAMED_HERE = re.compile(r"\b(\w+)\s+as\s*\(", re.IGNORECASE)
_ON_WORKERS = frozenset(
    {
        "udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf", "mapInPandas", "mapInArrow", "applyInPandas",
        "applyInArrow", "applyInPandasWithState", "transformWithState", "foreach", "foreachPartition", "rdd",
        "mapPartitions", "cogroup",
    }
)  # fmt: skip


class _Reader:
    """Reads one module's code; knows what its names stand for."""

    def __init__(
        self,
        kept: KeptStatements,
        imports: Mapping[str, Mapping[str, str]],
        names: Names,
        texts: Texts,
        said: set[str],
    ) -> None:
        self._module = kept.module.name
        self._imports = imports
        self._names = imports[kept.module.name]
        self._all_names = names
        self._all_texts = texts
        self._said = said
        nodes = [node for node, _ in _with_parents(kept.body)]
        self._bound = {name for node in nodes for name in _bindings(node)}
        self._views = {
            text.lower()
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("createOrReplaceTempView", "createTempView")
            for name in node.args
            for text in self._texts(name)
        }

    def _texts(self, node: ast.expr) -> tuple[str, ...]:
        return self._all_texts.of(node, self._module)

    def found(self, node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[Outside, str]]:
        match node:
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                if not isinstance(parent, ast.Attribute):
                    yield from self._reference(node)
                if isinstance(node, ast.Attribute):
                    yield from self._attribute(node, parent)
            case ast.Call():
                yield from self._call(node)
            case ast.JoinedStr():
                yield from self._volatile(self._texts(node))
            case ast.Constant(value=str(text)) if not isinstance(parent, (ast.Expr, ast.JoinedStr)):
                yield from self._volatile([text] if " " in text.strip() or "(" in text else [])
            case _:
                return

    @staticmethod
    def _volatile(texts: Iterable[str]) -> Iterator[tuple[Outside, str]]:
        return ((Outside.CLOCK, name) for text in texts for name in _volatile_sql(text))

    def _reference(self, node: ast.expr) -> Iterator[tuple[Outside, str]]:
        name = self._qualified(node)
        if name is None:
            return
        outside = _by_name(name)
        last = name.rpartition(".")[2]
        if outside is not None:
            yield outside, name
        elif name.startswith(_READERS) and last.startswith(("read_", "scan_")):
            yield Outside.FILE, name
        elif name.startswith(_FUNCTIONS) and last in VOLATILE:
            yield Outside.CLOCK, last

    def _attribute(
        self, node: ast.Attribute, parent: ast.AST | None
    ) -> Iterator[tuple[Outside, str]]:
        is_called = isinstance(parent, ast.Call) and parent.func is node
        if is_called or node.attr not in _LEADS_TO_TABLES or self._qualified(node) is not None:
            return
        if not self._all_names.is_own(node.value, node.attr, self._module):
            yield Outside.TABLE, f".{node.attr}"

    def _call(self, node: ast.Call) -> Iterator[tuple[Outside, str]]:
        name, resolved = self._called(node.func)
        if not resolved and name in _METHODS:
            yield _METHODS[name], name
        if name == "unix_timestamp" and not node.args and not node.keywords:
            yield Outside.CLOCK, name
        if name == "getattr" and len(node.args) > 1:
            yield from self._looked_up(node.args[1])
        if (
            name in ("lit", "Timestamp", "to_datetime", "datetime64")
            and node.args
            and any(map(_SPECIAL_TIMES.fullmatch, self._texts(node.args[0])))
        ):
            yield Outside.CLOCK, f"{name}('now')"
        if name in _TAKES_SQL:
            yield from self._sql(name, node, is_own=resolved and name in self._bound)

    def _looked_up(self, name: ast.expr) -> Iterator[tuple[Outside, str]]:
        for text in self._texts(name):
            if text in _METHODS:
                yield _METHODS[text], text
            elif text in _LEADS_TO_TABLES:
                yield Outside.TABLE, f".{text}"

    def _sql(self, name: str, node: ast.Call, *, is_own: bool) -> Iterator[tuple[Outside, str]]:
        """Look through the texts that a function takes as SQL; an own one of that name may take others."""
        taken = [*_sql_arguments(node)]
        if name == "sql" and not is_own:
            taken = [
                *node.args[:1],
                *(keyword.value for keyword in node.keywords if keyword.arg in _OF_TEXT),
            ]
        given = [text for argument in taken for text in self._texts(argument)]
        for text in given:
            yield from ((Outside.CLOCK, word) for word in _volatile_sql(text, name))
            if name == "sql" or _HOLDS_A_QUERY.search(text):
                yield from self._tables(text)
            if text.strip() != PUT_IN or name not in _OR_A_COLUMN:
                yield from self._put_in(text, name)
        is_known = given and not any(text.strip() == PUT_IN for text in given)
        if name == "sql" and not is_known and not is_own:
            yield Outside.TABLE, _MADE_WHEN_IT_RUNS

    def _put_in(self, text: str, taken_by: str) -> Iterator[tuple[Outside, str]]:
        """The texts of the code that may fill a hole: all of them, since it is unknown which one does."""
        if PUT_IN not in text:
            return
        is_called = taken_by.startswith("call_") or _PUT_BEFORE_BRACKET.search(text)
        words = (_WITHOUT_BRACKETS | VOLATILE) if is_called else _WITHOUT_BRACKETS
        yield from ((Outside.CLOCK, word) for word in sorted(words & self._said))
        for query in sorted(filter(_may_be_a_query, self._said)):
            yield from (
                (outside, name) for outside, name in self._tables(query) if name != _ODD_TABLE
            )

    def _called(self, func: ast.expr) -> tuple[str, bool]:
        """Name the called function, and say whether its owner is known."""
        qualified = self._qualified(func)
        if qualified is not None:
            return qualified.rpartition(".")[2], True
        match func:
            case ast.Name(id=name):
                return name, name in self._bound
            case ast.Attribute(attr=name):
                return name, False
            case _:
                return "", False

    def _tables(self, text: str) -> Iterator[tuple[Outside, str]]:
        for table in sorted(_tables_of(text)):
            if not table.startswith("{") and table.lower().strip("`") not in self._views:
                yield Outside.TABLE, _ODD_TABLE if PUT_IN in table else f"the table {table}"

    def _qualified(self, node: ast.expr) -> str | None:
        """Give the dotted name by which the import of something is known; None for other values."""
        match node:
            case ast.Name(id=name) if name in self._names:
                return self._followed(self._names[name])
            case ast.Name(id="open" | "input" | "__import__" as name) if name not in self._bound:
                return name
            case ast.Attribute(value=value, attr=name):
                before = self._qualified(value)
                return None if before is None else self._followed(f"{before}.{name}")
            case _:
                return None

    def _followed(self, name: str) -> str:
        """Follow a name through own modules that only pass it on."""
        for _ in self._imports:
            module, _, last = name.rpartition(".")
            passed_on = self._imports.get(module, {}).get(last)
            if passed_on is None or passed_on == name:
                break
            name = passed_on
        return name


def _by_name(name: str) -> Outside | None:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        start = ".".join(parts[:count])
        if start in _BY_NAME:
            is_bare_module = count == len(parts) and count == 1 and start not in _BUILT_IN
            return None if is_bare_module else _BY_NAME[start]
    return None


_BUILT_IN = frozenset({"open", "input", "__import__"})


def _imported_names(kept: KeptStatements) -> dict[str, str]:
    origins: dict[str, str] = {}
    for node, _ in _with_parents(kept.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                origins[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            base = imported_base(node, kept.module.package)
            origins |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
    return origins


def _bindings(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case _:
            return


def _with_parents(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Walk code in the order of its lines, as far as possible, without annotations."""
    waiting: list[tuple[ast.AST, ast.AST | None]] = [(node, None) for node in reversed([*body])]
    while waiting:
        node, parent = waiting.pop()
        yield node, parent
        inner = [child for child in ast.iter_child_nodes(node) if child not in _hints(node)]
        waiting += [(child, node) for child in reversed(inner)]


def _hints(node: ast.AST) -> tuple[ast.AST | None, ...]:
    return getattr(node, "annotation", None), getattr(node, "returns", None)


def _sql_arguments(node: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that may be SQL, those in a written list one by one."""
    for argument in (
        *node.args,
        *(keyword.value for keyword in node.keywords if keyword.arg in _OF_TEXT),
    ):
        match argument:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                yield from parts
            case ast.Starred(value=ast.List(elts=parts) | ast.Tuple(elts=parts)):
                yield from parts
            case _:
                yield argument


def _said(kept: KeptStatements, texts: Texts, naming: Set[str]) -> Iterator[str]:
    """Every text in code, in lower case, except docstrings, names of columns and messages of errors.

    A part that is filled in later is a hole. An f-string counts as a whole, not by its pieces.
    """
    no_sql = _no_sql(kept.body, naming)
    for node, parent in _with_parents(kept.body):
        if isinstance(parent, (ast.Expr, ast.JoinedStr, type(None))) or node in no_sql:
            continue
        match node:
            case ast.Constant(value=str(text)):
                yield PERCENT.sub(PUT_IN, text.strip().lower())
            case ast.JoinedStr():
                yield from (text.strip().lower() for text in texts.of(node, kept.module.name))
            case _:
                continue


def _no_sql(body: Iterable[ast.stmt], naming: Set[str]) -> set[ast.AST]:
    """The texts that certainly are no SQL: written where a call names columns, or in an error."""
    left_out: set[ast.AST] = set()
    for node, _ in _with_parents(body):
        match node:
            case ast.Raise(exc=ast.expr() as error):
                left_out |= {*ast.walk(error)}
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in naming:
                left_out |= {*_sql_arguments(node)}
            case _:
                continue
    return left_out


def _may_be_a_query(text: str) -> bool:
    """Say whether a text holds a query, or the end of one that is joined from parts."""
    return bool(_HOLDS_A_QUERY.search(text) or _GOES_ON.search(_TAKEN_FROM.sub(" ", text)))


def _volatile_sql(text: str, taken_by: str = "") -> Iterator[str]:
    """Name what is volatile in a text that is SQL, or may be."""
    try:
        yield from (name for name, _ in volatile_in(tokens_of(text), _LIKELY_COLUMNS))
    except UnreadableSqlError:  # no SQL; or SQL into which something is put
        yield from sorted(_WITHOUT_BRACKETS & {*re.findall(r"\w+", text.lower())})
        yield from (name for name in _CALLED.findall(text.lower()) if name in VOLATILE)
    if _IN_SQL.search(text):
        yield "now"
    if taken_by.startswith("call_") and text.strip().lower() in VOLATILE:
        yield text.strip().lower()


def _tables_of(text: str) -> set[str]:
    """Name the tables that SQL reads, ``{frame}`` for a frame that is given with it."""
    try:
        trees = sqlglot.parse(_GIVEN.sub(r"given__\1", text), dialect="spark")
    except SqlglotError:
        named_here = {name.lower() for name in _NAMED_HERE.findall(text)}
        return {*_TABLES.findall(_QUOTED.sub(_but_names, text))} - named_here
    named = {
        ".".join(part.name for part in table.parts)
        for tree in trees
        if tree is not None
        for table in tree.find_all(exp.Table)
    }
    named_here = {cte.alias for tree in trees if tree for cte in tree.find_all(exp.CTE)}
    return {
        f"{{{table_name}}}" if table_name.startswith("given__") else table_name
        for table_name in named - named_here
    }


def _but_names(quoted: re.Match[str]) -> str:
    return quoted[0] if quoted[0].startswith("`") else " "


def _imports_on_workers(kept: Iterable[KeptStatements], stored: frozenset[str]) -> Iterator[Use]:
    """Find imports of own modules inside functions, where some function may run on a worker."""
    kept = tuple(kept)
    if not any(words(kept_module.body) & _ON_WORKERS for kept_module in kept):
        return
    for kept_module in kept:
        for node, _ in _with_parents(kept_module.body):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            for inner in ast.walk(node):
                names = _own_imports(inner, kept_module.module.package) & stored
                if names:
                    yield Use(
                        Outside.WORKER,
                        min(names),
                        kept_module.module.name,
                        getattr(inner, "lineno", 0),
                    )


def _own_imports(node: ast.AST, package: str) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name for alias in names}
        case ast.ImportFrom(names=names):
            base = imported_base(node, package)
            return {base, *(f"{base}.{alias.name}" for alias in names)}
        case _:
            return set()
