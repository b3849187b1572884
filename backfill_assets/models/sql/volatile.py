"""Refuse queries whose answer may change tomorrow on the same input, unless they declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.spark_tokens import place
from backfill_assets.models.sql.sql_volatility import volatile_in

if TYPE_CHECKING:
    from backfill_assets.models.model import Model


def volatile_query(*, model: str, function: str, line: int | None = None) -> DeclarationError:
    """Name what makes the answer of a query no function of its input."""
    where = f" in line {line} of its query" if line else ""
    return DeclarationError(
        found=f"model '{model}' uses {function}{where}, so a rebuild would differ without a reason",
        do="take it out (a column of that name: write its table before it), or declare the model "
        "volatile=True",
    )


def check_stable(model: Model, columns: frozenset[str] = frozenset()) -> None:
    """Refuse volatile parts in a SQL model that is not declared volatile.

    Args:
        model: any; of Python models, `models.python_guard` knows.
        columns: those of its upstreams, in lower case.

    Raises:
        DeclarationError: it uses one of `VOLATILE`, or another volatile form.
    """
    query = model.logic
    if model.volatile or not isinstance(query, SqlQuery):
        return
    for found, token in volatile_in(query.tokens(), columns):
        line, _ = place(query.sql, token.start)
        raise volatile_query(model=model.name, function=found, line=line)
