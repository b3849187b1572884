"""Notices: what a consumer is told of an event of a plan, over one channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice in the outbox.

    Attributes:
        plan_id: the plan.
        number: of its event.
        event: what happened.
        consumer: who is told; empty until it is known whom the event concerns.
        channel: where, by its name in the file of channels.
        asked_at: when the notice was put into the outbox (UTC).
        attempts: how often it was tried.
        next_at: when it is tried next (UTC); None: delivered, or given up.
        delivered_at: when it was delivered (UTC); None while it is not.
        error: why the last attempt failed; empty where none has.
    """

    plan_id: str
    number: int
    event: str
    consumer: str
    channel: str
    asked_at: datetime
    attempts: int = 0
    next_at: datetime | None = None
    delivered_at: datetime | None = None
    error: str = ""

    @property
    def given_up(self) -> bool:
        """Whether it was never delivered, and is not tried any more."""
        return self.delivered_at is None and self.next_at is None
