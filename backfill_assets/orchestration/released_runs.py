"""Released runs: how a release becomes a run request, and how runs are read back as releases.

Nothing is remembered beside Dagster's own runs and our state: what is under way, how often it was
tried and since when it rests is read from the runs' tags.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import dagster as dg

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.durations import doubled
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.metadata import PUBLISHED, asset_key, check_name
from backfill_assets.orchestration.partitions import partitions_of
from backfill_assets.orchestration.private_names import backfills_at_work
from backfill_assets.planning.queue.releasing import Release, ReleaseKind

PLAN_TAG = "backfill/plan"
MODEL_TAG = "backfill/model"
REASON_TAG = "backfill/reason"
ATTEMPT_TAG = "backfill/attempt"
CELLS_TAG = "backfill/cells"
MARK_TAG = "backfill/mark"
INPUTS_TAG = "backfill/inputs"
ENVIRONMENT_TAG = "backfill/environment"
ENDED_TAG, FOR_GOOD = "backfill/ended", "for good"
PRIORITY_TAG = "dagster/priority"
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

RELEASE_JOB, FINISH_JOB, LATE_JOB = "__ASSET_JOB", "finish", "refresh_late"
AFTERCARE_JOB, NOTICES_JOB, PROMOTE_JOB, APPLY_JOB = "aftercare", "notices", "promote", "apply"
"""The first one is Dagster's own job over all assets: one of ours can't mix partitions."""
_JOBS = {ReleaseKind.FINISH: FINISH_JOB, ReleaseKind.LATE: LATE_JOB}
RELEASED_JOBS = tuple(_JOBS.values())
"""The jobs of releases that concern a whole plan, or late data."""


def op_name(job: str) -> str:
    """Name the op of a job of ours, which can't have the job's name in Dagster."""
    return {"plan": "make_plan", LATE_JOB: "refresh_late_cells"}.get(job, f"{job}_plan")


UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_REMEMBERED = {
    dg.DagsterRunStatus.SUCCESS: timedelta(hours=3),
    dg.DagsterRunStatus.FAILURE: timedelta(hours=12),
    dg.DagsterRunStatus.CANCELED: timedelta(hours=12),
}
"""How long a run counts: failures longer than all rests that they lead to, or the rests would become
short again. A release comes again after a success because new work came, so a success counts for less
long."""
_LONGEST_REST = timedelta(hours=1)
_SEEN = 1000


def cells_text(cadence: Cadence, cells: IntervalSet) -> str:
    """Name cells by their partition keys, so that `cells_of_text` reads them back."""
    return ",".join(_stretch(cadence, stretch) for stretch in cells)


def cells_of_text(cadence: Cadence, text: str) -> IntervalSet:
    """Read cells back."""
    return IntervalSet.of(_cells(cadence, part) for part in text.split(","))


def _stretch(cadence: Cadence, stretch: Interval) -> str:
    first, last = _ends(cadence, stretch)
    return first if first == last else f"{first}...{last}"


def _ends(cadence: Cadence, stretch: Interval) -> tuple[str, str]:
    first = Interval(stretch.start, cadence.next(stretch.start))
    last = Interval(cadence.shift(stretch.end, -1), stretch.end)
    return cadence.key(first), cadence.key(last)


def _cells(cadence: Cadence, text: str) -> Interval:
    first, dots, last = text.partition("...")
    start, end = cadence.cell(first), cadence.cell(last if dots else first)
    return Interval(start.start, end.end)


def run_request(
    graph: Graph, release: Release, repository: dg.RepositoryDefinition | None = None
) -> dg.RunRequest:
    """Ask Dagster for the run of a release: a range of one asset's partitions, or a job.

    Args:
        graph: the models.
        release: what is asked for.
        repository: what else the code location defines; checks of a project's own are evaluated, too.
    """
    tags = tags_of(graph, release)
    digest = hashlib.sha256(repr([tags.get(tag) for tag in _NAMING]).encode()).hexdigest()[:12]
    key = f"{release.environment}/{release.model or release.kind.value}/{release.attempt}/{digest}"
    if not release.model:
        job = _JOBS[release.kind]
        config = run_config(job, release.plan_id)
        return dg.RunRequest(run_key=key, run_config=config, tags=tags, job_name=job)
    return dg.RunRequest(
        run_key=key,
        tags={**tags, **_range_tags(graph, release)},
        job_name=RELEASE_JOB,
        asset_selection=[asset_key(release.model)],
        asset_check_keys=[
            *own_checks(graph, release.model),
            *_further_checks(graph, release, repository),
        ],
    )


def own_checks(graph: Graph, model: str) -> list[dg.AssetCheckKey]:
    """Name the checks of the step itself; those that read the whole table belong to the job `audits`."""
    return [
        dg.AssetCheckKey(asset_key(model), check_name(audit.name))
        for audit in audits_of(graph.models[model])
    ]


def _further_checks(
    graph: Graph, release: Release, repository: dg.RepositoryDefinition | None
) -> list[dg.AssetCheckKey]:
    """Name the checks that a project has of an asset beside its model's; what a plan builds they could not see."""
    if repository is None or release.plan_id:
        return []
    key, known = asset_key(release.model), repository.asset_graph
    audits = {check.name for check in own_checks(graph, release.model)}
    ours = audits | {f"{PUBLISHED}{audit}" for audit in audits}
    return [
        check
        for check in known.asset_check_keys
        if check.asset_key == key
        and check.name not in ours
        and all(
            isinstance(part, dg.AssetCheckKey) and part.asset_key == key
            for part in known.get_execution_set_asset_and_check_keys(check)
        )
    ]


_NAMING = (REASON_TAG, ENVIRONMENT_TAG, PLAN_TAG, MODEL_TAG, CELLS_TAG, MARK_TAG, ATTEMPT_TAG)


def tags_of(graph: Graph, release: Release) -> dict[str, str]:
    """Give the tags of a run, which say what it is for."""
    tags = {
        REASON_TAG: release.kind.value,
        ENVIRONMENT_TAG: release.environment,
        PLAN_TAG: release.plan_id or "",
        MODEL_TAG: release.model,
        CELLS_TAG: _text(graph, release),
        MARK_TAG: release.mark,
        INPUTS_TAG: release.inputs,
        ATTEMPT_TAG: str(release.attempt),
        PRIORITY_TAG: str(release.priority),
    }
    return {name: value for name, value in tags.items() if value}


def _text(graph: Graph, release: Release) -> str:
    if not release.model or partitions_of(graph.models[release.model].cadence) is None:
        return ""
    return cells_text(graph.models[release.model].cadence, release.cells)


def _range_tags(graph: Graph, release: Release) -> dict[str, str]:
    cadence, hull = graph.models[release.model].cadence, release.cells.hull()
    if hull is None or partitions_of(cadence) is None:
        return {}
    return dict(zip(_RANGE, _ends(cadence, hull), strict=True))


def run_config(job: str, plan_id: str | None) -> dict[str, object]:
    """Give the config of a job's run that the sensor requests, for a plan or for none."""
    config = {"who": "sensor"} if not plan_id else {"who": "sensor", "plan": plan_id}
    return {"ops": {op_name(job): {"config": config}}}


@dataclass(frozen=True)
class UnderWay:
    """What runs or waits in the queue.

    Attributes:
        released: our own runs, as releases.
        busy: models that some run works on, released or launched by hand, and those of `backfills`.
        backfills: models that a backfill of a person is about, which may launch further runs of them; with its id.
    """

    released: tuple[Release, ...]
    busy: frozenset[str]
    backfills: Mapping[str, str]


def under_way(
    instance: dg.DagsterInstance, repository: dg.RepositoryDefinition | None = None
) -> UnderWay:
    """Read what runs or waits.

    Args:
        instance: whose runs and backfills they are.
        repository: what the code location defines; a run or a backfill of all of a job names no assets.
    """

    def of_job(name: str) -> Collection[dg.AssetKey]:
        if repository is None or not repository.has_job(name):
            return ()
        return repository.get_job(name).asset_layer.selected_asset_keys

    def of_run(run: dg.DagsterRun) -> Collection[dg.AssetKey]:
        if run.asset_selection or run.asset_check_selection:
            return run.asset_selection or ()
        return of_job(run.job_name)

    runs = instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED), limit=_SEEN)
    busy = {".".join(key.path) for run in runs for key in of_run(run)}
    released = [release for run in runs if (release := _release(run.tags)) is not None]
    backfills = {".".join(key.path): of for key, of in backfills_at_work(instance, of_job).items()}
    return UnderWay(tuple(released), frozenset(busy | backfills.keys()), backfills)


def _release(tags: Mapping[str, str]) -> Release | None:
    """Read a run's tags as a release; its cells are not needed."""
    if REASON_TAG not in tags:
        return None
    try:
        kind = ReleaseKind(tags[REASON_TAG])
    except ValueError:
        return None
    return Release(
        tags.get(ENVIRONMENT_TAG, ""), kind, tags.get(MODEL_TAG, ""), plan_id=tags.get(PLAN_TAG)
    )


@dataclass(frozen=True)
class Tried:
    """Runs of one release that have ended lately.

    Attributes:
        times: how often; one that a person cancelled counts twice.
        ended: when the last one did.
    """

    times: int
    ended: datetime

    @property
    def rests_until(self) -> datetime:
        """When the same release may be requested again: at once, then later each time."""
        if self.times < 2:  # noqa: PLR2004 - the first failure may be a killed worker
            return self.ended
        return self.ended + doubled(timedelta(minutes=1), self.times - 2, _LONGEST_REST)


_RELEASED = tuple(kind.value for kind in ReleaseKind)


def tried_lately(
    instance: dg.DagsterInstance, now: datetime, reasons: tuple[str, ...] = _RELEASED
) -> dict[tuple[str, ...], Tried]:
    """Read how often each release was tried of late, by its name.

    Args:
        instance: whose runs are read.
        now: the instant.
        reasons: what the runs are for.
    """
    by_name: dict[tuple[str, ...], Tried] = {}
    for record in _ended(instance, now, reasons):
        run = record.dagster_run
        name = named(run.tags)
        before = by_name.get(name, Tried(0, record.update_timestamp))
        weight = 2 if run.status is dg.DagsterRunStatus.CANCELED else 1
        ended = max(before.ended, record.update_timestamp)
        by_name[name] = Tried(before.times + weight, ended)
    return by_name


def _ended(
    instance: dg.DagsterInstance, now: datetime, reasons: tuple[str, ...]
) -> Iterator[dg.RunRecord]:
    for status, remembered in _REMEMBERED.items():
        filters = dg.RunsFilter(
            statuses=[status], tags={REASON_TAG: list(reasons)}, updated_after=now - remembered
        )
        yield from instance.get_run_records(filters, limit=_SEEN)


def name_of(graph: Graph, release: Release) -> tuple[str, ...]:
    """Name a release by what its runs are tagged with, the attempt left out."""
    return named(tags_of(graph, release))


def named(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Name what a run is for by its tags, the attempt left out."""
    return tuple(tags.get(tag, "") for tag in _NAMING if tag != ATTEMPT_TAG)


def numbered(
    instance: dg.DagsterInstance, graph: Graph, releases: Iterable[Release]
) -> tuple[Release, ...]:
    """Number each release by how often it was tried before, so that no two runs have one key."""
    return tuple(
        replace(release, attempt=_last_attempt(instance, tags_of(graph, release)) + 1)
        for release in releases
    )


def is_done(instance: dg.DagsterInstance, release: Release) -> bool:
    """Whether a run of a release without a model has succeeded, or failed for good over the same inputs."""
    filters = dg.RunsFilter(tags=_any_inputs(release), statuses=[dg.DagsterRunStatus.SUCCESS])
    if instance.get_runs(filters=filters, limit=1):
        return True
    return failed_for_good(instance, release) is not None


def failed_for_good(instance: dg.DagsterInstance, release: Release) -> str | None:
    """Give the id of a run of a release without a model that failed for good over the same inputs; None for none."""
    tags = {**_any_inputs(release), INPUTS_TAG: release.inputs, ENDED_TAG: FOR_GOOD}
    runs = instance.get_runs(filters=dg.RunsFilter(tags=tags), limit=1)
    return runs[0].run_id if runs else None


def _any_inputs(release: Release) -> dict[str, str]:
    return {
        REASON_TAG: release.kind.value,
        ENVIRONMENT_TAG: release.environment,
        MARK_TAG: release.mark,
    }


def _last_attempt(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> int:
    naming_tags = {tag: tags[tag] for tag in _NAMING if tag in tags and tag != ATTEMPT_TAG}
    runs = instance.get_runs(filters=dg.RunsFilter(tags=naming_tags), limit=_SEEN)
    name = named(tags)
    return max(
        (int(run.tags.get(ATTEMPT_TAG, "0")) for run in runs if named(run.tags) == name),
        default=0,
    )
