"""The models that an environment will run: its own, with the selected ones as they are loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.models.fingerprint import changed_models
from backfill_assets.models.graph import Graph, cycle_in_graph
from backfill_assets.models.source_reading import changed_sources
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.plan.selecting import following, selected, upstream_of
from backfill_assets.planning.rule.needs_work import needs_work, stale_by_upstream
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.plan.plan_state import PlanState
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.planning.rule.stale import Stale
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.snapshots.state_view import StateView


@dataclass(frozen=True)
class PlannedGraph:
    """The graph that the environment will run, beside the one that it runs.

    Attributes:
        request: what a person asks.
        state: the snapshots that the environment runs, and its ready cells.
        now: the instant that history ends at (UTC).
        graph: the environment's models, the chosen ones as loaded.
        snapshots: of that graph.
        otherwise: models whose rows, or whose upstreams' rows, are computed differently there.
        loaded: per loaded model, the fingerprint of its loaded declaration.
        chosen: models whose loaded declaration counts, and whose work is planned.
        helpers: their upstreams, of which only what the chosen ones need is filled.
        removed: chosen models that are not declared any more.
        traced: per model, what it reads by column, as far as that was worked out already.
        resourced: chosen models with the sources that are declared otherwise in what they read, and with
            what was a model and is a source now, or the other way round.
    """

    request: PlanRequest
    state: PlanState
    now: datetime
    graph: Graph
    snapshots: Mapping[str, Snapshot]
    otherwise: frozenset[str]
    loaded: Mapping[str, str]
    chosen: frozenset[str]
    helpers: frozenset[str]
    removed: tuple[str, ...]
    traced: dict[str, Mapping[str, frozenset[str]]]
    resourced: Mapping[str, tuple[str, ...]]

    @property
    def models(self) -> Mapping[str, Model]:
        """The models of the graph that the environment will run."""
        return self.graph.models

    @property
    def before(self) -> Mapping[str, Snapshot]:
        """The models that the environment runs now."""
        return self.state.running

    @property
    def published(self) -> StateView:
        """What the environment publishes now."""
        return self.state.view

    def reads(self, name: str) -> Mapping[str, frozenset[str]]:
        """Give what a model reads by column, traced once; an absent upstream is read as a whole."""
        if name not in self.traced:
            self.traced[name] = lineage_of(self.graph, self.models[name]).reads
        return self.traced[name]

    def work(self, name: str, view: StateView) -> Work:
        """Apply the one rule to a model of the graph, as it stands in a view."""
        return needs_work(self.graph, view, self.models[name], now=self.now, reads=self.reads(name))

    def stale(self, name: str, view: StateView) -> tuple[Stale, ...]:
        """Ask the one rule only for the stale cells of a model."""
        model, reads = self.models[name], self.reads(name)
        return stale_by_upstream(self.graph, view, model, self.now, reads)

    def upstream_models(self, name: str) -> list[tuple[Upstream, Model]]:
        """Give the other models that a model reads, and how."""
        return self.upstreams_of(self.models[name])

    def upstreams_of(self, model: Model) -> list[tuple[Upstream, Model]]:
        """Give the other models that a definition reads, and how."""
        reads = (up for up in model.reads if up.name in self.models and up.name != model.name)
        return [(up, self.models[up.name]) for up in reads]


def planned_graph(
    request: PlanRequest,
    graph: Graph,
    state: PlanState,
    now: datetime,
    loaded: Loaded | None,
) -> PlannedGraph:
    """Put the chosen models, as loaded, in the place of those that the environment runs.

    Raises:
        RequestError: a selector names no model.
        RequestError: a selector matches no model.
        RequestError: a source is restated, and no selected model reads it.
        RequestError: a model is restated that is not declared any more.
        DeclarationError: a model that others read is not declared any more.
        RequestError: a chosen model reads a new one that is to be left out.
    """
    snapshots = loaded.snapshots if loaded is not None else snapshots_of(graph)
    gone = tuple(name for name in sorted(state.running) if name not in graph.models)
    gone = () if request.late else gone  # late data takes no model away
    _refuse_gone(request, graph, gone)
    chosen = _chosen(request, graph, _may_go(state, graph, gone))
    _refuse_unread(request, graph, chosen)
    helpers = frozenset(upstream_of(graph, chosen & {*graph.models}) - chosen)
    chosen, helpers = _with_new_upstreams(request, state, chosen, helpers)
    removed = tuple(name for name in gone if name in chosen)
    models = {
        name: graph.models[name] if name in chosen else state.running[name].model
        for name in (*graph.order, *gone)
        if name not in removed and (name in chosen or name in state.running)
    }
    as_loaded = all(models.get(name) == graph.models[name] for name in graph.order) and not (
        models.keys() - graph.models.keys()
    )
    planned = graph if as_loaded else _graph(models, graph)
    planned = replace(planned, order=_in_levels(planned))
    after = snapshots if as_loaded else snapshots_of(planned)
    resourced = _resourced(state, planned, chosen)
    return PlannedGraph(
        request=request,
        state=state,
        now=now,
        graph=planned,
        snapshots=after,
        otherwise=changed_models(_running_graph(state, graph), planned, {*resourced}),
        resourced=resourced,
        loaded={name: snapshot.fingerprint.id for name, snapshot in snapshots.items()},
        chosen=chosen - {*removed},
        helpers=frozenset() if request.skip_upstream else helpers,
        removed=removed,
        traced=dict(loaded.reads) if loaded is not None and as_loaded else {},
    )


def _resourced(
    state: PlanState, planned: Graph, chosen: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """Find the sources that are declared otherwise than when the environment's snapshots were taken."""
    resourced = {
        name: (
            *changed_sources(planned, planned.models[name], state.running[name].sources),
            *_of_another_kind(state, planned, name),
        )
        for name in planned.order
        if name in chosen and name in state.running
    }
    return {name: sources for name, sources in resourced.items() if sources}


def _of_another_kind(state: PlanState, planned: Graph, name: str) -> Iterator[str]:
    """Name what a model goes on reading, of which a model has become a source, or a source a model."""
    read = {up.name for up in state.running[name].model.reads} - {name}
    return (
        up.name
        for up in planned.models[name].reads
        if up.name in read and (up.name in state.running) != (up.name in planned.models)
    )


def _may_go(state: PlanState, graph: Graph, gone: tuple[str, ...]) -> tuple[str, ...]:
    """Name those of some models that a plan can take away: the environment's own, and what reads one of them.

    A model that it only reads where it follows another environment stays as that one has it. One that is a source by
    now is no model of the environment any more.
    """
    own = {name for name in gone if name in graph.sources or _is_own(state, name)}
    while readers := {name for name in gone if name not in own and _reads(state, name) & own}:
        own |= readers
    return tuple(name for name in gone if name in own)


def _is_own(state: PlanState, name: str) -> bool:
    at = state.view.models.get(name)
    return at is None or at.pointer.environment == state.view.environment.name


def _reads(state: PlanState, name: str) -> set[str]:
    return {read.name for read in state.running[name].model.reads}


def _chosen(request: PlanRequest, graph: Graph, gone: tuple[str, ...]) -> frozenset[str]:
    """Name the selected models; without a selection the restated ones and their readers."""
    restated = {restatement.name for restatement in request.restate} | {*request.lift_cutoffs}
    if restated and not request.select:
        return following(graph, restated)
    return frozenset(selected(graph, request.select, gone=gone)) | (restated & {*graph.models})


def _refuse_gone(request: PlanRequest, graph: Graph, gone: tuple[str, ...]) -> None:
    """Refuse to restate a model that the environment runs and that is not declared any more: nothing can build it."""
    for name in (restatement.name for restatement in request.restate):
        if name in gone and name not in graph.sources:
            raise RequestError(
                found=f"'{name}' is restated, and is not declared any more",
                do="declare it again, or leave it out; `backfill plan` removes it",
            )


def _refuse_unread(request: PlanRequest, graph: Graph, chosen: frozenset[str]) -> None:
    """Refuse to restate a source that none of the chosen models reads: nothing would be built again."""
    for name in (restatement.name for restatement in request.restate):
        readers = graph.readers(name)
        if name in graph.sources and not chosen.intersection(readers):
            raise RequestError(
                found=f"no selected model reads the restated source '{name}'",
                do=f"select {', '.join(readers)} too, or leave out --select"
                if readers
                else "restate a source that a model reads",
            )


def _with_new_upstreams(
    request: PlanRequest, state: PlanState, chosen: frozenset[str], helpers: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Choose the new models among the upstreams too: without them the chosen ones can't run."""
    new = helpers - {*state.running}
    if new and request.skip_upstream:
        raise RequestError(
            found=f"'{min(chosen)}' reads '{min(new)}', which '{request.environment}' does not run "
            "yet and which is not selected",
            do="select it too, or leave out --skip-upstream",
        )
    return chosen | new, helpers - new


def _graph(models: Mapping[str, Model], loaded: Graph) -> Graph:
    """Order the models; each of them was checked when it was loaded."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    readers: dict[str, list[str]] = {}
    for name in models:
        upstreams = {up.name for up in models[name].reads} - {name, *loaded.sources}
        for missing in upstreams - models.keys():
            readers.setdefault(missing, []).append(name)
        sorter.add(name, *sorted(upstreams))
    if readers:
        removed = min(readers)
        verb = "reads" if len(readers[removed]) == 1 else "read"
        raise DeclarationError(
            found=f"'{removed}' is not declared any more, but {', '.join(sorted(readers[removed]))} still "
            f"{verb} it",
            do="change the readers in the same plan (select them too), or declare it again",
        )
    try:
        order = tuple(sorter.static_order())
    except CycleError as error:
        raise cycle_in_graph(tuple(error.args[1])) from error
    return Graph(models, loaded.sources, order)


def _in_levels(graph: Graph) -> tuple[str, ...]:
    """Order the models by how far from the sources they are, then by name: upstream first.

    So a plan does not depend on the order in which models were declared.
    """
    levels: dict[str, int] = {}
    for name in graph.order:
        read = [levels[up.name] for up in graph.models[name].reads if up.name in levels]
        levels[name] = max(read, default=0) + 1
    return tuple(sorted(levels, key=lambda name: (levels[name], name)))


def _running_graph(state: PlanState, graph: Graph) -> Graph:
    """Assemble the graph that the environment runs."""
    models = {name: snapshot.model for name, snapshot in state.running.items()}
    return Graph(models, graph.sources, tuple(models))
