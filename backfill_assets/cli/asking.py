"""Ask a person once, naming the effect; a script says yes beforehand."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from backfill_assets.cli.output import err, say
from backfill_assets.errors import BackfillAssetsError

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask; what would be asked is still shown.")]


class NobodyToAskError(BackfillAssetsError):
    """A question would have to be asked, and there is no terminal to ask it on."""

    def __init__(self, effect: str) -> None:
        self.effect = effect
        super().__init__(
            f"this would {effect}, and there is no terminal to ask on; say --yes to go on without "
            "being asked"
        )


class DeclinedError(BackfillAssetsError):
    """The person said no."""

    def __init__(self) -> None:
        super().__init__("not confirmed: nothing was written")


def confirm(effect: str, *, yes: bool) -> None:
    """Go on only if a person, or a script beforehand, says yes.

    Args:
        effect: what will happen, as ``promote plan p1: 3 models of prod change``.
        yes: said beforehand.

    Raises:
        NobodyToAskError: nobody said yes, and nobody is there.
        DeclinedError: the person said no.
    """
    if yes:
        say(f"going on with --yes: {effect}", to=err)
        return
    if not sys.stdin.isatty():
        raise NobodyToAskError(effect)
    say(f"This will {effect}. Go on? [y/N]", to=err)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise DeclinedError
