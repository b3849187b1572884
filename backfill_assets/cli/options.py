"""The options that several commands share, so that a word has the same meaning in all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.errors import RequestError

LARGEST = 2**31 - 1
"""The largest number of rows, or of batches, that every database can be asked for."""

PlanId = Annotated[
    str, typer.Argument(help="Plan id, its first characters, or a file of `plan --out`.")
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL",
        help="Models, all unless given: names, globs, +model, model+, tag:key=value, owner:name; repeatable, or with commas.",
    ),
]
Env = Annotated[str, typer.Option(metavar="NAME", help="The environment.")]
ForConsumer = Annotated[
    str | None,
    typer.Option(
        "--consumer", metavar="NAME", help="Use the data that `hold` keeps for this consumer."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write only JSON to stdout.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything, however long.")]
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
    bool, typer.Option("--markdown", help="Write only Markdown to stdout, for a pull request.")
]


def refuse_together(**asked: object) -> None:
    """Refuse options of which one would silence the other.

    Args:
        asked: what was asked, by the name of its option; None, False and an empty text are not asked.

    Raises:
        RequestError: two of them are asked.
    """
    named = [_written(name) for name, value in asked.items() if value]
    if named[1:]:
        raise RequestError(
            found=f"{' and '.join(named)} exclude each other, and were given together",
            do="give one of them",
        )


def refuse_without(needed: str, is_asked: object, **asked: object) -> None:
    """Refuse options that mean nothing without another one.

    Args:
        needed: the other option.
        is_asked: what was given for it.
        asked: as of `refuse_together`.

    Raises:
        RequestError: one of them is asked, and the other one is not.
    """
    named = [_written(name) for name, value in asked.items() if value]
    if named and not is_asked:
        raise RequestError(
            found=f"{' and '.join(named)} has no effect without {needed}", do=f"give {needed} too"
        )


def _written(name: str) -> str:
    return name if name.isupper() else f"--{name}"
