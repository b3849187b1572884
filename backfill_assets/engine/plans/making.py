"""Make plans: one way for the command, the launchpad, late data and launches by hand.

    look at the sources -> read the state -> build_plan -> estimate -> keep

A plan may be for an environment that does not exist yet: it follows prod, so it is planned over what
prod reads, and begins to exist when the plan is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.fill.outstanding import outstanding
from backfill_assets.engine.plans.estimating import estimated
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.environment_graph import environment_graph
from backfill_assets.engine.project.holds import refuse_hold
from backfill_assets.engine.project.opening import look
from backfill_assets.engine.project.operators import refuse_reach
from backfill_assets.engine.project.plan_age import standing_plans
from backfill_assets.engine.review.acting import acting
from backfill_assets.errors import RequestError
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.plan_json import content_hash, identified, plan_json
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.smaller_window import furthest_read
from backfill_assets.planning.review.approval import Act
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.places import located
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets.warehouse.files.housekeeping import lacking_columns
from backfill_assets.warehouse.log.delta_log import ABSENT, head

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.fill.observing import SourceLook
    from backfill_assets.engine.fill.outstanding import Outstanding
    from backfill_assets.engine.project.project import Project
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.snapshots.person import Person
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.snapshots.state_view import ModelState, StateView
    from backfill_assets.state.plans import NewEvent
    from backfill_assets.state.store import Store


_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A plan, and what the look at the sources before it came to."""

    plan: Plan
    looks: tuple[SourceLook, ...]


def make_plan(
    project: Project,
    request: PlanRequest,
    as_of: datetime | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> MadePlan:
    """Look at the sources, make a plan, and keep it unless there is nothing to do.

    Args:
        project: what plans are made for.
        request: what is asked.
        as_of: the instant that history ends at (UTC); None: now.
        told: called with each thing that people must know of the sources.

    Raises:
        RequestError: the environment is a hold, or a new one that can't be called so.
        NotEntitledError: the policy names who may plan, and the signer is none of them.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    refuse_hold(project.store, request.environment)
    if not request.launch:
        principal = acting(project, Act.PLAN, request.environment, request.environment)
        request = replace(request, asked_by=principal or request.asked_by)
    looks = look_at_sources(project, told)
    plan = plan_of(project, request, as_of)
    keep(project, plan)
    return MadePlan(plan, looks)


def look_at_sources(
    project: Project, told: Callable[[str], None] = lambda _: None
) -> tuple[SourceLook, ...]:
    """Look at the sources, as planning rests on them; Spark is started only where it is the last way.

    Args:
        project: whose sources.
        told: called with each thing that people must know of them.
    """
    store, data_root, at_work = project.store, project.data_root, project.at_work
    sources = project.loaded.graph.sources
    looks = observe_sources(store, sources.values(), data_root, None, at_work)
    unjudged_sources = [sources[seen.source] for seen in looks if not seen.judged and seen.counts]
    again = observe_sources(
        store, unjudged_sources, data_root, project.spark, at_work, project.batch_policy
    )
    final = (*(seen for seen in looks if seen.judged or not seen.counts), *again)
    for seen in final:
        if seen.note:
            told(seen.note)
    return final


def plan_of(project: Project, request: PlanRequest, as_of: datetime | None = None) -> Plan:
    """Make a plan from what was looked at; nothing is written.

    Args:
        project: what plans are made for.
        request: what is asked.
        as_of: the instant that history ends at (UTC); None: now. The plan is made, and expires, by the
            clock whatever this says.

    Raises:
        RequestError: the environment is a new one that can't be called so.
        RequestError: a table that is kept has a column of another type.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    with project.at_work.at(Phase.PLANNING):
        made_at = project.clock()
        until = as_of or made_at
        graph, state = project.loaded.graph, _state(project, request, until)
        built = build_plan(request, graph, state, until, project.loaded)
        _refuse_other_types(project, built)
        if as_of is not None:
            lasts = built.expires_at - built.created_at
            built = identified(replace(built, created_at=made_at, expires_at=made_at + lasts))
        return estimated(project, built)


def _refuse_other_types(project: Project, plan: Plan) -> None:
    """Refuse to keep a table that has a column of another type: no batch could write into it.

    A definition that had added the column, and was taken back, leaves it there.
    """
    for planned in plan.models:
        if planned.change is Change.MODIFIED and planned.build is not Build.NEW_VERSION:
            path = project.store.versions.version_path(planned.version)
            if head(path) > ABSENT:
                lacking_columns(project.loaded.graph.model(planned.model), path)


def keep(project: Project, plan: Plan, told: NewEvent | None = None) -> None:
    """Keep a plan as it was shown; the same one again stays as it is, and an empty one is not kept.

    Args:
        project: whose.
        plan: the plan.
        told: what its history tells of it.
    """
    if plan.is_empty:
        return
    project.store.plans.save_plan(
        StoredPlan(
            plan_id=plan.plan_id,
            environment=plan.environment,
            status=PlanStatus.PROPOSED,
            content=plan_json(plan),
            content_hash=content_hash(plan),
            created_at=plan.created_at,
            created_by=plan.request.asked_by,
            reason=plan.request.reason,
            expires_at=plan.expires_at,
            cells=CellsByModel({planned.model: planned.cells for planned in plan.models}),
        ),
        told,
    )


def new_environment(project: Project, name: str) -> Environment | None:
    """Describe an environment that is to follow prod; None when it is there already.

    Raises:
        RequestError: it can't be called so.
    """
    if project.store.environments.exists(name):
        return None
    if not _NAME.fullmatch(name):
        raise RequestError(
            found=f"{name!r} is not a valid name of an environment",
            do="a name has up to 40 lower-case letters, digits and underscores, and begins with a "
            "letter, such as dev_refunds",
        )
    expires = project.clock() + timedelta(days=project.terms.environment_days)
    return Environment(name, protected=False, follows=PROD, expires_at=expires)


def prepare(project: Project, plan: Plan, who: Person, operators: Sequence[str]) -> None:
    """Refuse a plan whose reach this person may not change; make the environment that it begins, if it still may.

    Raises:
        RequestError: it restates what others read, too, and the settings name who may.
    """
    refuse_reach(project.store, plan, who, operators)
    new, stored = new_environment(project, plan.environment), project.store.plans.get(plan.plan_id)
    may_begin = stored.status is PlanStatus.PROPOSED and not stored.has_expired(project.clock())
    if new is not None and may_begin:
        project.store.environments.save_environment(new)


def left_before(project: Project, made: MadePlan, as_of: datetime | None = None) -> Outstanding:
    """Count what is left in a plan's environment before it is applied; a new one reads what prod reads."""
    name = made.plan.environment
    if as_of is not None:
        project = replace(project, clock=lambda: as_of)
    run = look(project, PROD if new_environment(project, name) else name)
    return outstanding(run, run.graph.order, made.looks)


def _state(project: Project, request: PlanRequest, instant: datetime) -> PlanState:
    """Read the state that planning works on; a new environment reads all that prod reads."""
    new = new_environment(project, request.environment)
    environment = PROD if new else request.environment
    state = plan_state(project, environment, instant)
    if request.canary:
        state = replace(state, rows=_rows(project.store, environment, state.view))
    if new is None:
        return state
    taken = project.store.environments.taken(new, _versions(project.loaded.snapshots))
    return replace(state, view=replace(state.view, environment=new), taken=taken)


def plan_state(project: Project, environment: str, now: datetime) -> PlanState:
    """Tell what an environment runs, and what is there already.

    Args:
        project: with the declarations that a plan is made for.
        environment: its name.
        now: the instant that history ends at (UTC).

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    store, loaded = project.store, project.loaded
    graph, snapshots = loaded.graph, loaded.snapshots
    stored = store.environments.get(environment)
    published = environment_graph(store, loaded, stored)
    pointers = store.environments.pointers(environment)
    sources = {
        name: head(located(source.path, project.data_root))
        for name, source in graph.sources.items()
    }
    return PlanState(
        view=store.views.of(environment),
        running={name: published.running[name] for name in pointers},
        built=_built(store, environment, snapshots, pointers),
        taken=store.environments.taken(stored, _versions(snapshots)),
        open_plans=standing_plans(store, now),
        furthest_read=furthest_read(graph, now),
        source_heads=sources,
        plan_days=project.terms.plan_days,
    )


def _rows(store: Store, environment: str, view: StateView) -> dict[str, dict[Interval, int]]:
    """Read how many rows each published cell has, by model."""
    return {
        name: {cell: content.rows for cell, content in contents.items()}
        for name in view.models
        if (contents := store.views.content_at_pin(environment, name, view.ready(name)))
    }


def _versions(snapshots: Mapping[str, Snapshot]) -> list[str]:
    return [snapshot.version for snapshot in snapshots.values()]


def _built(
    store: Store,
    environment: str,
    snapshots: Mapping[str, Snapshot],
    pointers: Mapping[str, Pointer],
) -> dict[str, ModelState]:
    """Read what the loaded models' own tables hold already, where the environment reads others."""
    instead: dict[str, Pointer] = {}
    for name, snapshot in snapshots.items():
        at = pointers.get(name)
        if at is None or at.version != snapshot.version:
            head_known = _known_head(store, snapshot.version)
            if head_known >= 0:
                fingerprint = snapshot.fingerprint.id
                instead[name] = Pointer(
                    environment, name, fingerprint, snapshot.version, head_known
                )
    if not instead:
        return {}
    beside = store.views.built_beside(environment, instead)
    return {pointer.version: beside[name] for name, pointer in instead.items()}


def _known_head(store: Store, version: str) -> int:
    try:
        return store.versions.known_head(version)
    except UnknownVersionError:
        return -1
