"""Ask a person to confirm an effect once; a script confirms it beforehand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from backfill_assets.cli.output import err, say
from backfill_assets.errors import RequestError

Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation prompt; print it only.")]


def confirm(effect: str, *, yes: bool) -> None:
    """Continue only if a person, or a script beforehand, confirms.

    Args:
        effect: what will happen, as ``promote plan p1: 3 models of prod change``.
        yes: whether it was confirmed beforehand.

    Raises:
        RequestError: it was not confirmed, and there is no terminal.
        RequestError: the person declined.
    """
    if yes:
        say(f"continuing with --yes: {effect}", to=err)
        return
    if not sys.stdin.isatty():
        raise RequestError(
            found=f"this would {effect}, and there is no terminal to ask on",
            do="give --yes to continue without being asked",
        )
    say(f"This will {effect}. Continue? [y/N]", to=err)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RequestError(
            found="not confirmed: nothing was written",
            do="run the command again and answer y, or give --yes",
        )
