"""A read-only view of the state for planning: ready cells per version, their stamps, and changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.batch import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import ChangedAt
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.cutoff import Cutoff
    from backfill_assets.snapshots.environment import Environment, Pointer

BUILT_ELSEWHERE = 0
"""When cells count as built that were computed from tables which are not read here: before all that they read."""

NEVER_READ = 2**62
"""When a content has changed for those who can't have read it: a number that no counter reaches."""


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """Consecutive ready cells that share one batch and the same stamps.

    Attributes:
        interval: the cells.
        built_at: the counter when the batch pinned its inputs.
        changed_at: when their content last changed.
        batch_id: the batch that built them.
        own: whether the environment's own table holds them; False for cells that it reads through
            another environment's pointer or from a table under its own.
        pinned_at: the counter when its batch pinned its sources, where that is another number than
            `built_at`: published cells count as built with their publication, but their sources were
            read before.
        replaces: of a workspace's own cells: the counter when the published cells that they would
            replace pinned their sources; None where no cell is published, or none is compared.
        unread: of a workspace's own cells: when their content last changed for cells that the
            environment has built: these have never read a content that differs from the published
            one. None where no cell is compared.
        bytes_per_second: the bytes that its batch wrote, per second of its cells; None if not recorded.
        began_at: when its batch began to compute (UTC): cells of sources that ended later it has not read,
            where it reads those that are over; None if not recorded.
        fingerprint: the definition that its batch ran; None if not recorded.
        reason: why its batch was opened; None if not recorded.
    """

    interval: Interval
    built_at: int
    changed_at: ChangedAt
    batch_id: str
    own: bool = True
    unread: ChangedAt | None = None
    pinned_at: int | None = None
    replaces: int | None = None
    bytes_per_second: float | None = None
    began_at: datetime | None = None
    fingerprint: str | None = None
    reason: str | None = None

    @property
    def sources_at(self) -> int:
        """The counter when it pinned its sources: a change of them that came later was not read."""
        return self.built_at if self.pinned_at is None else self.pinned_at

    def last_change(self, columns: frozenset[str] | None) -> int:
        """The counter when columns, or any, last changed for any reader, of the workspace or not."""
        changed = self.changed_at.latest(columns)
        return changed if self.unread is None else max(changed, self.unread.latest(columns))


@dataclass(frozen=True, slots=True)
class UpstreamChange:
    """Cells of an upstream that changed together; their readers are published together, or not at all.

    Of a source: the cells that its commits changed, where commits that concern one cell are one
    change. Of a model: the cells of one batch, or of one publication.

    Attributes:
        number: the counter when it became known: cells that were built before have not read it.
        cells: which cells of the upstream.
    """

    number: int
    cells: IntervalSet


@dataclass(frozen=True)
class ModelState:
    """The ready cells of one model at its environment's pin."""

    pointer: Pointer
    runs: tuple[ReadyRun, ...] = ()

    @cached_property
    def ready(self) -> IntervalSet:
        """Every interval that is ready at the pin."""
        return IntervalSet.of(run.interval for run in self.runs)

    def changes(self, columns: frozenset[str] | None) -> tuple[UpstreamChange, ...]:
        """Give the changes, as a reader of these columns sees them; None: of every column."""
        intervals: dict[int, list[Interval]] = {}
        for run in self.runs:
            intervals.setdefault(run.changed_at.latest(columns), []).append(run.interval)
        return tuple(UpstreamChange(at, IntervalSet.of(cells)) for at, cells in intervals.items())

    @cached_property
    def bytes_per_second(self) -> float:
        """How many bytes of files a second of its ready cells with rows holds; 0 where nothing is recorded.

        Cells that are recorded as empty don't count, as of a source.
        """
        lasting = [
            (run.bytes_per_second, run.interval.end - run.interval.start) for run in self.runs
        ]
        rates = [(rate, time.total_seconds()) for rate, time in lasting if rate]
        seconds = sum(each for _, each in rates)
        return sum(rate * each for rate, each in rates) / seconds if seconds else 0

    @cached_property
    def own(self) -> IntervalSet:
        """The ready intervals that the pointer's own table holds."""
        return IntervalSet.of(run.interval for run in self.runs if run.own)

    @property
    def built_elsewhere(self) -> IntervalSet:
        """The ready intervals that were computed from tables which are not read here."""
        return IntervalSet.of(run.interval for run in self.runs if run.built_at == BUILT_ELSEWHERE)

    @property
    def recorded_empty(self) -> IntervalSet:
        """The ready intervals that were recorded as empty, and not computed."""
        return IntervalSet.of(run.interval for run in self.runs if run.reason == EMPTY)

    def with_cells_of(self, other: ModelState, cells: IntervalSet) -> ModelState:
        """Give it with what another state of the same table holds in these cells, instead of what it holds there."""
        kept, taken = self.ready - cells, other.ready & cells
        return replace(self, runs=(*_within(self.runs, kept), *_within(other.runs, taken)))

    def as_read_elsewhere(self) -> ModelState:
        """Give it as an environment sees it that reads the table and does not write it."""
        return replace(self, runs=tuple(replace(run, own=False) for run in self.runs))


def _within(runs: tuple[ReadyRun, ...], cells: IntervalSet) -> Iterator[ReadyRun]:
    for run in runs:
        for interval in IntervalSet.of((run.interval,)) & cells:
            yield replace(run, interval=interval)


@dataclass(frozen=True)
class SourceState(ModelState):
    """The state of an observed source at its observed head, which is the pin of its readers.

    Its runs are cells that hold rows, or did once, with the stamp of their last change; 0 for cells
    of the first look.

    Attributes:
        emptied: cells that lost all their rows.
        known_changes: its changes as they were found, a cell in as many as concerned it. None: each
            cell is known by its last change alone.
        bytes: of its files; None where that is not recorded.
    """

    emptied: IntervalSet = field(default_factory=IntervalSet.empty)
    known_changes: tuple[UpstreamChange, ...] | None = None
    bytes: int | None = None

    def changes(self, columns: frozenset[str] | None) -> tuple[UpstreamChange, ...]:
        """Give the changes; where they are recorded, they count for every column that is read."""
        return super().changes(columns) if self.known_changes is None else self.known_changes

    @cached_property
    def bytes_per_second(self) -> float:
        """How many bytes of files a second of its cells with rows holds; 0 where nothing is recorded."""
        seconds = self.ready.seconds()
        return (self.bytes or 0) / seconds if seconds else 0

    @cached_property
    def ready(self) -> IntervalSet:
        """The cells that hold at least one row."""
        return IntervalSet.of(run.interval for run in self.runs) - self.emptied


@dataclass(frozen=True, slots=True)
class Owing:
    """Ready cells that were declared wrong together, and why.

    Attributes:
        cells: which, by the model's grid.
        reason: in words.
        plan_id: the plan that declared them wrong; None where no plan did.
    """

    cells: IntervalSet
    reason: str
    plan_id: str | None = None

    @property
    def words(self) -> str:
        """Name the plan and its reason."""
        named = self.plan_id is None or self.plan_id in self.reason
        return self.reason if named else f"plan {self.plan_id}: {self.reason}"


@dataclass(frozen=True)
class StateView:
    """The state of one environment at one instant, as plain values.

    Attributes:
        environment: whose.
        models: what is ready, by model.
        claimed: cells that live batches hold, by model.
        owed: ready cells that were declared wrong and not rebuilt yet, by model.
        owing: the same cells by who declared them wrong and why, by model; may lack what is not known.
        counter: the number that was drawn last: nothing in here is later.
        sources: the observed sources, which all environments share, by name.
        cutoffs: the cutoffs in force, by model.
        earlier: definitions by which ready cells were made that are kept in the table of another one, by
            fingerprint: such a cell is stale where what this definition reads has changed.
    """

    environment: Environment
    models: Mapping[str, ModelState] = field(default_factory=dict[str, ModelState])
    claimed: CellsByModel = field(default_factory=CellsByModel)
    owed: CellsByModel = field(default_factory=CellsByModel)
    owing: Mapping[str, tuple[Owing, ...]] = field(default_factory=dict[str, "tuple[Owing, ...]"])
    counter: int = 0
    sources: Mapping[str, SourceState] = field(default_factory=dict[str, SourceState])
    cutoffs: Mapping[str, Cutoff] = field(default_factory=dict[str, "Cutoff"])
    earlier: Mapping[str, Model] = field(default_factory=dict[str, "Model"])

    def ready(self, model: str) -> IntervalSet:
        """The ready intervals of a model; empty for one that has no pointer yet."""
        state = self.models.get(model)
        return IntervalSet.empty() if state is None else state.ready

    def kept(self, model: Model, cells: IntervalSet) -> IntervalSet:
        """Those of the cells that a cutoff keeps under the old definition: they are not built again."""
        cutoff = self.cutoffs.get(model.name)
        return IntervalSet.empty() if cutoff is None else cutoff.kept(model.cadence, cells)

    def definitions_of(
        self, model: Model, cells: IntervalSet
    ) -> Iterator[tuple[Model, IntervalSet]]:
        """Give the definitions that say what ready cells of a model read, each with the cells that it counts for.

        The one that runs counts for all of them, an earlier one for those that it has made.
        """
        yield model, cells
        state = self.models.get(model.name) if self.earlier else None
        made: dict[str, list[Interval]] = {}
        for run in state.runs if state else ():
            if run.fingerprint is not None and run.fingerprint in self.earlier:
                made.setdefault(run.fingerprint, []).append(run.interval)
        for fingerprint, intervals in made.items():
            yield self.earlier[fingerprint], IntervalSet.of(intervals) & cells

    def own(self, model: str) -> IntervalSet:
        """The ready intervals that the environment's own table holds."""
        state = self.models.get(model)
        return IntervalSet.empty() if state is None else state.own
