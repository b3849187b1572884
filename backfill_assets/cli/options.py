"""The options that several commands share, so that one word means one thing in all of them."""

from __future__ import annotations

from typing import Annotated

import typer

PlanId = Annotated[str, typer.Argument(help="Its id; the beginning will do.")]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL",
        help="These, all unless given: names, globs, +model, model+, tag:key=value, owner:name; repeatable, or with commas.",
    ),
]
Env = Annotated[str, typer.Option(metavar="NAME", help="The environment.")]
ForConsumer = Annotated[
    str | None,
    typer.Option(
        "--consumer", metavar="NAME", help="What this consumer reads: what `hold` keeps for it."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, alone, on stdout.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Everything, however long.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="INSTANT",
        help="Plan as of this instant, with offset, instead of the clock's.",
    ),
]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Write Markdown, alone, on stdout: for a pull request.")
]
