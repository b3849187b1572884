"""The rules for a declared cadence: when its history may start, and that its cron ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.cron import cron_of
from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence


def require_cadence(name: str, cadence: Cadence) -> None:
    """Refuse a cadence on which cells would be missed, or never be due.

    Args:
        name: the model or source that declares it, in words.
        cadence: as declared.

    Raises:
        DeclarationError: it starts before 1970: what a table that is one cell reads, and what is looked at for late
            rows, begins there.
        DeclarationError: its cron never ticks, or at random times.
    """
    first = cadence.ceil(WHOLE_CELL.start)
    if cadence.start is not None and cadence.start < first:
        raise DeclarationError(
            found=f"{name} starts at {minute_text(cadence.start)}",
            expected=f"a start from {minute_text(first)} on: late rows of earlier cells would not be noticed",
        )
    if cadence.cron is not None and not cron_of(cadence.cron, cadence.cron_tz or cadence.tz).ticks:
        raise DeclarationError(
            found=f"{name} has the cron {cadence.cron!r}, which never ticks, or at random times",
            expected="one that ticks at fixed times, such as '0 5 * * *'",
        )
