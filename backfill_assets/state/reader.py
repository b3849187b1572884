"""Read the state: what is known of every environment, table, cell and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.state import (
    audits,
    batch_rows,
    batches,
    claims,
    counter,
    environments,
    layers,
    locks,
    overtaking,
    owed,
    pointers,
    ready,
    snapshots,
    sources,
    versions,
    views,
)
from backfill_assets.state.plan_reader import PlanReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.failed_batch import FailedBatch
    from backfill_assets.snapshots.observation import ObservedSource, SourceCell, SourcePin
    from backfill_assets.snapshots.ready import InputPin, ReadyRecord
    from backfill_assets.snapshots.state_view import StateView
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.environments import Finalized
    from backfill_assets.state.layers import PublishedModel
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.state.ready import Builder
    from backfill_assets.state.snapshots import StoredSnapshot


class StateReader(PlanReader):
    """The questions that a store answers; each is one read transaction."""

    def environment(self, name: str) -> Environment:
        """Read an environment; `UnknownEnvironmentError` lists those that exist."""
        return self._database.read(lambda found: environments.environment(found, name))

    def environments(self) -> list[Environment]:
        """Read all environments by name, the workspaces of plans included."""
        return self._database.read(environments.environments)

    def finalized(self, environment: str) -> Finalized | None:
        """Read what was last published in an environment; None where nothing was."""
        return self._database.read(lambda found: environments.finalized(found, environment))

    def snapshot(self, fingerprint_id: str) -> StoredSnapshot:
        """Read a snapshot; `UnknownSnapshotError` when it was never saved."""
        return self._database.read(lambda found: snapshots.snapshot(found, fingerprint_id))

    def snapshot_definition(self, fingerprint_id: str) -> str:
        """Read the model of a snapshot as text; `UnknownSnapshotError` when it was never saved."""
        return self.snapshot(fingerprint_id).definition

    def published(self, environment: str) -> tuple[int, dict[str, PublishedModel]]:
        """Read the counter, and all that reading each model of an environment takes, at one moment.

        Raises:
            UnknownEnvironmentError: there is none of this name.
        """
        return self._database.read(
            lambda found: (counter.last_number(found), layers.published(found, environment))
        )

    def pointers(self, environment: str) -> dict[str, Pointer]:
        """Read where an environment reads each model: its own pointers, else those it follows.

        `Pointer.environment` says whose each is. Pins of the tables under another are those that
        the environments which read them have now.
        """
        return self._database.read(lambda found: pointers.pointers(found, environment))

    def own_pointers(self, environment: str) -> dict[str, Pointer]:
        """Read the pointers that are an environment's own, by model, as they are stored."""
        return self._database.read(lambda found: pointers.own_pointers(found, environment))

    def owner(self, version: str) -> str | None:
        """Read which environment alone writes a version; None: whoever opens it next.

        Raises:
            UnknownVersionError: there is none.
        """
        return self._database.read(lambda found: versions.owner(found, version))

    def version_path(self, version: str) -> str:
        """Read where a version's table lies; `UnknownVersionError` when there is none."""
        return self.located(self._database.read(lambda found: versions.place(found, version)))

    def known_head(self, version: str) -> int:
        """Read the last delta_version that the state accounts for; -1 before the first commit."""
        return self._database.read(lambda found: versions.known_head(found, version))

    def check_claims(self, batch_id: str) -> None:
        """Make sure, with the commit lock in hand, that a batch still holds its cells.

        Raises:
            LostClaimError: it was silent for longer than the lease and another took them.
        """
        self._database.read(lambda found: claims.check_claims(found, batch_id))

    def check_lock(self, lock: CommitLock) -> None:
        """Make sure that a lock is still ours; `LostLeaseError` when it is not."""
        self._database.read(lambda found: locks.check_lock(found, lock))

    def view(self, environment: str, *, only: Collection[str] | None = None) -> StateView:
        """Draw the picture of an environment that planning works on.

        Of a workspace's own cells, `changed_at` is told against what the environment that it follows
        publishes now.

        Args:
            environment: whose picture.
            only: the models that it shows; None for all.
        """
        heard_after = self._clock() - self._lease
        return self._database.read(
            lambda found: views.view(found, environment, heard_after, only=only)
        )

    def view_with(self, environment: str, instead: Mapping[str, Pointer | None]) -> StateView:
        """Draw the picture of an environment as if it read some models elsewhere.

        So a way back is looked at before it is taken: what would be stale there?

        Args:
            environment: whose picture.
            instead: other pointers by model; None for a model that it would not run.
        """
        heard_after = self._clock() - self._lease
        return self._database.read(
            lambda found: views.view(found, environment, heard_after, instead)
        )

    def observed(self) -> dict[str, ObservedSource]:
        """Read every source that was looked at, by name."""
        return self._database.read(sources.observed)

    def source_cells(self, source: str, within: IntervalSet) -> dict[Interval, SourceCell]:
        """Read what is known of a source's cells."""
        return self._database.read(lambda found: sources.source_cells(found, source, within))

    def source_rows(self, source: str, path: str, within: IntervalSet) -> IntervalSet | None:
        """Read which of these cells hold rows where batches read a source; None: never looked at."""
        place = self.place(path)
        return self._database.read(lambda found: sources.held(found, source, place, within))

    def source_pins(self, source: str, path: str) -> tuple[SourcePin, ...]:
        """Read at which delta_versions the cells that are ready now have read a source."""
        place = self.place(path)
        return self._database.read(lambda found: sources.pins_of(found, source, place))

    def tables(self, pointer: Pointer) -> tuple[InputPin, ...]:
        """Name the tables that a resolved pointer reads, the upper first, with their cells.

        The lowest one answers for every cell that no table above it holds: its cells are None.
        """
        return self._database.read(lambda found: layers.tables(found, pointer))

    def content_at_pin(
        self, environment: str, model: str, cells: IntervalSet
    ) -> dict[Interval, Content]:
        """Read what the ready ones of these cells hold, at an environment's pin."""

        def work(found: Connection) -> dict[Interval, Content]:
            at = pointers.pointer(found, environment, model)
            return {} if at is None else layers.contents(found, at, cells)

        return self._database.read(work)

    def published_contents(
        self, environment: str, model: str, cells: IntervalSet
    ) -> dict[Interval, Content]:
        """Read what people read in these cells now: of a workspace, what it would replace."""

        def work(found: Connection) -> dict[Interval, Content]:
            drawn = environments.environment(found, environment)
            where = drawn.follows if drawn.is_workspace and drawn.follows else environment
            at = pointers.pointer(found, where, model)
            return {} if at is None else layers.contents(found, at, cells)

        return self._database.read(work)

    def held_contents(
        self, version: str, cells: IntervalSet, at: int | None = None
    ) -> dict[Interval, Content]:
        """Read what a version's own table holds in those of these cells that are ready.

        Args:
            version: whose table.
            cells: which cells.
            at: the delta_version; None is the latest.
        """
        return self._database.read(lambda found: ready.contents(found, version, at, cells))

    def check_inputs(self, opened: OpenBatch) -> None:
        """Make sure, before a batch commits, that no publication has overtaken what it read.

        Raises:
            InputsMovedError: its model or an upstream points elsewhere by now, or cells that it
                read or rewrites were published anew since it pinned its inputs.
            CellsReadyError: it fills a gap, and some of its cells are ready by now.
        """
        self._database.read(lambda found: overtaking.check_inputs(found, opened))

    def ready_records(self, version: str, at: int | None = None) -> list[ReadyRecord]:
        """Read a version's records that are valid at a delta_version; None is the latest."""
        return self._database.read(lambda found: ready.ready_records(found, version, at))

    def built_by(self, version: str, at: int | None = None) -> dict[Interval, Builder]:
        """Read who built each cell that is ready at a delta_version; None is the latest."""
        return self._database.read(lambda found: ready.built_by(found, version, at))

    def watermark(self, version: str) -> datetime | None:
        """Read where the last ready cell of a version ends."""
        return self._database.read(lambda found: ready.watermark(found, version))

    def batches(self, *, model: str | None = None, limit: int | None = None) -> list[BatchRow]:
        """Read batches, the latest first."""
        return self._database.read(lambda found: batch_rows.batches(found, model, limit))

    def batch(self, batch_id: str) -> BatchRow:
        """Read one batch; `UnknownBatchError` when it was never opened."""
        return self._database.read(lambda found: batch_rows.batch(found, batch_id))

    def failed_batches(self, versions: Iterable[str]) -> list[FailedBatch]:
        """Read the failed batches of these tables, the earliest first."""
        wanted = [*versions]
        return self._database.read(lambda found: batches.failed_batches(found, wanted))

    def find_batch(self, batch_id: str) -> BatchRow | None:
        """Read one batch; None when it was never opened."""
        return self._database.read(lambda found: batch_rows.find_batch(found, batch_id))

    def attempts(self, version: str, stretches: IntervalSet) -> int:
        """Count how often a batch from the first to the last of these cells was tried."""
        return self._database.read(lambda found: batch_rows.attempts(found, version, stretches))

    def audit_results(
        self,
        *,
        model: str | None = None,
        batch_id: str | None = None,
        limit: int | None = None,
    ) -> list[AuditRow]:
        """Read audit results, the latest first."""
        return self._database.read(
            lambda found: audits.audit_results(found, model, batch_id, limit)
        )

    def owed(self, environment: str) -> dict[str, IntervalSet]:
        """Read the ready cells that were declared wrong and not rebuilt yet, by model."""
        return dict(self.view(environment).owed)

    def owed_marks(self, environment: str) -> list[list[str | int]]:
        """Name what is owed: the table and the cells of each mark, ready or not; cheaper than `owed`."""
        return self._database.read(lambda found: owed.named(found, environment))
