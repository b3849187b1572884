"""What a look at the sources came to, and what is left, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import err, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.execution.observing import Looked
    from backfill_assets.execution.outstanding import Outstanding


def say_looked(looks: Iterable[Looked]) -> None:
    """Tell what somebody should know of the sources."""
    for one in looks:
        if one.note:
            say_note(one.note)


def say_note(note: str) -> None:
    """Tell one thing that people must know of a source."""
    say(note, to=err, indent=2)


def left_json(left: Outstanding) -> dict[str, Any]:
    """Give what is left as JSON has it."""
    return {
        "missing": left.missing,
        "stale": left.stale,
        "waits": dict(left.waits),
        "not_looked_at": list(left.unlooked),
    }
