"""Refuse queries that answer differently tomorrow on the same input, unless they say so."""

from __future__ import annotations

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
_SPECIAL_TIMES = frozenset({"now", "today", "tomorrow", "yesterday"})


class VolatileQueryError(BackfillAssetsError):
    """A query uses a function whose answer is not a function of its input."""

    def __init__(self, *, model: str, function: str) -> None:
        self.model, self.function = model, function
        super().__init__(
            f"model '{model}' uses {function}(), so a rebuild would differ without a reason; take "
            "it out, or declare the model volatile=True"
        )


def check_stable(model: Model) -> None:
    """Refuse a volatile function in a SQL model that is not declared volatile.

    Raises:
        VolatileQueryError: it uses one of `VOLATILE`.
    """
    if model.volatile or not isinstance(model.logic, SqlQuery):
        return  # of Python models, `models.python_guard` knows
    used = set(_sql_calls(model.logic.tree())) & VOLATILE
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
