"""Plans as the state keeps them: the text that was shown, the status, and the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime


class PlanStatus(StrEnum):
    """The status of a plan; whether it is expired follows from its date."""

    PROPOSED = "proposed"
    APPLYING = "applying"
    BUILT = "built"
    PROMOTED = "promoted"
    ROLLED_BACK = "rolled back"
    UNDONE = "undone"
    ABANDONED = "abandoned"


OPEN = (PlanStatus.APPLYING, PlanStatus.BUILT)
"""A plan that is being applied, or is built; it may not have a workspace yet."""

NOT_ENDED = (PlanStatus.PROPOSED, *OPEN)
"""A plan of which more may come."""

ENDS = (PlanStatus.PROMOTED, PlanStatus.ROLLED_BACK, PlanStatus.UNDONE, PlanStatus.ABANDONED)
"""The ends of a plan: each of them leaves evidence."""


class PlanEventKind(StrEnum):
    """What can happen to a plan; its history names them. A history of an earlier release may name others."""

    NEEDED = "needed"
    """It was made for late data that reaches beyond a late window."""
    APPLYING = "applying"
    QUEUED = "queued"
    FILLED = "filled"
    """Its gaps are filled."""
    BUILT = "built"
    INCOMPLETE = "incomplete"
    """An apply ended, and cells are left."""
    CANARIES = "canaries"
    CANARIES_COMPARED = "canaries compared"
    MEASURED = "measured"
    """What an apply took is kept beside its estimate."""
    COMPARED = "compared"
    """Its dual run was compared."""
    KEPT_ROWS = "kept rows"
    """A batch carried or dropped rows that only history has."""
    AUDITED = "audited"
    """Audits that it changes were run on cells that it keeps."""
    APPROVED = "approved"
    ACKNOWLEDGED = "acknowledged"
    OBJECTED = "objected"
    ACCEPTED = "accepted"
    """A person accepted a difference that a check has found."""
    PAUSED = "paused"
    STOPPED = "stopped"
    STOPPED_NOW = "stopped now"
    RESUMED = "resumed"
    APPENDED = "appended"
    """Cells that were published while it waited were computed with its logic."""
    PROMOTED = "promoted"
    ROLLED_BACK = "rolled back"
    UNDONE = "undone"
    CARRIED_BACK = "carried back"
    """Cells that were published since were computed with the logic before it."""
    TAKEN_BACK = "taken back"
    """Its copies into published tables belong to no publication that the state knows."""
    APPOINTED = "appointed"
    APPOINTMENT_ENDED = "appointment ended"
    WATCH = "watch"
    LOOKED = "looked"
    WATCH_ENDED = "watch ended"
    ABANDONED = "abandoned"
    DROPPED = "environment dropped"
    """The environment that it had changed was dropped; another one may have its name since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """One plan.

    Attributes:
        plan_id: its id.
        environment: whose history it changes.
        status: where its life stands.
        content: the whole plan as canonical JSON; the state does not look inside.
        content_hash: of that text, as planning defines it.
        created_at: when it was made.
        created_by: who asked for it.
        reason: why.
        expires_at: after that it can't be applied any more.
        cells: what it may rewrite, by model: for the history, and for conflicts.
    """

    plan_id: str
    environment: str
    status: PlanStatus
    content: str
    content_hash: str
    created_at: datetime
    created_by: str
    reason: str
    expires_at: datetime
    cells: CellsByModel = field(default_factory=CellsByModel)

    def has_expired(self, now: datetime) -> bool:
        """Whether it is a proposal that is too old to be applied; a plan that was begun does not expire."""
        return self.status is PlanStatus.PROPOSED and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """One thing that happened to a plan; never changed, never removed.

    Attributes:
        plan_id: whose.
        number: 1 for the plan's first.
        at: when.
        event: what: the value of a `PlanEventKind`, or a word of an earlier release.
        who: the person or run.
        why: in words; empty where no reason was given.
        detail: more, as plain values.
    """

    plan_id: str
    number: int
    at: datetime
    event: str
    who: str
    why: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


def dropped_at(events: Iterable[PlanEvent]) -> datetime | None:
    """Say when the environment that a plan had changed was dropped; None while it is there."""
    return next((event.at for event in events if event.event == PlanEventKind.DROPPED), None)


def promotion_of(events: Iterable[PlanEvent]) -> PlanEvent | None:
    """Find a plan's last promotion in its history."""
    done = [event for event in events if event.event == PlanEventKind.PROMOTED]
    return done[-1] if done else None
