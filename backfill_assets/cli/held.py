"""Tell which consumers are held, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import err, say
from backfill_assets.render.holds import hold_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.snapshots.hold import Hold
    from backfill_assets.state.store import Store


def say_unheld(store: Store, consumer: str | None) -> None:
    """Say so where other consumers are held, and not the named one: its name may be misspelt."""
    held = [hold.consumer for hold in store.holds.all()]
    if consumer is not None and held and consumer not in held:
        text = f"consumer '{consumer}' is not held and reads what is published; held: {', '.join(held)}"
        say(text, to=err)


def say_holds(holds: Iterable[Hold], now: datetime) -> None:
    """Write a line for each hold; an overdue hold in red."""
    for hold in holds:
        say(hold_text(hold, now), indent=2, style="red" if hold.is_overdue(now) else None)


def of_hold(names: Iterable[str], hold: Hold | None) -> list[str]:
    """Give those of some models that an environment has: in a hold those that it keeps, in any other one all."""
    return [name for name in names if hold is None or name in hold.models]


def holds_json(holds: Iterable[Hold], now: datetime) -> list[dict[str, Any]]:
    """Describe holds for programs."""
    return [
        {
            "consumer": hold.consumer,
            "reads": hold.environment,
            "models": list(hold.models),
            "since": hold.held_at,
            "until": hold.until,
            "overdue": hold.is_overdue(now),
            "by": hold.who,
            "reason": hold.reason,
        }
        for hold in holds
    ]
