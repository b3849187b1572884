"""Refuse queries that answer differently tomorrow on the same input, unless they say so."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.model import Model

VOLATILE = frozenset(
    {
        "rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "tablesample",
        "current_timestamp", "now", "current_date", "curdate", "localtimestamp", "getdate",
        "monotonically_increasing_id", "spark_partition_id", "input_file_name",
        "input_file_block_start", "input_file_block_length", "current_user", "session_user", "user",
    }
)  # fmt: skip
_PYTHON = frozenset({"utcnow", "today", "uuid1", "uuid4", "time.time", "time_ns", "sample"})
_SPECIAL_TIMES = frozenset({"now", "today", "tomorrow", "yesterday"})
_CALL = re.compile(r"\b([a-z_]+)\s*\(")


class VolatileQueryError(BackfillAssetsError):
    """A query uses a function whose answer is not a function of its input."""

    def __init__(self, *, model: str, function: str) -> None:
        self.model, self.function = model, function
        super().__init__(
            f"model '{model}' uses {function}(), so a rebuild would differ without a reason; take "
            "it out, or declare the model volatile=True"
        )


def check_stable(model: Model) -> None:
    """Refuse a volatile function in a model that is not declared volatile.

    Raises:
        VolatileQueryError: it uses one of `VOLATILE`, or Python's own clock or dice.
    """
    if model.volatile:
        return
    if isinstance(model.logic, SqlQuery):
        used = set(_sql_calls(model.logic.tree())) & VOLATILE
    else:
        used = {
            name
            for one in model.logic.kept()
            for name in _python_calls(ast.Module([*one.body], []))
        } & (VOLATILE | _PYTHON)
    if used:
        raise VolatileQueryError(model=model.name, function=min(used))


def _sql_calls(tree: exp.Expr) -> Iterator[str]:
    for node in tree.find_all(exp.Func, exp.TableSample):
        if isinstance(node, exp.Anonymous):
            yield node.name.lower()
        elif isinstance(node, exp.TableSample):
            yield "tablesample"
        elif isinstance(node, exp.Cast) and node.this.is_string:
            yield "now" if node.this.name.lower() in _SPECIAL_TIMES else "cast"  # TIMESTAMP 'now'
        else:
            yield from (name.lower() for name in node.sql_names())


def _python_calls(bundle: ast.Module) -> Iterator[str]:
    """Name the functions that are called, also inside the SQL text of `F.expr` and the like."""
    imported = {
        alias.asname: alias.name
        for node in ast.walk(bundle)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    for node in ast.walk(bundle):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield imported.get(name, name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="time")):
                yield "time.time"
            case ast.Call(func=ast.Attribute(attr=name)):
                yield name
            case ast.Constant(value=str(text)):
                yield from _CALL.findall(text.lower())
            case _:
                continue
