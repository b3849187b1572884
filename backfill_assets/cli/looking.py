"""Write the result of a look at the sources, and the work that is left, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import err, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.fill.observing import SourceLook
    from backfill_assets.engine.fill.outstanding import Outstanding


def say_looked(looks: Iterable[SourceLook]) -> None:
    """Print the notes on the sources."""
    for look in looks:
        if look.note:
            say_note(look.note)


def say_note(note: str) -> None:
    """Print one note on a source."""
    say(note, to=err, indent=2)


def left_json(left: Outstanding) -> dict[str, Any]:
    """Give the work that is left as JSON values."""
    return {
        "missing": left.missing,
        "buildable": left.buildable,
        "awaits": dict(left.awaits),
        "stale": left.stale,
        "waits": dict(left.waits),
        "not_looked_at": list(left.unlooked),
    }
