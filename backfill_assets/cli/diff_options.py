"""The options of `backfill diff`, and the question that they ask: groups, restrictions, tolerances."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.named_model import cells_named
from backfill_assets.errors import RequestError
from backfill_assets.models.column import (
    CELL_COLUMN,
    is_numeric,
    quoted,
    require_comparable,
    sql_literal,
)
from backfill_assets.models.graph import close_to
from backfill_assets.planning.review.grouping import grouping_expression
from backfill_assets.warehouse.compare.comparison_sql import BY_CELL, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.intervals.interval_set import IntervalSet as Cells
    from backfill_assets.models.model import Model

By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN|month|year|SQL",
        help="Group by this column or expression instead of by cell; `cell` groups by cell too. Repeatable.",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value. Repeatable."),
]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=NUMBER [where GROUP=VALUE]",
        help="Values that differ by at most NUMBER count as equal; GROUP is a group of --by. Repeatable.",
    ),
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Also distinct values, and p5, p50, p95 of numbers.")
]
Most = Annotated[
    str, typer.Option(metavar="COLUMN", help="Show the rows in which this number changes most.")
]

_CELL = "cell"
_WHERE = re.compile(r"\swhere\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The options of a comparison, as written.

    Attributes:
        by: columns, periods or expressions.
        keys: ``COLUMN=VALUE``.
        cells: a range of them.
        tolerances: ``COLUMN=NUMBER``, or ``COLUMN=NUMBER where GROUP=VALUE``.
        profile: whether distinct values and percentiles are wanted.
        most: the column by whose change the rows are ordered; empty for none.
    """

    by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    cells: str | None = None
    tolerances: tuple[str, ...] = ()
    profile: bool = False
    most: str = ""


def question(model: Model, options: DiffOptions, within: Cells | None) -> Question:
    """Read the question that the options ask of one model.

    Args:
        model: whose tables are compared.
        options: as written.
        within: the cells that are compared unless the options name others.

    Raises:
        RequestError: an option names no column, or can't be read.
        DeclarationError: it groups by values that Spark can't compare.
    """
    types = {column.name: column.dtype for column in model.schema}
    by, computed = _grouping(model, options.by)
    if options.cells is not None:
        within = cells_named(model.cadence, options.cells)
    if options.most:
        _number(model, options.most, f"--most {options.most}", types)
    read = [_tolerance(model, text, types) for text in options.tolerances]
    return Question(
        by=by,
        cells=within,
        where=_condition(options.keys, types, model.name),
        computed=computed,
        tolerances=tuple((column, number) for column, condition, number in read if not condition),
        own_tolerances=tuple(each for each in read if each[1]),
        profile=options.profile,
    )


def _grouping(
    model: Model, by: Iterable[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    columns = {column.name: column for column in model.schema}
    names: list[str] = []
    computed: list[tuple[str, str]] = []
    for text in by:
        name = CELL_COLUMN if text == _CELL else text
        names.append(name)
        if name in columns:
            require_comparable(model.name, [columns[name]], f"--by {text}")
        elif name != CELL_COLUMN:
            computed.append((name, grouping_expression(model, name)))
    return tuple(names) or BY_CELL, tuple(computed)


def _tolerance(model: Model, text: str, types: Mapping[str, str]) -> tuple[str, str, str]:
    """Read a column, the condition that its rows fulfil, and the tolerance; an empty condition is of all."""
    usual, *of = _WHERE.split(text, maxsplit=1)
    column, equals, number = (part.strip() for part in usual.partition("="))
    try:
        value = Decimal(number)
    except InvalidOperation:
        value = Decimal(-1)
    if not equals or not value.is_finite() or value < 0:
        raise RequestError(
            found=f"--tolerance {text!r} can't be read",
            expected="COLUMN=NUMBER, such as cost=0.01, or cost=0.5 where channel=email",
        )
    _number(model, column, f"--tolerance {text}", types)
    return column, _within(model, of[0], text) if of else "", format(value, "f")


def _within(model: Model, group: str, text: str) -> str:
    """Write the condition that a row belongs to a group, such as ``channel=email`` or ``month=2024-03``."""
    by, equals, value = (part.strip() for part in group.rpartition("="))
    if not equals or not by:
        raise RequestError(
            found=f"--tolerance {text!r}: {group!r} can't be read", expected="GROUP=VALUE"
        )
    (name,), computed = _grouping(model, [by])
    return _is_value(dict(computed).get(name, quoted(name)), value)


def _number(model: Model, column: str, option: str, types: Mapping[str, str]) -> None:
    if column not in types:
        raise RequestError(
            found=f"{option}: {model.name} has no column '{column}'", do=close_to(column, types)
        )
    if column in model.key or not is_numeric(types[column]):
        raise RequestError(
            found=f"{option}: {column} is {'of the key' if column in model.key else types[column]}",
            expected="a column of numbers outside of the key",
        )


def _condition(keys: Iterable[str], types: Mapping[str, str], model: str) -> str | None:
    parts: list[str] = []
    for key in keys:
        column, equals, value = key.partition("=")
        if not equals or column not in types:
            raise RequestError(
                found=f"--keys {key!r} can't be read: expected COLUMN=VALUE with a column of "
                f"{model}"
            )
        parts.append(_is_value(quoted(column), value))
    return " AND ".join(parts) or None


def _is_value(expression: str, value: str) -> str:
    return f"CAST({expression} AS STRING) = {sql_literal(value)}"
