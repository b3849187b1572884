"""OpenLineage events of a plan: one run for the plan, one per model that it built, one per publication.

The ids follow from the plan's, so the same plan gives the same events. Datasets are named as models and
sources are, in the namespace of their environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from backfill_assets.evidence.manifest import EXPIRED, REFUSED, STOPPED
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.batch import RUNNING
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.state.batch_rows import BatchRow

Json = dict[str, Any]

PRODUCER = "urn:backfill-assets"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_ENDS = {
    PlanStatus.PROMOTED.value: "COMPLETE",
    PlanStatus.ABANDONED.value: "ABORT",
    EXPIRED: "ABORT",
    STOPPED: "FAIL",
    REFUSED: "FAIL",
}
"""How the run of a plan ends that has moved no pointer; whatever comes later, one that has is complete."""


def lineage_events(facts: Facts) -> Iterator[Json]:
    """Give the events, run by run: its start, and its end if it has one."""
    yield from _plan(facts)
    for model in dict.fromkeys(row.model for row in facts.batches):
        yield from _built(facts, model, [row for row in facts.batches if row.model == model])
    for number in dict.fromkeys(move.number for move in facts.moves):
        yield from _published(facts, [move for move in facts.moves if move.number == number])


def _plan(facts: Facts) -> Iterator[Json]:
    run, job = _run(facts, "plan"), _job(facts, "plan")
    outputs = [_dataset(facts, model) for model in sorted(facts.stored.cells)]
    yield _event("START", facts.stored.created_at, run, job, outputs=outputs)
    if facts.promoted:
        yield _event("COMPLETE", facts.promoted[0].at, run, job, outputs=outputs)
    elif facts.ended in _ENDS:
        yield _event(_ENDS[facts.ended], facts.at, run, job, outputs=outputs)


def _built(facts: Facts, model: str, rows: Sequence[BatchRow]) -> Iterator[Json]:
    pins: dict[str, int] = {}
    for row in rows:
        for pin in row.inputs:
            pins[pin.upstream] = max(pin.delta_version, pins.get(pin.upstream, -1))
    read = [_dataset(facts, name, pins[name]) for name in sorted(pins)]
    written = [row for row in rows if row.delta_version is not None]
    last = max((row.delta_version or 0 for row in written), default=None)
    made = [_dataset(facts, model, last)]
    run, job = _run(facts, "build", model), _job(facts, model)
    yield _event("START", rows[0].started_at, run, job, read, made)
    ended = [row.finished_at for row in rows if row.finished_at is not None]
    if not ended:
        return
    kind, failed = _outcome(facts, rows)
    if failed is not None:
        run["facets"]["errorMessage"] = _facet(
            "ErrorMessageRunFacet",
            "1-0-1",
            message=failed.error or "",
            programmingLanguage="Python",
        )
    yield _event(kind, max(ended), run, job, read, made)


def _outcome(facts: Facts, rows: Sequence[BatchRow]) -> tuple[str, BatchRow | None]:
    """Say how the building of a model ended, and by which failure if its cells are not there."""
    built = IntervalSet.union_all(row.stretches for row in rows if row.delta_version is not None)
    failures = [row for row in rows if row.has_failed and row.stretches - built]
    if failures:
        return "FAIL", failures[-1]
    aborted = facts.ended == PlanStatus.ABANDONED.value and any(
        row.status == RUNNING for row in rows
    )
    return ("ABORT" if aborted else "COMPLETE"), None


def _published(facts: Facts, moves: Sequence[PointerMove]) -> Iterator[Json]:
    first = moves[0]
    begun = next(
        (intent.begun_at for intent in facts.intents if intent.published == first.number), None
    )
    run = _run(facts, first.kind.value, str(first.number))
    job = _job(facts, first.kind.value)
    outputs = [
        _dataset(facts, move.model, move.new.delta_version if move.new else None) for move in moves
    ]
    yield _event("START", begun or first.at, run, job, outputs=outputs)
    yield _event("COMPLETE", first.at, run, job, outputs=outputs)


def _event(
    kind: str,
    at: datetime,
    run: Json,
    job: Json,
    inputs: Sequence[Json] = (),
    outputs: Sequence[Json] = (),
) -> Json:
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": _SPEC,
        "run": {"runId": run["runId"], "facets": dict(run["facets"])},
        "job": job,
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def _run(facts: Facts, *of: str) -> Json:
    facets: Json = {}
    if of != ("plan",):
        parent = {"run": {"runId": _id(facts, "plan")}, "job": _named(facts, "plan")}
        facets["parent"] = _facet("ParentRunFacet", "1-2-0", **parent)
    return {"runId": _id(facts, *of), "facets": facets}


def _id(facts: Facts, *of: str) -> str:
    return str(uuid5(NAMESPACE_URL, "/".join((PRODUCER, facts.plan_id, *of))))


def _job(facts: Facts, name: str) -> Json:
    kind = {"processingType": "BATCH", "integration": "BACKFILL_ASSETS", "jobType": "JOB"}
    return {
        **_named(facts, name),
        "facets": {"jobType": _facet("JobTypeJobFacet", "2-0-4", **kind)},
    }


def _named(facts: Facts, name: str) -> Json:
    return {"namespace": f"backfill-assets.{facts.stored.environment}", "name": name}


def _dataset(facts: Facts, name: str, delta_version: int | None = None) -> Json:
    facets: Json = {}
    if name in facts.noted.schemas:
        fields = [{"name": column, "type": dtype} for column, dtype in facts.noted.schemas[name]]
        facets["schema"] = _facet("SchemaDatasetFacet", "1-2-0", fields=fields)
    if delta_version is not None:
        facets["version"] = _facet(
            "DatasetVersionDatasetFacet", "1-0-1", datasetVersion=str(delta_version)
        )
    return {**_named(facts, name), "facets": facets}


def _facet(name: str, version: str, **content: Any) -> Json:  # noqa: ANN401 - as the facet's schema says
    url = f"https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **content}
