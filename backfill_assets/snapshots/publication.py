"""Publications: pointers of an environment that move together, in one transaction.

Promotion, rollback and undo use this one mechanism. An intent is written first, so that another
process can finish the publication of a dead one. Then the tables' locks are taken, data is copied
where necessary, and all pointers move at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.snapshots.environment import Layer, Pointer
    from backfill_assets.snapshots.workspace import OwedCells

PROMOTED = "promoted"
"""The reason of a commit that copies a workspace's cells into a published table."""


class PublicationKind(StrEnum):
    """The operation that moves the pointers."""

    PROMOTE = "promote"
    ROLLBACK = "rollback"
    UNDO = "undo"


class IntentStatus(StrEnum):
    """Where an intent stands."""

    OPEN = "open"
    DONE = "done"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The durable intent to publish, written before any lock is taken.

    Attributes:
        plan_id: the plan that is promoted, rolled back or undone.
        environment: whose pointers will move.
        kind: which of the three.
        holder: the run that is at it; its heartbeat keeps the intent.
        versions: every table concerned: no other run commits there while the intent is open.
        steps: notes for the process that must finish it, as plain values.
        number: of the counter, drawn when it was begun: its id; 0 before.
        status: open until it is published or withdrawn.
        published: the number of its publication; None before.
        begun_at: when it was begun; None before.
        heartbeat_at: when its holder was last heard; None before.
    """

    plan_id: str
    environment: str
    kind: PublicationKind
    holder: str
    versions: tuple[str, ...]
    steps: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number: int = 0
    status: IntentStatus = IntentStatus.OPEN
    published: int | None = None
    begun_at: datetime | None = None
    heartbeat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Cells whose rows were copied into the published table, in the commit that the pointer names.

    Attributes:
        source: the table and pin that they were copied from: a workspace's, or an older pin of the
            published table itself. Its ready records describe the cells from now on.
        cells: which; None for every cell that the source itself holds.
    """

    source: Layer
    cells: IntervalSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One model's pointer, from now on.

    Attributes:
        pointer: the environment's pointer afterwards. At another table than before, that table's
            own cells at the pin are published; at the same one, only what `copies` names.
        old_version: the version that the environment must still read; empty for none.
        old_fingerprint: the snapshot that it must still run; empty for none.
        copies: what the commit at the pointer's pin copied into its table.
        emptied: cells that the same commit removed: they are not ready any more.
        stale_before: cells that were owed before; stored with the move, for a rollback or undo.
        owed: cells of the pointer's table to be marked owed: those that are wrong after a rollback or
            undo.
    """

    pointer: Pointer
    old_version: str = ""
    old_fingerprint: str = ""
    copies: tuple[Copy, ...] = ()
    emptied: IntervalSet = field(default_factory=IntervalSet.empty)
    stale_before: IntervalSet = field(default_factory=IntervalSet.empty)
    owed: IntervalSet = field(default_factory=IntervalSet.empty)

    @classmethod
    def of(cls, pointer: Pointer, at: Pointer | None, **rest: Any) -> Move:  # noqa: ANN401
        """Move from where the environment reads the model now; None where it reads none.

        Args:
            pointer: the environment's pointer afterwards.
            at: its pointer now.
            rest: the other attributes.
        """
        if at is None:
            return cls(pointer=pointer, **rest)
        return cls(pointer=pointer, old_version=at.version, old_fingerprint=at.fingerprint, **rest)

    @property
    def model(self) -> str:
        """Whose pointer moves."""
        return self.pointer.model

    @property
    def in_place(self) -> bool:
        """Whether the environment reads the same table as before."""
        return self.pointer.version == self.old_version


def gone_with(plan_id: str) -> str:
    """Say why a cell is owed whose inputs a publication has taken away."""
    return f"what it was computed from went with plan {plan_id}"


@dataclass(frozen=True, slots=True)
class TakenAway:
    """What a publication takes cells away from, and the tables that are computed from it.

    A batch that commits there after it was decided which cells are owed has read what goes.

    Attributes:
        models: those that lose cells.
        heads: of the tables, by version, when that was decided.
    """

    models: tuple[str, ...] = ()
    heads: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """All pointers of an intent, moved at once.

    Attributes:
        intent: the number of the open intent.
        holder: the run that holds it.
        plan_id: the plan.
        environment: whose pointers move.
        kind: promotion, rollback or undo.
        moves: the moves, a model at most once.
        removed: models that the environment does not run any more.
        who: the person or run.
        why: in words.
        seen: the counter when the remaining work was last checked.
        pins: the environment's pins then, by the table that each model was read from. Cells that read what other
            models published between then and the publication count as built then, so that the rule finds them.
        tables: the pins then of the moved tables, by version, layers included. A promotion is void if
            another environment publishes there meanwhile, under no lock of this publication.
        owed: cells that stay published, and were computed from cells that the publication takes away.
        taken: where such cells may come between that decision and the publication.
        carried: cells that were carried over or back, as ranges, by model: the plan's history names them.
        approvals: why each approval of the plan does not count, by the SHA-256 of its text; empty where
            it does. The plan's history keeps it: once the plan has ended, it can't be judged any more.
        promise: how long the way back is kept open.
    """

    intent: int
    holder: str
    plan_id: str
    environment: str
    kind: PublicationKind
    moves: tuple[Move, ...]
    removed: tuple[str, ...] = ()
    who: str = ""
    why: str = ""
    seen: int = 0
    pins: Mapping[str, int] = field(default_factory=dict[str, int])
    tables: Mapping[str, int] = field(default_factory=dict[str, int])
    owed: tuple[OwedCells, ...] = ()
    taken: TakenAway = field(default_factory=TakenAway)
    carried: Mapping[str, str] = field(default_factory=dict[str, str])
    approvals: Mapping[str, str] = field(default_factory=dict[str, str])
    promise: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerMove:
    """One past move, as the history stores it.

    Attributes:
        number: of its publication: the counter's number that all moves of it share.
        environment: whose pointer moved.
        model: which.
        plan_id: the plan.
        kind: promotion, rollback or undo.
        at: when.
        who: by whom.
        why: in words.
        old: the pointer before, its pins as they were read then; None where there was none.
        new: the pointer since; None for a model that was removed.
        cells: those that it published anew.
        changed: those of them whose published content really became different.
        stale_before: cells that were owed before it; of an earlier release also those that were stale.
        promised_until: until when the way back is kept open; None of a publication of an earlier release.
    """

    number: int
    environment: str
    model: str
    plan_id: str
    kind: PublicationKind
    at: datetime
    who: str
    why: str
    old: Pointer | None
    new: Pointer | None
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    changed: IntervalSet = field(default_factory=IntervalSet.empty)
    stale_before: IntervalSet = field(default_factory=IntervalSet.empty)
    promised_until: datetime | None = None

    @property
    def in_place(self) -> bool:
        """Whether the environment read the same table before and after it."""
        return (
            self.old is not None and self.new is not None and self.old.version == self.new.version
        )

    @property
    def redefines(self) -> bool:
        """Whether the environment ran another definition before it, or none before or after."""
        return self.old is None or self.new is None or self.old.fingerprint != self.new.fingerprint

    @property
    def is_way_back(self) -> bool:
        """Whether it took back what a plan had changed."""
        return self.kind is not PublicationKind.PROMOTE

    def open_until(self, promise: timedelta) -> datetime:
        """Until when it can be taken back: as was promised, or longer where more is promised now."""
        return max(self.promised_until or self.at, self.at + promise)
