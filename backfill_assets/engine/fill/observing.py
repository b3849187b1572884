"""Look at sources before anything is built or planned: which of their cells changed since the last look.

    head and id of the table -> the log's commits since -> where they can't tell, the rows themselves
    -> one transaction: stamps of the cells that changed, and the head that batches read from now on

Commits that concern a cell in common are one change, and bear one number; others are changes of their
own. What a change has overtaken is published at once or not at all (`planning.rule.late_work`).

The first look takes what it finds as it is. But what cells that are ready have read may be older:
each stretch between two of their pins is looked at, so that no late data of before is lost; and what
has read another table has read nothing of this one. A source that is cut into other cells than at the
last look is looked at for the first time again; one that only begins or ends elsewhere is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from backfill_assets.engine.project.at_work import AtWork, Phase
from backfill_assets.engine.project.batch_policy import USUAL_POLICY
from backfill_assets.errors import RequestError, one_line
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.observation import (
    BASELINE,
    UNREAD,
    ChangedCells,
    Observation,
    ObservedSource,
    SourceCell,
    made_anew,
)
from backfill_assets.snapshots.places import located
from backfill_assets.warehouse.files.table_size import bytes_in
from backfill_assets.warehouse.log.delta_log import CorruptTableError, head, opened_log, table_id
from backfill_assets.warehouse.sources.source_changes import (
    ConcernedCells,
    is_cut,
    life_of,
    present,
    touched,
)
from backfill_assets.warehouse.spark.spark_errors import (
    DamagedFileError,
    NeedsSparkError,
    PinGoneError,
    error_of_ours,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from backfill_assets.engine.project.batch_policy import BatchPolicy
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.source import Source
    from backfill_assets.state.store import Store

T = TypeVar("T")

_TRIES = 3


@dataclass(frozen=True, slots=True)
class SourceLook:
    """What a look at one source came to.

    Attributes:
        source: its name.
        changed: its cells that got, lost or changed rows since the last look.
        head: the delta_version up to which every change is known now; None for none.
        note: what people should know: a table made anew, commits that could not be judged.
        judged: False where rows would have to be looked at, and they could not be.
        counts: False where nothing that is ready can have been overtaken.
    """

    source: str
    changed: IntervalSet = field(default_factory=IntervalSet.empty)
    head: int | None = None
    note: str = ""
    judged: bool = True
    counts: bool = True


def sources_of(run: RunContext, models: Iterable[str]) -> tuple[Source, ...]:
    """Name the observed sources that some models read, each once."""
    declared_models = (run.graph.models[model] for model in models if model in run.graph.models)
    names = dict.fromkeys(upstream.name for model in declared_models for upstream in model.reads)
    sources = (run.graph.sources[name] for name in names if name in run.graph.sources)
    return tuple(source for source in sources if source.observed)


def observe(run: RunContext, models: Iterable[str]) -> tuple[SourceLook, ...]:
    """Look at the sources that some models read, before these are built.

    A source that can't be looked at keeps no batch from going on: its note says why.
    """
    return observe_sources(
        run.store,
        sources_of(run, models),
        run.data_root,
        run.spark,
        run.at_work,
        run.project.batch_policy,
    )


def observe_sources(
    store: Store,
    sources: Iterable[Source],
    data_root: str,
    spark: Callable[[], Any] | None,
    at_work: AtWork | None = None,
    policy: BatchPolicy = USUAL_POLICY,
) -> tuple[SourceLook, ...]:
    """Look at sources.

    Args:
        store: the state.
        sources: which; those that can't be observed are left out.
        data_root: folder or URI under which tables lie.
        spark: gives the session, started only where rows must be looked at; None: never, the rows
            of the files that came and went are read as far as that needs no Spark.
        at_work: where it is told which source is looked at.
        policy: how often Spark is asked for rows that it has failed to give, each time in the session that
            there is by then.

    Returns:
        What was found, of each source that has moved or that something must be said of.
    """
    looks = [
        _Looking(store, source, located(source.path, data_root), spark, policy)
        for source in sources
        if source.observed
    ]
    taken: list[SourceLook | None] = []
    with (at_work or AtWork()).at(Phase.LOOKING, of=len(looks)) as step:
        for look in looks:
            step.next(look.source.name)
            taken.append(look.taken())
    return tuple(source_look for source_look in taken if source_look is not None)


class _UnjudgedError(Exception):
    """Only rows can tell what changed, and Spark may not be started."""


@dataclass(frozen=True, slots=True)
class _Between:
    """What happened between two delta_versions of a source.

    Attributes:
        cells: those that changed, as they are now.
        same: those that were read and hold what they held.
        log: what its log says, commit by commit.
    """

    cells: Mapping[Interval, SourceCell]
    same: tuple[SourceCell, ...] = ()
    log: ConcernedCells = field(default_factory=ConcernedCells)


_UNREADABLE = (PinGoneError, DamagedFileError, CorruptTableError)
"""How the reading of an older version of a source ends where that was vacuumed."""


@dataclass(frozen=True, slots=True)
class _Looking:
    """One look at one source."""

    store: Store
    source: Source
    path: str
    spark: Callable[[], Any] | None
    policy: BatchPolicy

    def taken(self) -> SourceLook | None:
        """Look, and write what was found; None where nothing has moved."""
        try:
            return self._taken()
        except _UnjudgedError:
            return self._unjudged()
        except Exception as error:  # noqa: BLE001 - whatever it is, other sources are looked at
            reason = one_line(error_of_ours(error))
            note = f"source '{self.source.name}' was not looked at: {reason}"
            return SourceLook(self.source.name, note=note, judged=False)

    def _taken(self) -> SourceLook | None:
        for _ in range(_TRIES):
            before = self.store.sources.observed().get(self.source.name)
            current = self._found(before)
            if current is None:
                return self._gone() if before is not None else None
            if _is_same(before, current):
                return None
            seen, note = self._seen(before, current)
            size = bytes_in(self.path, current.head)  # counted once the look has come to an end
            seen = replace(seen, found=replace(seen.found, bytes=size))
            if self.store.sources.observe(seen):
                changed = IntervalSet.of(
                    source_cell.cell
                    for change in seen.changes
                    if change.changed_at != BASELINE
                    for source_cell in change.cells
                )
                return SourceLook(self.source.name, changed, current.head, note)
        return None  # others look at it all the time

    def _found(self, before: ObservedSource | None) -> ObservedSource | None:
        now, place = head(self.path), self.store.place(self.path)
        if now < 0:
            return None
        own_id = table_id(self.path)
        if not own_id and before is not None and before.path == place and before.head <= now:
            own_id = before.table_id  # a table that was made anew would have its first commit
        if not own_id:
            own_id = str(opened_log(self.path).metadata().id)
        return ObservedSource(self.source.name, place, own_id, _declared(self.source), now)

    def _seen(
        self, before: ObservedSource | None, current: ObservedSource
    ) -> tuple[Observation, str]:
        if before is None:
            return self._first(before, current), ""
        because, note = made_anew(before, current), ""
        if because:
            error = RequestError(
                found=f"the table of source '{self.source.name}' at {self.path} was recreated: "
                f"{because}. Every cell whose rows can't be proved to be the same counts as "
                "changed"
            )
            note = str(error)
        if _cut_by(before.declared) != _cut_by(current.declared):
            return self._first(before, current), note
        look = self._anew if because else self._moved
        return look(before, current), note

    def _gone(self) -> SourceLook:
        note = (
            f"the table of source '{self.source.name}' was at {self.path} and is missing now; restore it, "
            "or correct the path in its declaration"
        )
        return SourceLook(self.source.name, note=note, judged=False)

    def _unjudged(self) -> SourceLook | None:
        before = self.store.sources.observed().get(self.source.name)
        if before is None:  # nothing was built that it could have overtaken; a run looks first
            current = self._found(before)
            read = current is not None and self.store.sources.source_pins(None, current)
            return SourceLook(self.source.name, judged=False, counts=bool(read))
        since = f"since its delta_version {before.head}"
        note = (
            f"source '{self.source.name}' has commits {since} whose changes can't be found without Spark; "
            "`backfill plan`, the next run, or its observation in Dagster reads the rows"
        )
        return SourceLook(self.source.name, head=before.head, note=note, judged=False)

    # The three ways to look

    def _first(self, before: ObservedSource | None, current: ObservedSource) -> Observation:
        """Take what is there; what ready cells have read of before is looked at stretch by stretch."""
        cells_there = self._present(current.head)
        read = {pin.delta_version: pin for pin in self.store.sources.source_pins(before, current)}
        late: dict[Interval, int] = {}
        for since, until in pairwise([*read, current.head] if read else []):
            if since == UNREAD:
                cells = self._every_cell(cells_there, read[UNREAD].cells)
            else:
                cells = self._between(since, until, cells_there).cells
            late |= dict.fromkeys(cells, since)
        baseline = tuple(
            source_cell for cell, source_cell in cells_there.items() if cell not in late
        )
        changes = [ChangedCells(baseline, BASELINE)]
        for since in sorted(set(late.values())):
            cells = (cell for cell, at in late.items() if at == since)
            gone_or_there = (cells_there.get(cell, SourceCell(cell, 0)) for cell in cells)
            changes.append(ChangedCells(tuple(gone_or_there), since=since))
        return Observation(current, before, tuple(changes), anew=True, pins=frozenset(read))

    def _moved(self, before: ObservedSource, current: ObservedSource) -> Observation:
        """Look at what came since the last look."""
        stored, forgotten = self._known()
        seen = self._between(before.head, current.head, stored)
        changed = dict(seen.cells)
        if before.declared != current.declared:  # rows may be readable only now
            there = self._present(current.head).items()
            changed |= {cell: source_cell for cell, source_cell in there if cell not in stored}
        changes = (
            ChangedCells(
                tuple(source_cell for cell, source_cell in changed.items() if cell in part)
            )
            for part in seen.log.parts(IntervalSet.of(changed))
        )
        return Observation(current, before, tuple(changes), seen.same, forgotten)

    def _anew(self, before: ObservedSource, current: ObservedSource) -> Observation:
        """Compare every cell of a table that was made anew with what is known of the old one."""
        everything = life_of(self.source)
        stored, forgotten = self._known()
        (now,) = self._asked(_spark_side().content_by_cell, (current.head,), everything)
        changed, same = _against_known(stored, now, everything)
        changes = (ChangedCells(tuple(changed.values())),)
        return Observation(current, before, changes, same, forgotten)

    # What they have in common

    def _known(self) -> tuple[dict[Interval, SourceCell], tuple[Interval, ...]]:
        """Read the cells that are known, and which of them the source does not declare any more."""
        life, known = life_of(self.source), self.store.sources.source_cells(self.source.name)
        forgotten = tuple(cell for cell in known if cell not in life)
        return {cell: known[cell] for cell in known if cell in life}, forgotten

    def _every_cell(self, there: Iterable[Interval], built: IntervalSet) -> Iterable[Interval]:
        """Give the cells that another table may have held otherwise, as far as any are known, or built of them."""
        life = life_of(self.source)
        if not is_cut(self.source):
            return life
        known = IntervalSet.of([*there, *self.store.sources.source_cells(self.source.name)])
        known |= self.source.cadence.snap_out(built & life)
        return self.source.cadence.cells((known | known.between()) & life)

    def _present(self, at: int) -> dict[Interval, SourceCell]:
        """Count the rows of every cell at one delta_version."""
        counted = present(self.path, self.source, at)
        cells = {cell: SourceCell(cell, rows) for cell, rows in counted.changed.items() if rows}
        if counted.unsure:
            cells |= self._asked(_spark_side().rows_by_cell, at, counted.unsure)
        return cells

    def _between(self, since: int, until: int, stored: Mapping[Interval, SourceCell]) -> _Between:
        """Look at what happened between two delta_versions."""
        if since == until:
            return _Between({})
        log = touched(self.path, self.source, since, until)
        changed = {
            cell: SourceCell(cell, max(_rows(stored, cell) + more, 0))
            for cell, more in log.changed.items()
        }
        if not log.unsure:
            return _Between(changed, log=log)
        looked, same = self._compared(since, until, stored, log.unsure)
        return _Between({**changed, **looked}, same, log)

    def _compared(
        self, since: int, until: int, stored: Mapping[Interval, SourceCell], cells: IntervalSet
    ) -> tuple[dict[Interval, SourceCell], tuple[SourceCell, ...]]:
        if self.spark is None:
            return self._compared_by_files(since, until, stored, cells), ()
        content_by_cell = _spark_side().content_by_cell
        try:
            both = self._asked(content_by_cell, (since, until), cells)
        except _UNREADABLE:  # what it held is not known
            (now,) = self._asked(content_by_cell, (until,), cells)
            return _against_known(stored, now, cells)
        before, now = both
        changed = {
            cell: now.get(cell, SourceCell(cell, 0))
            for cell in before.keys() | now.keys()
            if before.get(cell) != now.get(cell)
        }
        alike = IntervalSet.of(
            cell
            for cell, source_cell in changed.items()
            if cell in before and before[cell].rows == source_cell.rows
        )
        if alike:
            columns = self._asked(_spark_side().columns_by_cell, (since, until), alike)
            changed |= {
                cell: replace(changed[cell], changed=named) for cell, named in columns.items()
            }
        return changed, tuple(
            source_cell for cell, source_cell in now.items() if cell not in changed
        )

    def _compared_by_files(
        self, since: int, until: int, stored: Mapping[Interval, SourceCell], cells: IntervalSet
    ) -> dict[Interval, SourceCell]:
        """Compare the rows of the files that came and went; what the cells hold is not remembered."""
        from backfill_assets.warehouse.sources.file_rows import changed_rows  # noqa: PLC0415 - it imports pandas

        try:
            changes = changed_rows(self.path, self.source, since, until, cells)
        except NeedsSparkError as error:
            raise _UnjudgedError(str(error)) from error
        return {
            cell: SourceCell(
                cell, max(_rows(stored, cell) + change.more, 0), changed=change.columns
            )
            for cell, change in changes.items()
        }

    def _asked(self, question: Callable[..., T], *about: object) -> T:
        """Ask Spark for rows, and again after a transient failure: the session is another one where it was lost."""
        if (spark := self.spark) is None:
            raise _UnjudgedError
        from backfill_assets.engine.batch.retrying import patiently  # noqa: PLC0415 - it imports Spark

        def once() -> T:
            return question(spark(), self.path, self.source, *about)

        return patiently(self.policy, once)


def _is_same(before: ObservedSource | None, current: ObservedSource) -> bool:
    """Whether a source is as it was looked at last, and the bytes of its files are known."""
    if before is None or before.bytes is None:
        return False
    return replace(before, observed_at=None, bytes=None) == current


def _against_known(
    stored: Mapping[Interval, SourceCell], now: Mapping[Interval, SourceCell], cells: IntervalSet
) -> tuple[dict[Interval, SourceCell], tuple[SourceCell, ...]]:
    """Let every cell count as changed whose rows are not known to be the same."""
    same = {
        cell: source_cell
        for cell, source_cell in now.items()
        if cell in stored and stored[cell].content == source_cell.content
    }
    emptied = [cell for cell in stored if cell in cells and cell not in now and stored[cell].rows]
    changed = {cell: source_cell for cell, source_cell in now.items() if cell not in same}
    return {**changed, **{cell: SourceCell(cell, 0) for cell in emptied}}, tuple(same.values())


def _rows(stored: Mapping[Interval, SourceCell], cell: Interval) -> int:
    return stored[cell].rows if cell in stored else 0


def _declared(source: Source) -> str:
    """Write what the source's cells are cut by: another grid means other cells."""
    cadence = source.cadence
    life = "..".join("" if at is None else at.isoformat() for at in (cadence.start, cadence.end))
    return f"{cadence.unit.name} {cadence.tz} {life} {source.time_column or ''}"


def _cut_by(declared: str) -> tuple[str, ...]:
    """Give the part of it that says which cells there are, without where the first and the last lie."""
    unit, tz, _, time_column = declared.split(" ", 3)
    return unit, tz, time_column


def _spark_side() -> ModuleType:
    """Import what needs Spark: this takes half a second, and most looks don't need it."""
    from backfill_assets.warehouse.sources import source_content  # noqa: PLC0415

    return source_content
