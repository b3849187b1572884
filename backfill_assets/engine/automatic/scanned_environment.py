"""The environments that are scanned: prod for work of its own, others for that of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.automatic.scan_memory import DONE, FAILED, LEFT, OUTSIDE, hashed
from backfill_assets.engine.fill.late_cells import (
    built_without_rows,
    in_place_of,
    policy_mark,
)
from backfill_assets.engine.project.opening import look_as_pointed, open_run
from backfill_assets.errors import RequestError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.automation import Automation
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.left import left_of
from backfill_assets.planning.plan.stages import BuildCells, FillGaps, apply_stages
from backfill_assets.planning.queue.releasing import offers
from backfill_assets.planning.rule.failed_cells import failed_cells
from backfill_assets.planning.rule.lacking_in_sources import lacking_in_sources
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.environment import PROD, workspace_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.queue.releasing import Offer
    from backfill_assets.planning.rule.failed_cells import Rest
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.planning.rule.stale import Stale
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.failure import FailedBatch
    from backfill_assets.snapshots.observation import ObservedSource
    from backfill_assets.snapshots.state_view import StateView
    from backfill_assets.snapshots.stored_plan import StoredPlan


@dataclass(frozen=True, slots=True)
class ScannedModel:
    """What a scan of one model found.

    Attributes:
        model: the model.
        work: what the rule found.
        offers: what could be released now.
        left: all that is still to be built, released or not.
        end: whether anything is left, and whether some of it failed for good.
        stale: a name for published cells that only a plan may build again, and for what has overtaken
            them; empty for none.
        unchanging: whether the answer stays the same while no pin moves.
        waits: whether cells are left that wait for rows of a source.
        rest: until when its first failed cells rest that come again by themselves; None for none.
    """

    model: Model
    work: Work
    offers: tuple[Offer, ...]
    left: IntervalSet
    end: str
    stale: str
    unchanging: bool
    waits: bool
    rest: Rest | None


@dataclass(frozen=True)
class ScannedEnvironment:
    """One environment, scanned for its own work or for a plan's.

    Attributes:
        run: the environment, and the plan that it is scanned for; only read.
        pointers: where it reads each model, as the state has it.
        names: the models concerned, upstream first.
        within: the plan's cells, by model; None outside of a plan.
        others: cells that belong to open plans, by model.
        outside: cells before the declared start or after the declared end, by model, where the environment
            runs another life: they have no partition, so no run can be requested for them.
    """

    run: RunContext
    pointers: Mapping[str, Pointer]
    names: Sequence[str]
    within: CellsByModel | None = None
    others: CellsByModel = field(default_factory=CellsByModel)
    outside: CellsByModel = field(default_factory=CellsByModel)

    @property
    def now(self) -> datetime:
        """The instant that history ends at for what is scanned."""
        return self.run.until

    @property
    def plan_id(self) -> str | None:
        """The plan; None for an environment's own work."""
        return self.run.plan_id

    @property
    def title(self) -> str:
        """The name of the environment in the memory of scans."""
        return f"{self.run.environment.name}:{self.plan_id or ''}"

    @property
    def graph(self) -> Graph:
        """The models that the environment runs."""
        return self.run.graph

    @cached_property
    def published(self) -> Mapping[str, Pointer]:
        """Where the environment that a workspace follows reads each model."""
        environment = self.run.environment
        if not environment.follows:
            return {}
        return self.run.store.environments.pointers(environment.follows)

    @cached_property
    def heads(self) -> Mapping[str, list[object]]:
        """Which table each source is, how it is cut, and up to where it is observed."""
        observed = self.run.store.sources.observed()
        return {name: _place(source) for name, source in observed.items()}

    @cached_property
    def policy(self) -> str:
        """The name of the policy, which decides what of late data is refreshed in place."""
        return policy_mark(self.run.project)

    def key(self, name: str) -> str:
        """Hash all that decides about a model."""
        model = self.graph.models[name]
        tables = [
            [_at(self.pointers.get(table)), _at(self.published.get(table)), self.heads.get(table)]
            for table in self._and_upstreams(model)
        ]
        due = [str(ends) for ends in self._ends(model)]
        within = None if self.within is None else self.within[name]
        cells = [
            list(decided.boundaries) if decided is not None else None
            for decided in (within, self.others[name] or None, self.outside[name] or None)
        ]
        declared = [model.automated.value, self._around(model), self.policy]
        return hashed([tables, due, cells, declared])

    def _ends(self, model: Model) -> Iterator[datetime]:
        """Give where what is required of a model ends now; of one cell: what it may read."""
        if model.cadence.unit is not Unit.WHOLE:
            yield model.cadence.due(self.now)
            return
        for upstream in model.reads:
            yield self.graph.node(upstream.name).cadence.floor(self.now)

    def read(self, name: str) -> set[str]:
        """Name the models that a scan of one reads: itself, and those that it reads."""
        return {
            table
            for table in self._and_upstreams(self.graph.models[name])
            if table in self.graph.models
        }

    def cells(self, name: str) -> int:
        """Count the cells that a model may hold by now."""
        cadence = self.graph.models[name].cadence
        if cadence.start is None or cadence.start >= self.now:
            return 1
        return cadence.count(Interval(cadence.start, self.now))

    def scanned(self, names: Collection[str]) -> Iterator[ScannedModel]:
        """Ask the one rule about some models, upstream first."""
        models = [self.graph.models[name] for name in names]
        read = {name for model in models for name in self._and_upstreams(model)}
        view = self.run.store.views.of(self.run.environment.name, only=read)
        versions = {at.version for name in names if (at := self.pointers.get(name))}
        failed: dict[str, list[FailedBatch]] = {}
        for batch in self.run.store.batches.failed_batches(versions):
            failed.setdefault(batch.model, []).append(batch)
        for model in models:
            yield self._scanned(view, model, failed.get(model.name, ()))

    def _scanned(
        self, view: StateView, model: Model, failed: Iterable[FailedBatch]
    ) -> ScannedModel:
        columns = self._columns(model.name)
        work = needs_work(
            self.graph,
            view,
            model,
            now=self.now,
            reads=columns,
            ignore_cron=self.run.serves_plan,
        )
        broken = failed_cells(self.graph, view, model, failed, now=self.run.clock(), reads=columns)
        claimed, elsewhere = view.claimed[model.name], self.others[model.name]
        outside = self.outside[model.name]
        if self.plan_id is None:
            in_place = in_place_of(self.run, {model.name: work}, view)[model.name]
            work = replace(work, refresh=in_place)
            elsewhere -= in_place  # a plan of a new table carries it over
        todo = work.gaps | work.refresh
        waiting = self._waiting(view, model, work)
        within = None if self.within is None else self.within[model.name]
        remaining = todo if within is None else left_of(work, view, model.name) & within
        # Of a model that reads its own cells each is a batch, and a run has many of them.
        size = model.batch_size if model.in_order else self.run.batch_size(model, view).cells
        offered = tuple(
            replace(
                offer, size=size, mark=_built_again(view, model.name, offer.cells & work.refresh)
            )
            for offer in offers(
                self.run.environment.name,
                model,
                work,
                held=claimed | elsewhere | outside | broken.cells | waiting,
                within=None if within is None else remaining,
                plan_id=self.plan_id,
            )
        )
        passing = (broken.for_now | claimed) & remaining
        stale = _named(view, model.name, work) if self.plan_id is None else ""
        end = _end(remaining, failed=broken.for_good, outside=outside)
        rest = broken.rest if broken.for_now & remaining else None
        waits, unchanging = (
            bool((waiting - broken.for_good) & remaining),
            not offered and not passing,
        )
        return ScannedModel(model, work, offered, remaining, end, stale, unchanging, waits, rest)

    def _waiting(self, view: StateView, model: Model, work: Work) -> IntervalSet:
        """Give the cells that wait for rows of a source."""
        todo = work.gaps | work.refresh
        lacking = lacking_in_sources(self.graph, view, model, todo, self.now)
        waiting = IntervalSet.union_all(lacking.values())
        return waiting - built_without_rows(self.run, model.name, work) if waiting else waiting

    def _around(self, model: Model) -> list[object]:
        """Say what others declare: whether they read the model, or what it reads, and how that is cut."""
        sources = [self.graph.sources.get(upstream.name) for upstream in model.reads]
        declared = [
            [
                source.when_empty.value,
                str(source.cadence),
                source.time_column,
                len(self.graph.readers(source.name)) > 1,
            ]
            for source in sources
            if source is not None
        ]
        return [bool(self.graph.readers(model.name)), declared]

    def _and_upstreams(self, model: Model) -> tuple[str, ...]:
        return (model.name, *(upstream.name for upstream in model.reads))

    def _columns(self, name: str) -> Mapping[str, frozenset[str]] | None:
        """What a model reads by column; traced only where it is not as it was loaded."""
        loaded = self.run.project.loaded
        theirs, ours = self.graph.models, loaded.graph.models
        if all(theirs.get(table) == ours.get(table) for table in self._and_upstreams(theirs[name])):
            return loaded.reads.get(name)
        return self.run.reads.get(name)


def _end(remaining: IntervalSet, *, failed: IntervalSet, outside: IntervalSet) -> str:
    """Say what is left, by what keeps it longest."""
    if not remaining:
        return DONE
    return FAILED if failed & remaining else OUTSIDE if outside & remaining else LEFT


def _at(pointer: Pointer | None) -> list[object] | None:
    if pointer is None:
        return None
    under = [[layer.version, layer.delta_version] for layer in pointer.under]
    return [pointer.fingerprint, pointer.version, pointer.delta_version, under]


def _place(source: ObservedSource) -> list[object]:
    """Name what is observed: a table made anew may have the same head."""
    return [source.path, source.table_id, source.declared, source.head]


def _named(view: StateView, name: str, work: Work) -> str:
    """Name what is stale by its cells, when these were built, and when what they read has changed.

    What waits for rows of a source is left out: nothing can be done about it until these come.
    """
    awaiting = IntervalSet.union_all(work.awaits.values())
    stale = [
        [behind.upstream, [*cells.boundaries], _built(view, name, cells), _changed(view, behind)]
        for behind in work.stale
        if (cells := behind.cells - work.refresh - awaiting)
    ]
    return hashed(stale) if stale else ""


def _built_again(view: StateView, name: str, refreshed: IntervalSet) -> str:
    """Name a refresh by when its cells were built: one that comes after a build is another one."""
    return str(_built(view, name, refreshed)) if refreshed else ""


def _built(view: StateView, name: str, cells: IntervalSet) -> int:
    return max(
        (run.built_at for run in view.models[name].runs if IntervalSet.of([run.interval]) & cells),
        default=0,
    )


def _changed(view: StateView, stale: Stale) -> int:
    state = (view.sources if stale.late else view.models)[stale.upstream]
    cells = stale.upstream_cells
    return max(
        (
            run.changed_at.latest(None)
            for run in state.runs
            if IntervalSet.of([run.interval]) & cells
        ),
        default=0,
    )


def in_turn(where: ScannedEnvironment, todo: list[str], start: int, most: int) -> list[str]:
    """Take as many models as one scan may ask about, from where the last one ended."""
    place = {name: number for number, name in enumerate(where.names)}
    taken: list[str] = []
    read: set[str] = set()
    for name in sorted(todo, key=lambda name: (place[name] < start, place[name])):
        read |= where.read(name)
        if taken and sum(map(where.cells, read)) > most:
            break
        taken.append(name)
    return taken


def for_scanning(project: Project) -> Project:
    """Give a project as a scan uses it: at one instant, and without Spark."""
    now = project.clock()
    return replace(project, clock=lambda: now, spark=no_spark)


def no_spark() -> Any:  # noqa: ANN401 - there is none
    """Take the place of Spark where recorded state is enough.

    Raises:
        RequestError: always.
    """
    raise RequestError(found="Internal error: the scan must not use Spark", do="Report this")


def scanned_prod(
    project: Project, plans: Sequence[StoredPlan], paused: Collection[str]
) -> ScannedEnvironment:
    """Give prod but for paused models; cells that its open plans have are theirs."""
    run, declared = open_run(project, PROD), project.loaded.graph.models
    pointers = project.store.environments.pointers(PROD)
    names = [
        name
        for name in run.graph.order
        if name in declared
        and name in pointers
        and name not in paused
        and declared[name].automated is not Automation.OFF
        and run.graph.models[name].cadence.names_alike(declared[name].cadence)
    ]
    others = CellsByModel.of(
        each for plan in plans if plan.environment == PROD for each in plan.cells.items()
    )
    outside = CellsByModel(
        {name: _outside(run.graph.models[name].cadence, declared[name].cadence) for name in names}
    )
    return ScannedEnvironment(run, pointers, names, others=others, outside=outside)


def _outside(published: Cadence, declared: Cadence) -> IntervalSet:
    """Give what lies before the declared start or after the declared end, where another life is published."""
    if (published.start, published.end) == (declared.start, declared.end):
        return IntervalSet.empty()
    life = Interval(
        declared.floor(declared.start) if declared.start else WHOLE_CELL.start,
        declared.end or WHOLE_CELL.end,
    )
    return IntervalSet.of([WHOLE_CELL]) - IntervalSet.of([life])


def scanned_by_plan(project: Project, plan: Plan) -> Iterator[ScannedEnvironment]:
    """Give the environment whose gaps a plan fills, and the workspace where it builds the rest."""
    for stage in apply_stages(plan):
        match stage:
            case FillGaps(cells):
                environment = plan.environment
            case BuildCells(cells):
                environment = workspace_name(plan.plan_id)
            case _:
                continue
        within = CellsByModel(cells)
        if not within:
            continue
        run = replace(
            look_as_pointed(project, environment),
            plan_id=plan.plan_id,
            until=plan.until,
            batch_cells=plan.batch_cells,
        )
        pointers = project.store.environments.pointers(environment)
        names = [name for name in run.graph.order if name in within and name in pointers]
        yield ScannedEnvironment(run, pointers, names, within=within)
