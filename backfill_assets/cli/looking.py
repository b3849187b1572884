"""What a look at the sources came to, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.cli.output import err, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.execution.observing import Looked


def say_looked(looks: Iterable[Looked]) -> None:
    """Tell what somebody should know of the sources."""
    for one in looks:
        if one.note:
            say(one.note, to=err, indent=2)
