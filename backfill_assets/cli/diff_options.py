"""The options of `backfill diff` beyond what is compared."""

from __future__ import annotations

from typing import Annotated

import typer

By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN|month|year|SQL",
        help="Group by it instead of by cell; `cell` is one too. Repeatable.",
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
        help="Values that differ by no more count as equal; GROUP is one as of --by. Repeatable.",
    ),
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Also distinct values, and p5, p50, p95 of numbers.")
]
Most = Annotated[
    str, typer.Option(metavar="COLUMN", help="Show the rows in which this number changes most.")
]
