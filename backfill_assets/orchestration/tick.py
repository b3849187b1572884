"""A tick: choose the runs to request now, from what is ready and what is under way."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from backfill_assets.engine.automatic.scan import ReadyWork, ready_work
from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.project.project import Project
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.metadata import pool
from backfill_assets.orchestration.released_runs import (
    UnderWay,
    failed_for_good,
    is_done,
    name_of,
    numbered,
    run_request,
    tried_lately,
    under_way,
)
from backfill_assets.planning.queue.releasing import Offer, Release, ReleaseKind, Room, releases

_PLACES = 2
"""How many runs are released per run that may be executed: a run need not wait for the next tick."""
_DEFAULT = 2


@dataclass(frozen=True)
class Ticked:
    """The result of a tick.

    Attributes:
        requests: the runs to request.
        memory: what the next tick need not look at.
        notes: what people should know, a sentence each.
        late: whether late data waits for a run that brings it in, wanted or not.
    """

    requests: tuple[dg.RunRequest, ...]
    memory: ScanMemory
    notes: tuple[str, ...]
    late: bool = False


def tick(
    context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext,
    project: Project,
    memory: ScanMemory,
    *,
    batches: int,
    share: int,
    wanted: Callable[[Offer], bool] = lambda _: True,
) -> Ticked:
    """Look for work, and choose as many runs as there is room for.

    Args:
        context: of the sensor or schedule; the runs and limits of its instance count.
        project: where to look.
        memory: what earlier ticks found to need nothing.
        batches: how many batches one run carries.
        share: how many runs backfills and plans get at least.
        wanted: which offers may be released.
    """
    graph, now, instance = project.loaded.graph, project.clock(), context.instance
    work = ready_work(project, memory)
    runs = under_way(instance, context.repository_def)
    closed = pools_without_slots(instance, graph)
    room = Room(
        places=places(instance),
        share=share,
        batches=batches,
        under_way=runs.released,
        busy=runs.busy | closed,
    )
    tried = tried_lately(instance, now) if work.offers else {}
    idle = [offer for offer in work.offers if not _is_under_way(offer, instance, runs)]
    resting = {name for name, attempt in tried.items() if now < attempt.rests_until}
    chosen = _chosen_now(graph, [*filter(wanted, idle)], room, resting)
    requests = [
        run_request(graph, release, context.repository_def)
        for release in numbered(instance, graph, chosen)
    ]
    late = any(offer.kind is ReleaseKind.LATE for offer in idle)
    notes = (
        *_notes(graph, work, closed, runs.backfills),
        *_failed_late_words(instance, work.offers),
    )
    return Ticked(tuple(requests), work.memory, notes, late)


def _chosen_now(
    graph: Graph, offered: Sequence[Offer], room: Room, resting: Collection[tuple[str, ...]]
) -> tuple[Release, ...]:
    """Choose releases; one that rests after a failure, by its name, leaves its place to another."""
    while True:
        chosen = releases(offered, room)
        passed_over = {
            (release.kind, release.environment, release.model, release.plan_id)
            for release in chosen
            if name_of(graph, release) in resting
        }
        if not passed_over:
            return chosen
        offered = [
            offer
            for offer in offered
            if (offer.kind, offer.environment, offer.name, offer.plan_id) not in passed_over
        ]


def _is_under_way(offer: Offer, instance: dg.DagsterInstance, runs: UnderWay) -> bool:
    """Whether an offer without a model is under way already, or its work was done."""
    if offer.model is not None:
        return False
    if any((way.kind, way.plan_id) == (offer.kind, offer.plan_id) for way in runs.released):
        return True
    return offer.kind is ReleaseKind.LATE and is_done(instance, _late_release(offer))


def _late_release(offer: Offer) -> Release:
    return Release(offer.environment, offer.kind, mark=offer.mark, inputs=offer.inputs)


def _failed_late_words(instance: dg.DagsterInstance, offers: Iterable[Offer]) -> Iterator[str]:
    """Name the run in which late data has failed for good, for as long as it is not asked for again."""
    for offer in offers:
        if offer.kind is not ReleaseKind.LATE:
            continue
        if run_id := failed_for_good(instance, _late_release(offer)):
            yield (
                "late data has failed and is not retried until its code or its input changes; "
                f"see run {run_id}"
            )


def places(instance: dg.DagsterInstance) -> int:
    """Give how many releases may run or wait at once: as many may wait as may run."""
    config = instance.get_concurrency_config().run_queue_config
    most = config.max_concurrent_runs if config is not None else _DEFAULT
    return _PLACES * (most if most >= 0 else _DEFAULT)


def pools_without_slots(instance: dg.DagsterInstance, graph: Graph) -> frozenset[str]:
    """Name the models whose pool was closed by hand: a run of them would wait for ever."""
    closed = {
        pool_limit.name
        for pool_limit in instance.event_log_storage.get_pool_limits()
        if pool_limit.limit < 1
    }
    return frozenset(name for name in graph.order if pool(name) in closed)


def _notes(
    graph: Graph, work: ReadyWork, closed: frozenset[str], backfills: Mapping[str, str]
) -> Sequence[str]:
    offered = {offer.name for offer in work.offers}
    return (
        *(
            f"{name} needs work and is only reported (automation='report'): "
            f"{ranges_text(graph.models[name].cadence, cells)}"
            for name, cells in work.reported.items()
        ),
        *work.notes,
        *(
            f"{name} has work, but its pool '{pool(name)}' has no slot, so nothing of it is "
            f"released; `dagster instance concurrency set {pool(name)} 1` opens it"
            for name in sorted(closed & offered)
        ),
        *(
            f"{name} has work and is left to backfill {backfills[name]}, which a person launched, until that ends"
            for name in sorted(backfills.keys() & offered)
        ),
    )
