"""Groups of a comparison that are no column: a period, or one SQL expression over a model's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from backfill_assets.errors import RequestError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.models.graph import close_to

if TYPE_CHECKING:
    from backfill_assets.models.model import Model

PERIODS = {"month": "yyyy-MM", "year": "yyyy"}
"""Of a cell's start, in its model's zone: the name, and how Spark writes it."""

_REFUSED = (
    exp.Query,
    exp.AggFunc,
    exp.Window,
    exp.Placeholder,
    exp.Star,
    exp.Rand,
    exp.Anonymous,
    exp.CurrentDate,
    exp.CurrentTimestamp,
)


def grouping_expression(model: Model, text: str) -> str:
    """Write Spark SQL for a group that is no column.

    Functions that Spark and the parser don't both know, clocks and random numbers are refused: both
    sides must be grouped alike.

    Args:
        model: whose rows are grouped.
        text: ``month`` or ``year``, of the cell, if it lies in time; or an expression such as ``month(order_date)``.

    Raises:
        RequestError: it is not one expression over the model's columns.
    """
    if text in PERIODS and model.cadence.unit is Unit.WHOLE:
        return f"'{model.cadence.key(WHOLE_CELL)}'"
    if text in PERIODS:
        cell = f"`{CELL_COLUMN}`"
        if model.cadence.unit.is_subday:
            cell = f"from_utc_timestamp({cell}, '{model.cadence.tz}')"
        return f"date_format({cell}, '{PERIODS[text]}')"
    parsed = _parsed(model, text)
    columns = [column.name for column in model.schema]
    lower_names = {name.lower() for name in columns} | {CELL_COLUMN}
    used = list(parsed.find_all(exp.Column))
    for column in used:
        if column.table or column.name.lower() not in lower_names:
            raise RequestError(
                found=f"--by {text!r}: {model.name} has no column '{column.sql()}'",
                do=close_to(column.name, [*columns, *PERIODS, "cell"]),
            )
    if not used:
        raise _unreadable(model, text)
    return parsed.sql(dialect="spark")


def _parsed(model: Model, text: str) -> exp.Condition:
    try:
        (parsed,) = sqlglot.parse(text, read="spark")
    except (SqlglotError, ValueError) as error:
        raise _unreadable(model, text) from error
    if not isinstance(parsed, exp.Condition) or parsed.find(*_REFUSED) is not None:
        raise _unreadable(model, text)
    if any(node.comments for node in parsed.walk()):
        raise _unreadable(model, text)
    return parsed


def _unreadable(model: Model, text: str) -> RequestError:
    return RequestError(
        found=f"--by {text!r} can't be read",
        expected=f"a column of {model.name}, {', '.join(PERIODS)}, cell, or one expression over its "
        "columns, such as month(order_date): no query, aggregate, clock or random number",
    )
