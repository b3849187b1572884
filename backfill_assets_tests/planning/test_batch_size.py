"""How many cells go in one batch: held against a naive count of what a batch reads."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, strategies as st

from backfill_assets.intervals import Cadence, Daily, Hourly, IntervalSet, Monthly, Weekly
from backfill_assets.models.graph import Graph
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.batch_size import (
    BYTES_PER_BATCH,
    BatchSize,
    SizedBy,
    batch_size,
    joins_stretches,
)
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.render.plan_words import batches_text
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.state_view import SourceState, StateView
from backfill_assets_tests.builders import (
    EVENTS,
    a_graph,
    a_model,
    a_pointer,
    a_run,
    a_source,
    a_view,
    a_whole,
    day,
)

DAY = 86_400
MIB = 2**20
UP = "web.up"
START = "2024-01-01"
READERS = st.sampled_from([Hourly(START), Daily(START), Weekly(START), Monthly(START)])
bytes_of_a_day = st.integers(1, 2 * BYTES_PER_BATCH)


def events(size: int | None, days: int = 10, **declared: object) -> SourceState:
    run = replace(a_run(day(1, days), 0), own=False)
    return SourceState(a_pointer(EVENTS), (run,), bytes=size, **declared)  # type: ignore[arg-type]


def ups(*held: tuple[int, int | None]) -> StateView:
    """A model upstream, of which runs of some days hold so many bytes a day."""
    runs, at = [], 1
    for days, size in held:
        each = None if size is None else size / DAY
        runs.append(replace(a_run(day(at, days), at), bytes_per_second=each))
        at += days
    return a_view({UP: runs})


def reader(*upstreams: str | Upstream, cadence: Cadence | None = None, **declared: object) -> Graph:
    given_ = {"upstreams": list(upstreams or (EVENTS,)), **declared}
    model = a_model("web.reader", cadence=cadence or Daily(START), **given_)
    return a_graph(*([a_model(UP)] if UP in upstreams else []), model)


def sized(graph: Graph, view: StateView) -> BatchSize:
    return batch_size(graph, view, graph.model("web.reader"))


@given(bytes_of_a_day, bytes_of_a_day, st.integers(1, 20), READERS)
def test_a_batch_reads_no_more_than_its_bytes_and_twice_as_many_cells_would(
    source: int, model: int, days: int, cadence: Cadence
):
    graph = reader(EVENTS, UP, cadence=cadence)
    view = replace(ups((3, model)), sources={EVENTS: events(source * days, days)})

    found = sized(graph, view)

    a_cell = (source + model) * cadence.unit.shortest / DAY
    assert found.by is SizedBy.BYTES
    assert found.cells is not None
    assert found.cells == 1 or found.cells * found.bytes_per_cell <= BYTES_PER_BATCH
    assert found.cells * 2 * found.bytes_per_cell > BYTES_PER_BATCH
    assert found.cells.bit_count() == 1, "the same cells while inputs grow a little"
    assert a_cell <= found.bytes_per_cell <= a_cell * 1.000001 + 1


@given(st.lists(st.tuples(st.integers(1, 9), st.none() | bytes_of_a_day), min_size=1, max_size=5))
def test_a_model_holds_what_its_recorded_batches_wrote_on_average(
    held: list[tuple[int, int | None]],
):
    known = [(days, size) for days, size in held if size is not None]
    state = ups(*held).models[UP]

    if not known:
        assert state.bytes_per_second == 0
        return
    average = sum(days * size for days, size in known) / sum(days for days, _ in known)
    assert abs(state.bytes_per_second * DAY - average) <= average / 1e9


@given(bytes_of_a_day, bytes_of_a_day)
def test_the_more_the_inputs_hold_the_fewer_cells_go_in_a_batch(day_bytes: int, other: int):
    few, many = (
        sized(reader(UP), ups((1, size))).cells or 0
        for size in sorted((day_bytes, other), reverse=True)
    )
    assert few <= many


@given(bytes_of_a_day, st.integers(1, 500))
def test_a_declared_size_counts_whatever_is_recorded(size: int, declared: int):
    found = sized(reader(UP, batch_size=declared), ups((1, size)))

    assert (found.by, found.cells) == (SizedBy.DECLARED, declared)
    assert found.bytes_per_cell in (size, size + 1)


@given(st.none() | st.integers(1, 500), bytes_of_a_day)
def test_a_model_that_reads_its_own_earlier_cells_is_built_cell_by_cell(
    declared: int | None, size: int
):
    found = sized(
        reader(UP, Upstream("web.reader", lookback=1), batch_size=declared), ups((1, size))
    )

    assert (found.by, found.cells) == (SizedBy.IN_ORDER, 1)


def test_where_nothing_is_recorded_there_is_no_limit():
    nothing = BatchSize(SizedBy.NOTHING)
    none_there = replace(ups(), sources={EVENTS: replace(events(7 * MIB), runs=())})

    assert sized(reader(UP), ups((3, None))) == nothing
    assert sized(reader(EVENTS), a_view({})) == nothing
    assert sized(reader(EVENTS), replace(a_view({}), sources={EVENTS: events(None)})) == nothing
    assert sized(reader(EVENTS), none_there) == nothing
    assert sized(reader(UP, EVENTS), ups((3, MIB))) == nothing, "one of two inputs is not known"


def test_an_input_that_every_batch_reads_whole_does_not_count():
    shops, whole = a_whole("web.shops"), a_source(times=TimeColumns())
    upstreams = [Upstream(name, time_column="ds") for name in ("web.shops", EVENTS)]
    model = a_model(
        "web.reader",
        upstreams=upstreams,
        sql="SELECT ds, id, cost FROM web.shops WHERE ds >= :start_ds AND ds < :end_ds "
        "UNION ALL SELECT ds, id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
    )
    graph = a_graph(shops, model, sources=[whole])
    runs = [replace(a_run(day(1), 1), bytes_per_second=1e9)]
    view = replace(a_view({"web.shops": runs}), sources={EVENTS: events(BYTES_PER_BATCH)})

    assert batch_size(graph, view, model) == BatchSize(SizedBy.NOTHING)
    assert batch_size(graph, view, shops) == BatchSize(SizedBy.NOTHING)


def test_cells_of_a_source_that_lost_all_rows_hold_nothing():
    emptied = IntervalSet.of([day(6, 5)])
    view = replace(a_view({}), sources={EVENTS: events(10 * 64 * MIB, emptied=emptied)})

    assert sized(reader(EVENTS), view) == BatchSize(SizedBy.BYTES, 4, 128 * MIB)


def test_only_cells_that_stand_for_themselves_are_built_with_others_that_do_not_follow():
    merged = a_model(kind=IncrementalByUniqueKey("ds", latest_by="cost"))

    assert joins_stretches(a_model())
    assert not joins_stretches(merged)
    assert not joins_stretches(reader(UP, Upstream("web.reader", lookback=1)).model("web.reader"))
    assert not joins_stretches(a_whole("web.shops"))


@given(st.integers(1, 9), st.integers(1, 2 * BYTES_PER_BATCH))
def test_a_plan_says_how_large_its_batches_are_and_cuts_none_larger(ready: int, size: int):
    graph = reader(UP)
    runs = {
        UP: [replace(a_run(day(1, 20), 1), bytes_per_second=size / DAY)],
        "web.reader": [a_run(day(1, ready), 2)],
    }
    state = PlanState(view=a_view(runs), running=snapshots_of(graph))
    now = day(1, 20).end

    plan = build_plan(PlanRequest(environment=PROD, asked_by="ann"), graph, state, now)

    (planned,) = (model for model in plan.models if model.model == "web.reader")
    assert planned.batch_size == batch_size(graph, state.view, graph.model("web.reader"))
    most = planned.batch_size.cells if planned.batch_size else None
    assert most is not None
    assume(planned.batches)
    assert max(batch.cells for batch in planned.batches) <= most
    assert len(planned.batches) == -(-(20 - ready) // most)
    assert plan.batch_cells == {"web.reader": most}
    assert read_plan(plan_json(plan)) == plan
    assert batches_text(planned).startswith(f"{len(planned.batches)} batch")
