"""A batch: cells of one snapshot that are computed, audited and committed together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.content import Content, once_rounded
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.snapshots.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model


GAP = "gap"
"""The reason of a batch that fills cells which are not ready: no published history changes."""

PLANNED = "plan"
"""The reason of a batch in the workspace of a plan, which says why each of its cells is built."""

EMPTY = "empty"
"""The reason of a batch that records its cells as ready without a row, because a plan says so."""


RUNNING, COMMITTED, FAILED, ABANDONED = "running", "committed", "failed", "abandoned"
"""How a batch stands; an abandoned one had stopped without an end of its own."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The request of a batch to the state before it computes.

    Attributes:
        batch_id: derived from run, version and cells.
        environment: whose pointers it reads and moves.
        model: what it builds.
        version: the physical table that it writes.
        fingerprint: the snapshot that it runs.
        stretches: its cells, whole.
        cells: the same, cell by cell.
        reads: per upstream model, the cells that must be ready at the pin; one of which no cell is read
            is named, and pinned, all the same.
        source_pins: per source, the delta_version that was its head a moment ago.
        run_id: the Dagster run or CLI process that carries it.
        root_id: the root run or backfill, the same over re-executions.
        plan_id: the plan that it serves; None for a gap fill.
        reason: why it runs (``gap``, ``refresh``, ...).
        attempt: 1 for the first.
        slots: how many batches may be in flight beside it.
        resources: the Spark settings that it runs with, beside those of all batches.
        who: the person or the automation whose run it is; empty where that is not known.
        seen: the pin of its table when the work was decided: what was committed to its cells since is
            this work, done by another run. None where the work was not decided on a pin.
    """

    batch_id: str
    environment: str
    model: str
    version: str
    fingerprint: str
    stretches: IntervalSet
    cells: tuple[Interval, ...]
    reads: Mapping[str, IntervalSet]
    source_pins: tuple[InputPin, ...]
    run_id: str
    root_id: str
    plan_id: str | None
    reason: str
    attempt: int
    slots: Slots = field(default_factory=Slots)
    resources: Mapping[str, str] = field(default_factory=dict[str, str])
    who: str = ""
    seen: int | None = None

    @property
    def interval(self) -> Interval:
        """From its first cell to its last: the interval of its query."""
        return self.stretches.span()


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch whose cells are claimed and whose inputs are pinned, before it computes."""

    request: BatchRequest
    built_at: int
    inputs: tuple[InputPin, ...]


@dataclass(frozen=True, slots=True)
class CommittedCell:
    """One cell that a commit made equal to its computed rows."""

    cell: Interval
    content: Content


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """The metadata of a commit, in Delta's `userMetadata`.

    Every field of the ready records can be read back from here, so the state can be rebuilt from
    the tables' own commits. `interval` reaches from its first cell to its last; cells of other batches may
    lie between. `emptied` are cells that the commit removed: they are not ready any more.
    `together` names every table that the commit's publication copies into: it counts in all or none.
    `exact` is False in the log of a release that made checksums of rounded floats (see `Checksum`).
    """

    batch_id: str
    environment: str
    model: str
    version: str
    fingerprint: str
    interval: Interval
    run_id: str
    root_id: str
    plan_id: str | None
    reason: str
    attempt: int
    built_at: int
    token: int
    started_at: datetime
    inputs: tuple[InputPin, ...]
    cells: tuple[CommittedCell, ...]
    audits: tuple[AuditResult, ...]
    emptied: IntervalSet = field(default_factory=IntervalSet.empty)
    together: tuple[str, ...] = ()
    exact: bool = True

    @classmethod
    def of(
        cls,
        opened: OpenBatch,
        token: int,
        started_at: datetime,
        profiles: Sequence[CellProfile],
        audits: tuple[AuditResult, ...],
    ) -> BatchCommit:
        """Say of an open batch what its commit publishes.

        Args:
            opened: the batch, with the pins of its inputs.
            token: of the lock that is held for the commit.
            started_at: when it began to compute (UTC).
            profiles: of its cells, as they were measured.
            audits: what its audits found.
        """
        request = opened.request
        return cls(
            batch_id=request.batch_id,
            environment=request.environment,
            model=request.model,
            version=request.version,
            fingerprint=request.fingerprint,
            interval=request.interval,
            run_id=request.run_id,
            root_id=request.root_id,
            plan_id=request.plan_id,
            reason=request.reason,
            attempt=request.attempt,
            built_at=opened.built_at,
            token=token,
            started_at=started_at,
            inputs=opened.inputs,
            cells=tuple(CommittedCell(profile.cell, profile.content) for profile in profiles),
            audits=audits,
        )

    @property
    def stretches(self) -> IntervalSet:
        """The cells that were computed: all but those that rows only moved to or from."""
        inside = self.interval.contains
        return IntervalSet.of(each.cell for each in self.cells if inside(each.cell))

    def to_json(self) -> str:
        """Write as the text of a commit's `userMetadata`."""
        return dumps(self)

    @staticmethod
    def from_json(text: str | None) -> BatchCommit | None:
        """Read a commit's `userMetadata`; None for a commit that is not a batch of ours."""
        if not text or not text.startswith('{"@":"BatchCommit"'):
            return None
        commit: BatchCommit = loads(text, _STORED)
        return commit if _EXACT in text else replace(commit, exact=False)

    def built_by(self, model: Model | None) -> BatchCommit:
        """Mark checksums that were made of rounded values, so that they equal no exact one.

        Args:
            model: has the types of the columns; None where it is not known: all count as rounded.
        """
        if self.exact:
            return self
        types = None if model is None else {column.name: column.dtype for column in model.schema}
        key = () if model is None else model.key

        def trusted(content: Content) -> Content:
            rounded = frozenset(content.columns) if types is None else once_rounded(types, key)
            is_key = types is None or not rounded.isdisjoint(key)
            return content.as_rounded(rounded, self.batch_id, key=is_key)

        cells = tuple(replace(cell, content=trusted(cell.content)) for cell in self.cells)
        return replace(self, cells=cells, exact=True)


_EXACT = '"exact":true'  # in a text within the JSON, its quotes would be escaped
_STORED = (
    BatchCommit, InputPin, CommittedCell, Interval, IntervalSet, Content, AuditResult, Severity,
)  # fmt: skip
