"""Failures that outlive the run that met them: kept when they happen, and told while cells still need work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.events import Failed
from backfill_assets.planning.rule.unresolved import last_unresolved
from backfill_assets.snapshots.failure import FailedStart
from backfill_assets.state.database import StateBusyError, StateUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.rule.unresolved import Unresolved


def keep_failed_start(run: RunContext, event: Event) -> None:
    """Record what kept a batch from beginning; a batch that had begun has recorded its failure itself.

    Where the state can't be written, the run's own words are all that there is.
    """
    if not isinstance(event, Failed):
        return
    with suppress(StateBusyError, StateUnavailableError):
        if event.batch_id and run.store.batches.find(event.batch_id) is not None:
            return
        failed = FailedStart(
            event.model,
            event.cells,
            event.error,
            event.kind,
            run.run_id,
            run.project.who,
            run.clock(),
        )
        run.store.failed_starts.keep(run.environment.name, failed)


def unresolved_failures(run: RunContext, todo: Mapping[str, IntervalSet]) -> dict[str, Unresolved]:
    """Find the last failure of each model whose cells still need work, with its error.

    Args:
        run: the environment.
        todo: by model, the cells that are missing or stale.
    """
    versions = {run.pointer(run.graph.model(name)).version: name for name in todo}
    batches = run.store.batches.failed_batches(versions)
    starts = run.store.failed_starts.of_environment(run.environment.name)
    failures = {
        name: last_unresolved(
            cells,
            (failed for failed in batches if versions[failed.version] == name),
            (failed for failed in starts.values() if failed.model == name),
        )
        for name, cells in todo.items()
    }
    return {name: _explained(run, failure) for name, failure in failures.items() if failure}


def _explained(run: RunContext, failure: Unresolved) -> Unresolved:
    if failure.batch_id is None:
        return failure
    return replace(failure, error=run.store.batches.get(failure.batch_id).error)
