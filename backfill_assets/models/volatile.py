"""Refuse queries that answer differently tomorrow on the same input, unless they say so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.query import SqlQuery

if TYPE_CHECKING:
    from backfill_assets.models.model import Model

VOLATILE = frozenset(
    {
        "rand", "randn", "random", "uuid", "shuffle", "current_timestamp", "now", "current_date",
        "curdate", "localtimestamp", "monotonically_increasing_id", "spark_partition_id",
        "input_file_name", "current_user",
    }
)  # fmt: skip
_CALL = re.compile(r"\b(?:F|functions|sf)\.(\w+)\s*\(")


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
        VolatileQueryError: it uses one of `VOLATILE`.
    """
    if model.volatile:
        return
    used = _sql_calls(model.logic) if isinstance(model.logic, SqlQuery) else _python_calls(
        model.logic.bundle
    )
    for function in sorted(used & VOLATILE):
        raise VolatileQueryError(model=model.name, function=function)


def _sql_calls(query: SqlQuery) -> set[str]:
    calls = query.tree().find_all(exp.Func)
    return {
        name.lower()
        for call in calls
        for name in (
            [call.name] if isinstance(call, exp.Anonymous) else [call.sql_name(), *call.sql_names()]
        )
    }


def _python_calls(bundle: str) -> set[str]:
    return set(_CALL.findall(bundle))
