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
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.planning.rule.unresolved import Unresolved
    from backfill_assets.snapshots.state_view import StateView


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


def unresolved_failures(
    run: RunContext, view: StateView, works: Mapping[str, Work]
) -> dict[str, Unresolved]:
    """Find the last failure of each model whose cells still need work and were not built since, with its error.

    Args:
        run: the environment.
        view: its picture.
        works: what its models need.
    """
    versions = {run.pointer(run.graph.model(name)).version: name for name in works}
    batches = run.store.batches.failed_batches(versions)
    starts = run.store.failed_starts.of_environment(run.environment.name)
    failures = {
        name: last_unresolved(
            work.gaps | work.stale_cells,
            state.runs if (state := view.models.get(name)) else (),
            (failed for failed in batches if versions[failed.version] == name),
            (failed for failed in starts.values() if failed.model == name),
        )
        for name, work in works.items()
    }
    return {name: _explained(run, failure) for name, failure in failures.items() if failure}


def _explained(run: RunContext, failure: Unresolved) -> Unresolved:
    if failure.batch_id is None:
        return failure
    return replace(failure, error=run.store.batches.get(failure.batch_id).error)
