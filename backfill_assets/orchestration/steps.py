"""The parts of every step of an asset: read its targeted cells, and end with the audits' results."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.model import Model
from backfill_assets.orchestration.partitions import cells_of, keys_of_run, partitions_of
from backfill_assets.orchestration.released_runs import (
    CELLS_TAG,
    MODEL_TAG,
    REASON_TAG,
    cells_of_text,
)
from backfill_assets.orchestration.reporting import SILENT, Reporter


@contextmanager
def as_run_failure() -> Iterator[None]:
    """Fail a run with the text of an error of ours, without a retry; the page shows what has caused it, not where it was raised.

    Raises:
        dagster.Failure: an error of ours was raised.
    """
    try:
        yield
    except BackfillAssetsError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error.__cause__


def targeted_cells(context: dg.AssetExecutionContext, model: Model) -> IntervalSet:
    """Read the cells that the run targets: all of its partitions, or those that a release names.

    Raises:
        RequestError: the run names no partition.
    """
    cells, tags = _cells_of_run(context, model), context.run.tags
    if not cells:
        raise RequestError(
            found=f"the run names no partition of {model.name}: it has none, or its range ends before it starts; "
            "nothing was built",
            do="launch it with a partition, or with a range whose first key is the earlier one",
        )
    if CELLS_TAG in tags and tags.get(MODEL_TAG) == model.name:
        return cells & cells_of_text(model.cadence, tags[CELLS_TAG])
    return cells


def _cells_of_run(context: dg.AssetExecutionContext, model: Model) -> IntervalSet:
    keys = [] if partitions_of(model.cadence) is None else keys_of_run(context)
    return cells_of(model.cadence, keys)


@contextmanager
def failing_alone(reporter: Reporter) -> Iterator[None]:
    """Let the failure of a run of the queue be that of the cells that have failed, and of no other published one.

    Dagster shows each partition of a failed run as failed, until it is materialized again. A person's own launch keeps
    its failed partitions: a backfill counts materializations, and would say that it has succeeded.
    """
    try:
        yield
    except (dg.Failure, BackfillAssetsError):
        if REASON_TAG in reporter.context.run.tags:
            reporter.unfailed(_cells_of_run(reporter.context, reporter.model))
        raise


def finish_step(reporter: Reporter, metadata: Mapping[str, Any]) -> Iterator[Any]:
    """Give the results of the audits, then fail if cells lack, else end.

    Raises:
        dagster.Failure: cells that were asked for are still not ready; it says which and why.
    """
    yield from reporter.check_results()
    if reporter.lacking:
        raise dg.Failure(description="; ".join(reporter.lacking), allow_retries=False)
    yield dg.Output(None, metadata={**SILENT, **metadata})
