"""Notices to consumers: which events of a plan they are told of, in which words, and when it is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.durations import doubled
from backfill_assets.intervals.instants import minute_text
from backfill_assets.models.consumer import OnChange
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.models.consumer import Consumer
    from backfill_assets.snapshots.stored_plan import PlanEvent

TOLD = {
    PlanEventKind.NEEDED: "is needed for late data",
    PlanEventKind.BUILT: "is ready",
    PlanEventKind.INCOMPLETE: "is not completely built",
    PlanEventKind.STOPPED: "is stopped",
    PlanEventKind.STOPPED_NOW: "is stopped",
    PlanEventKind.APPROVED: "is approved",
    PlanEventKind.PROMOTED: "is published",
    PlanEventKind.ROLLED_BACK: "is rolled back",
    PlanEventKind.UNDONE: "is undone",
    PlanEventKind.ABANDONED: "is abandoned",
}
"""The events that consumers are told of, each with what is said of the plan."""

_FIRST, _LONGEST, _GIVEN_UP = timedelta(minutes=1), timedelta(hours=6), timedelta(days=3)


def told_consumers(consumers: Iterable[Consumer]) -> Iterator[tuple[str, str]]:
    """Give who is told of a change, over which channel, of those whom it touches."""
    for consumer in consumers:
        if consumer.on_change is not OnChange.NONE:
            for channel in consumer.channels:
                yield consumer.name, channel


def next_attempt(asked_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """Give when a notice is tried again (UTC): after 1, 2, 4 minutes, up to 6 hours; after 3 days never.

    Args:
        asked_at: when it was put into the outbox.
        attempts: how often it was tried, this time included.
        now: the instant.
    """
    if now - asked_at >= _GIVEN_UP:
        return None
    return now + doubled(_FIRST, attempts - 1, _LONGEST)


def notice_title(event: PlanEvent, environment: str) -> str:
    """Write the first line of a notice."""
    return f"Plan {event.plan_id} for {environment} {TOLD[PlanEventKind(event.event)]}"


def notice_text(
    event: PlanEvent, consumer: Consumer, changes: Iterable[str], report: str | None
) -> str:
    """Write a notice to a consumer.

    Args:
        event: what happened.
        consumer: who is told.
        changes: what it changes for the consumer, a sentence for each model.
        report: where the report of the plan lies; None as long as there is none.
    """
    why = f": {event.why}" if event.why else ""
    return "\n".join(
        (
            f"To {consumer.name} ({consumer.owner}).",
            f"{event.event.capitalize()} on {minute_text(event.at)} by {event.who or 'a run'}{why}.",
            *changes,
            *_asked(event, consumer),
            *((f"Report: {report}",) if report else ()),
        )
    )


def _asked(event: PlanEvent, consumer: Consumer) -> Iterator[str]:
    """Say what the consumer is asked for, and until when."""
    if event.event == PlanEventKind.NEEDED:
        yield f"Late data reaches further back than automatic refreshes do: backfill show {event.plan_id}"
    if event.event != PlanEventKind.BUILT:
        return
    command = f'backfill acknowledge {event.plan_id} "{consumer.name}"'
    if consumer.on_change is OnChange.ACK:
        yield f"It is not published before you acknowledge it: {command}"
    elif consumer.notice_days:
        until = event.at + timedelta(days=consumer.notice_days)
        yield f"It is not published before {minute_text(until)}, unless you acknowledge it: {command}"
    yield f'To object: {command} --object --reason "..."'
