"""Refuse queries whose answer may change tomorrow on the same input, unless they declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.query import SqlQuery
from backfill_assets.models.spark_tokens import place
from backfill_assets.models.sql_volatility import volatile_in

if TYPE_CHECKING:
    from backfill_assets.models.model import Model


class VolatileQueryError(BackfillAssetsError):
    """A query uses something whose answer is not a function of its input."""

    def __init__(self, *, model: str, function: str, line: int | None = None) -> None:
        self.model, self.function = model, function
        where = f" in line {line} of its query" if line else ""
        super().__init__(
            f"model '{model}' uses {function}{where}, so a rebuild would differ without a reason; "
            "take it out (a column of that name: write its table before it), or declare the model "
            "volatile=True"
        )


def check_stable(model: Model, columns: frozenset[str] = frozenset()) -> None:
    """Refuse volatile parts in a SQL model that is not declared volatile.

    Args:
        model: any; of Python models, `models.python_guard` knows.
        columns: those of its upstreams, in lower case.

    Raises:
        VolatileQueryError: it uses one of `VOLATILE`, or another volatile form.
    """
    query = model.logic
    if model.volatile or not isinstance(query, SqlQuery):
        return
    for found, token in volatile_in(query.tokens(), columns):
        line, _ = place(query.sql, token.start)
        raise VolatileQueryError(model=model.name, function=found, line=line)
