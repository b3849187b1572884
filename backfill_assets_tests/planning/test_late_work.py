from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given, strategies as st

from backfill_assets.intervals import Daily, Hourly, IntervalSet, Monthly, Unit, Weekly, Whole
from backfill_assets.intervals.cadence import WHOLE_CELL as WHOLE
from backfill_assets.intervals.required import required
from backfill_assets.models.cells import cells_read
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.source import WhenEmpty
from backfill_assets.models.upstream import Reopens, Upstream, own_cells
from backfill_assets.planning.rule.late_work import KeptBack, LateWork, beyond_words, late_work
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.state_view import SourceState, UpstreamChange
from backfill_assets_tests.builders import (
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_run,
    a_source,
    a_view,
    days,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.intervals import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.state_view import StateView

NOW = FIRST + timedelta(days=10)
A, B, C = "web.a", "web.b", "web.c"


def picture(
    graph: Graph,
    changed: IntervalSet | Iterable[IntervalSet],
    ready: Mapping[str, IntervalSet] | None = None,
    source: str = EVENTS,
) -> StateView:
    """Everything that is required is ready, unless said, and built before these source cells changed.

    Each cell was changed by a commit of its own, unless the commits are given.
    """
    commits = _one_by_one(changed) if isinstance(changed, IntervalSet) else [*changed]
    held = {
        name: (ready or {}).get(name, required(model.cadence, now=NOW))
        for name, model in graph.models.items()
    }
    view = a_view(
        {name: [a_run(cell, 1, 1, name) for cell in cells] for name, cells in held.items()}
    )
    last = {
        cell: at
        for at, cells in enumerate(commits, start=5)
        for single in _one_by_one(cells)
        for cell in single
    }
    runs = tuple(replace(a_run(cell, at, at, ""), own=False) for cell, at in last.items())
    known = tuple(UpstreamChange(at, cells) for at, cells in enumerate(commits, start=5))
    state = SourceState(Pointer("", source, "", "", 3), runs, known_changes=known)
    return replace(view, sources={source: state})


def _one_by_one(cells: IntervalSet) -> list[IntervalSet]:
    if cells == IntervalSet.of([WHOLE]):
        return [cells]
    return [IntervalSet.of([cell]) for cell in Daily(start="2024-01-01").cells(cells)]


def split(
    graph: Graph,
    view: StateView,
    *,
    held: Mapping[str, IntervalSet] | None = None,
    failed: Mapping[str, IntervalSet] | None = None,
    reserved: Mapping[str, IntervalSet] | None = None,
) -> LateWork:
    others, people = CellsByModel(held or {}), CellsByModel(reserved or {})
    kept_back = KeptBack(
        by_others=others,
        in_place=others,
        failed=CellsByModel(failed or {}),
        reserved=lambda: people,
    )
    return late_work(graph, view, kept_back, now=NOW, reads={})


def chain(**last: Any) -> Graph:  # noqa: ANN401
    return a_graph(
        a_model(A, late_window=3),
        a_model(B, upstreams=[Upstream(A, lookback=1)], late_window=3),
        a_model(C, upstreams=[B], **{"late_window": 3, **last}),
    )


def test_cells_whose_whole_reach_lies_in_late_windows_heal_by_themselves():
    found = split(chain(), picture(chain(), days(3, 8, 10)))
    assert found.automatic == {A: days(8, 10)}
    assert found.waiting == {A: days(3)}
    assert found.because[A] == "web.events got, lost or changed rows"


def test_what_is_reserved_to_people_and_all_that_reaches_it_waits_for_a_plan():
    graph = chain()
    found = split(graph, picture(graph, days(8, 9, 10)), reserved={C: days(9)})
    assert found.automatic == {A: days(10)}
    assert found.waiting == {A: days(8, 9)}


def test_a_smaller_window_downstream_decides():
    graph = chain(late_window=2)
    found = split(graph, picture(graph, days(8, 9)))
    assert (found.automatic, found.waiting) == ({A: days(9)}, {A: days(8)})


def test_a_reader_that_is_not_ready_there_keeps_nothing_back():
    graph = chain(late_window=2)
    view = picture(graph, days(8), {C: days(1, 2, 3, 9, 10)})
    assert split(graph, view).automatic == {A: days(8)}


def test_what_reads_something_that_waits_waits_with_it():
    graph = a_graph(
        a_model(A, late_window=1),
        a_model(B, upstreams=[A, EVENTS], late_window=5),
    )
    found = split(graph, picture(graph, days(8, 10)))
    assert found.automatic == {A: days(10), B: days(10)}
    assert found.waiting == {A: days(8), B: days(8)}


def test_a_model_that_alone_reads_a_source_is_refreshed_in_place():
    graph = a_graph(a_model(A, late_window=3))
    found = split(graph, picture(graph, days(2, 9)))
    assert (found.in_place, found.automatic) == ({A: days(9)}, {})
    assert found.waiting == {A: days(2)}


def test_others_at_work_where_it_reaches_hold_it():
    found = split(chain(), picture(chain(), days(8, 10)), held={C: days(9)})
    assert (found.automatic, found.held) == ({A: days(10)}, {A: days(8)})
    assert found.waiting == {}


def test_what_an_open_plan_restates_waits_for_it_and_not_for_a_person():
    view = replace(picture(chain(), days(9, 10)), owed=CellsByModel({B: days(9)}))
    found = split(chain(), view, held={B: days(9)})
    assert (found.automatic, found.held, found.waiting) == ({A: days(10)}, {A: days(9)}, {})


def test_what_a_person_took_back_waits_for_a_person():
    view = replace(picture(chain(), days(9, 10)), owed=CellsByModel({A: days(9)}))
    found = split(chain(), view)
    assert (found.automatic, found.waiting) == ({A: days(10)}, {A: days(9)})


def test_a_table_of_another_environment_is_left_to_it():
    view = picture(chain(), days(10))
    elsewhere = replace(view, environment=replace(view.environment, name="dev"))
    assert split(chain(), elsewhere).automatic == {}


def test_a_dimension_heals_where_its_readers_reopen_no_more_than_their_windows():
    whole = a_source("web.names", cadence=Whole(), times=a_source().times)
    for reopens, heals in (
        (Reopens.LATE_WINDOW, True),
        (Reopens.NEVER, True),
        (Reopens.ALL, False),
    ):
        graph = a_graph(
            a_model(A, cadence=Whole(), upstreams=["web.names"], late_window=1),
            a_model(B, upstreams=[EVENTS, Upstream(A, reopens=reopens)], late_window=2),
            sources=[a_source(), whole],
        )
        found = split(graph, picture(graph, IntervalSet.of([WHOLE]), source="web.names"))
        assert (set(found.automatic), set(found.waiting)) == (
            ({A}, set()) if heals else (set(), {A})
        )


def test_a_dimension_without_a_late_window_needs_a_plan():
    whole = a_source("web.names", cadence=Whole())
    graph = a_graph(
        a_model(A, cadence=Whole(), upstreams=["web.names"]),
        a_model(B, upstreams=[EVENTS, A], late_window=2),
        sources=[a_source(), whole],
    )
    changed = IntervalSet.of([WHOLE])
    assert set(split(graph, picture(graph, changed, source="web.names")).waiting) == {A}


def test_a_commit_that_reaches_beyond_a_window_is_not_split():
    graph = chain()
    found = split(graph, picture(graph, [days(3, 10), days(9)]))
    assert (found.automatic, found.waiting) == ({A: days(9)}, {A: days(3, 10)})


def test_what_waits_names_the_models_whose_late_windows_it_reaches_out_of():
    graph = chain(late_window=0)
    found = split(graph, picture(graph, [days(9)]))
    assert (found.waiting, found.beyond(A)) == ({A: days(9)}, (C,))
    assert beyond_words(found.beyond(A)) == f" (beyond the late window of {C})"

    reserved = split(chain(), picture(chain(), [days(9)]), reserved={A: days(9)})
    assert (reserved.waiting, reserved.beyond(A)) == ({A: days(9)}, ())
    assert not beyond_words(reserved.beyond(A))


def test_of_a_model_that_nobody_reads_a_change_is_not_split_either():
    graph = a_graph(a_model(A, late_window=3))
    found = split(graph, picture(graph, [days(3, 10), days(9)]))
    assert (found.in_place, found.waiting) == ({A: days(9)}, {A: days(3, 10)})


def test_commits_that_concern_one_cell_are_one_change():
    graph = chain()
    found = split(graph, picture(graph, [days(3, 9), days(9, 10), days(8)]))
    assert (found.automatic, found.waiting) == ({A: days(8)}, {A: days(3, 9, 10)})


def test_the_smallest_window_of_all_that_read_a_source_decides_about_its_change():
    graph = a_graph(a_model(A, late_window=5), a_model(B, late_window=1))
    found = split(graph, picture(graph, [days(8, 10), days(9)]))
    assert found.automatic == {}
    assert found.waiting == {A: days(8, 9, 10), B: days(8, 9, 10)}
    narrow = {B: days(*range(1, 8), 9, 10)}
    found = split(graph, picture(graph, [days(8, 10)], narrow))
    assert found.automatic == {A: days(8, 10), B: days(10)}


def test_what_others_are_at_work_on_holds_the_whole_change():
    found = split(chain(), picture(chain(), [days(8, 10), days(9)]), held={A: days(8)})
    assert (found.automatic, found.held) == ({A: days(9)}, {A: days(8, 10)})


def test_what_failed_holds_nothing_but_what_reaches_it():
    found = split(chain(), picture(chain(), [days(8, 10)]), failed={B: days(8)})
    assert (found.automatic, found.held) == ({A: days(10)}, {A: days(8)})


CADENCES = [
    Daily(start="2024-01-01"),
    Hourly(start="2024-01-09"),
    Weekly(start="2024-01-01"),
    Monthly(start="2023-12-01"),
    Daily(start="2024-01-03", tz="Europe/Berlin"),
]
LOOKBACKS = st.sampled_from([0, 1, 2, own_cells(1)])


def losing(
    graph: Graph,
    changed: IntervalSet | Iterable[IntervalSet],
    lost: IntervalSet,
    source: str = EVENTS,
) -> StateView:
    """As `picture`, of a source that has lost all rows of some of the changed cells."""
    view = picture(graph, changed, source=source)
    return replace(view, sources={source: replace(view.sources[source], emptied=lost)})


def waiting_for_rows(*models: Model) -> Graph:
    return a_graph(*models, sources=[a_source(when_empty=WhenEmpty.WAIT)])


def test_a_cell_whose_rows_are_gone_waits_for_them_where_its_source_says_so():
    graph = waiting_for_rows(a_model(A, late_window=3))
    found = split(graph, losing(graph, days(8, 9), lost=days(8)))
    assert (found.in_place, found.awaits) == ({A: days(9)}, {EVENTS: {A: days(8)}})
    assert (found.automatic, found.waiting, found.held) == ({}, {}, {})
    accepts = a_graph(*graph.models.values())
    assert split(accepts, losing(accepts, days(8, 9), lost=days(8))).in_place == {A: days(8, 9)}


def test_a_cell_that_was_built_without_rows_waits_for_none():
    graph = waiting_for_rows(a_model(A, upstreams=[Upstream(EVENTS, lookback=1)], late_window=3))
    view = losing(graph, days(9), lost=days(8))
    assert split(graph, view).awaits == {}


def test_what_waits_for_rows_keeps_the_whole_change_and_what_reaches_it():
    graph = waiting_for_rows(
        a_model(A, late_window=5),
        a_model(B, upstreams=[A], late_window=5),
    )
    found = split(graph, losing(graph, [days(7, 9), days(10)], lost=days(9)))
    assert (found.automatic, found.awaits) == ({A: days(10)}, {EVENTS: {A: days(7, 9)}})

    costs = a_source("web.costs", when_empty=WhenEmpty.WAIT)
    graph = a_graph(
        a_model(A, late_window=5),
        a_model(B, upstreams=[A, "web.costs"], late_window=5),
        sources=[a_source(), costs],
    )
    view = picture(graph, days(8, 9))
    lost = losing(graph, days(9), lost=days(9), source="web.costs").sources
    found = split(graph, replace(view, sources={**view.sources, **lost}))
    assert found.automatic == {A: days(8)}
    assert found.awaits == {"web.costs": {A: days(9), B: days(9)}}


def test_what_waits_for_rows_waits_for_them_outside_of_its_window_too():
    graph = waiting_for_rows(a_model(A, late_window=2))
    found = split(graph, losing(graph, days(3, 9), lost=days(3)))
    assert (found.in_place, found.awaits) == ({A: days(9)}, {EVENTS: {A: days(3)}})
    assert found.waiting == {}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to four models, each over the source or over earlier ones."""
    models: list[Model] = []
    for name in (A, B, C, "web.d")[: draw(st.integers(1, 4))]:
        known = [EVENTS, *(model.name for model in models)]
        chosen = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        upstreams = [Upstream(upstream, lookback=draw(LOOKBACKS)) for upstream in sorted(chosen)]
        models.append(
            a_model(
                name,
                cadence=draw(st.sampled_from(CADENCES)),
                upstreams=upstreams,
                late_window=draw(st.sampled_from([0, 1, 3, 30])),
            )
        )
    return a_graph(*models)


@st.composite
def pictures(draw: st.DrawFn) -> tuple[Graph, StateView]:
    graph = draw(graphs())
    ready: dict[str, IntervalSet] = {}
    for name, model in graph.models.items():
        life = required(model.cadence, now=NOW)
        every = list(model.cadence.cells(life))
        without = draw(st.lists(st.sampled_from(every), max_size=3)) if every else []
        ready[name] = life - IntervalSet.of(without)
    commit = st.lists(st.integers(1, 10), min_size=1, max_size=3)
    changed = [days(*cells) for cells in draw(st.lists(commit, max_size=4))]
    return graph, picture(graph, changed, ready)


@given(pictures())
def test_the_split_is_that_of_a_walk_from_cell_to_cell(found: tuple[Graph, StateView]):
    graph, view = found
    split_ = split(graph, view)
    stale = {
        name: needs_work(graph, view, model, now=NOW).stale_cells
        for name, model in graph.models.items()
    }
    expected = walked(graph, view, stale)
    for name, model in graph.models.items():
        here, in_place = split_.automatic[name], split_.in_place[name]
        assert not here & in_place
        assert set(model.cadence.cells(here | in_place)) == expected[name]
        assert split_.waiting[name] == stale[name] - (here | in_place)
    assert split_.held == {}


def walked(
    graph: Graph, view: StateView, stale: Mapping[str, IntervalSet]
) -> dict[str, set[Interval]]:
    """Follow every stale cell to all that reads it, one at a time."""
    ready = {
        name: list(graph.models[name].cadence.cells(view.ready(name))) for name in graph.models
    }
    readers = _readers(graph, ready)
    inside = {name: _window(graph.models[name], cells) for name, cells in ready.items()}
    wanted = [(name, cell) for name in graph.models for cell in ready[name] if cell in stale[name]]
    reached = {cell_of_model: _reach(readers, cell_of_model) for cell_of_model in wanted}
    left = {
        cell_of_model
        for cell_of_model in wanted
        if any(cell not in inside[name] for name, cell in reached[cell_of_model])
    }
    commits = [
        {(name, cell) for name, cell in wanted if _reads(graph, name, cell) & change.cells}
        for change in view.sources[EVENTS].changes(None)
    ]
    with_them = set(left)
    while (
        more := set[tuple[str, "Interval"]]().union(
            *(reached[cell_of_model] for cell_of_model in with_them if cell_of_model in reached),
            *(commit for commit in commits if commit & with_them),
        )
        - with_them
    ):
        with_them |= more
    return {
        name: {cell for of, cell in wanted if of == name and (of, cell) not in with_them}
        for name in graph.models
    }


def _reads(graph: Graph, name: str, cell: Interval) -> IntervalSet:
    """Give the cells of the source that one cell reads itself."""
    model, theirs = graph.models[name], graph.sources[EVENTS].cadence
    return IntervalSet.union_all(
        cells_read(model.cadence, up, theirs, IntervalSet.of([cell]), until=NOW)
        for up in model.reads
        if up.name == EVENTS
    )


def _readers(
    graph: Graph, ready: Mapping[str, list[Interval]]
) -> dict[tuple[str, Interval], list[tuple[str, Interval]]]:
    found: dict[tuple[str, Interval], list[tuple[str, Interval]]] = {}
    edges = [
        (model, up, cell)
        for name, model in graph.models.items()
        for up in model.reads
        if up.name in graph.models
        for cell in ready[name]
    ]
    for model, up, cell in edges:
        theirs = graph.models[up.name].cadence
        read = cells_read(model.cadence, up, theirs, IntervalSet.of([cell]), until=NOW)
        for read_cell in ready[up.name]:
            if read_cell in read:
                found.setdefault((up.name, read_cell), []).append((model.name, cell))
    return found


def _reach(
    readers: Mapping[tuple[str, Interval], list[tuple[str, Interval]]], start: tuple[str, Interval]
) -> set[tuple[str, Interval]]:
    seen, todo = {start}, [start]
    while todo:
        for reader in set(readers.get(todo.pop(), ())) - seen:
            seen.add(reader)
            todo.append(reader)
    return seen


def _window(model: Model, cells: Iterable[Interval]) -> set[Interval]:
    """The last so many cells up to the last ready one."""
    listed = sorted(cells)
    if not listed or not model.late_window:
        return set()
    assert model.cadence.unit is not Unit.WHOLE
    first = listed[-1].end
    for _ in range(model.late_window):
        first = model.cadence.floor(first - timedelta(seconds=1))
    return {cell for cell in listed if cell.start >= first}
