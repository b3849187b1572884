"""What consumers have answered to a plan, and what a promotion still awaits of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.models.consumer import OnChange
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from backfill_assets.models.consumer import Consumer
    from backfill_assets.snapshots.stored_plan import PlanEvent


@dataclass(frozen=True, slots=True)
class Answer:
    """What a consumer has said of a plan as it was built.

    Attributes:
        consumer: its name.
        who: said it.
        at: when (UTC).
        agrees: whether it acknowledges the change; an objection does not.
        reason: in words.
    """

    consumer: str
    who: str
    at: datetime
    agrees: bool
    reason: str = ""

    @property
    def words(self) -> str:
        """The answer as a sentence without its end."""
        verb = "acknowledged" if self.agrees else "objected"
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.consumer} {verb} by {self.who} on {minute_text(self.at)}{reason}"


def built_at(events: Iterable[PlanEvent]) -> datetime | None:
    """Give when a plan was built last (UTC): its notice periods count from then; None while it is not."""
    return max((event.at for event in events if event.event == PlanEventKind.BUILT), default=None)


def told_answers(events: Sequence[PlanEvent]) -> tuple[Answer, ...]:
    """Read the answers from a plan's history; those to an earlier build of it do not count."""
    built = max((event.number for event in events if event.event == PlanEventKind.BUILT), default=0)
    return tuple(
        Answer(
            event.detail["consumer"],
            event.who,
            event.at,
            event.event == PlanEventKind.ACKNOWLEDGED,
            event.why,
        )
        for event in events
        if event.number > built
        and event.event in {PlanEventKind.ACKNOWLEDGED, PlanEventKind.OBJECTED}
    )


def awaited(
    touched: Iterable[Consumer],
    answers: Iterable[Answer],
    built: datetime | None,
    now: datetime,
) -> dict[str, str]:
    """Say what a promotion still awaits, a clause for each consumer; empty: nothing.

    The last answer of a consumer counts. An acknowledgement ends its notice period.

    Args:
        touched: the consumers that read something that changes.
        answers: what was answered to the plan as it is built, the earliest first.
        built: when it was built.
        now: the instant (UTC).
    """
    last = {answer.consumer: answer for answer in answers}
    clauses = {
        consumer.name: _awaited(consumer, last.get(consumer.name), built or now, now)
        for consumer in touched
    }
    return {name: clause for name, clause in clauses.items() if clause}


def _awaited(consumer: Consumer, answer: Answer | None, built: datetime, now: datetime) -> str:
    if answer is not None:
        return "" if answer.agrees else answer.words
    who = f"{consumer.name} ({consumer.owner})"
    until = built + timedelta(days=consumer.notice_days)
    if consumer.on_change is OnChange.ACK:
        return f"{who} has not acknowledged"
    return f"the notice period of {who} ends on {minute_text(until)}" if now < until else ""
