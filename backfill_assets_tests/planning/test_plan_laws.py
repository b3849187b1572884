"""Laws of plans, in toy worlds that are half filled, changed, edited and restated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, reject, settings, strategies as st

from backfill_assets.intervals import IntervalSet, Unit
from backfill_assets.intervals.instants import end_at
from backfill_assets.intervals.parse_range import OutsideLifeError
from backfill_assets.intervals.required import required
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import Build, Plan
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.snapshots.environment import PROD, Pointer
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.planning.applying import applied
from backfill_assets_tests.planning.test_needs_work_laws import change
from backfill_assets_tests.planning.toy_world import NOW, World, worlds


@dataclass(repr=False)
class Edited:
    """A world, what prod runs of it, and what is loaded now."""

    world: World
    running: dict[str, Snapshot]
    loaded: Graph

    @property
    def state(self) -> PlanState:
        view = self.world.view()
        models = {
            name: replace(
                state,
                pointer=Pointer(
                    PROD, name, self.running[name].fingerprint.id, self.running[name].version, 1
                ),
            )
            for name, state in view.models.items()
        }
        owed = replace(view, models=models, counter=self.world.counter)
        return PlanState(view=owed, running=self.running)

    def plan(self, request: PlanRequest, state: PlanState | None = None) -> Plan:
        return build_plan(request, self.loaded, state or self.state, NOW, self.known)

    @property
    def known(self) -> Loaded:
        return Loaded(self.loaded, snapshots_of(self.loaded), self.world.reads)

    def __repr__(self) -> str:
        return f"Edited({', '.join(self.loaded.order)})"


EDITS = ("nothing", "values", "column", "filter", "words")


def edited(model: Model, edit: str) -> Model:
    """Edit a declaration in one of the ways that people do."""
    query = model.logic
    assert isinstance(query, SqlQuery)
    match edit:
        case "values":
            return replace(model, query=SqlQuery(query.sql.replace(" cost ", " cost * 2 AS cost ")))
        case "column":
            sql = query.sql.replace(" cost ", " cost, id AS extra ", query.sql.count(" cost "))
            return replace(
                model, query=SqlQuery(sql), columns=(*model.schema, Column("extra", "bigint"))
            )
        case "filter" if " WHERE " in query.sql:
            return replace(
                model, query=SqlQuery(query.sql.replace(" WHERE ", " WHERE id > 5 AND "))
            )
        case "words":
            return replace(model, description="Said in other words.")
        case _:
            return model


@st.composite
def edited_worlds(draw: st.DrawFn) -> Edited:
    """Worlds of which some cells are lost or changed, and some models edited."""
    world = draw(worlds())
    world.fill(draw(st.none() | st.integers(1, 5)))
    late = draw(st.sampled_from([0, 0, 2]))
    models = [replace(model, late_window=late) for model in world.graph.models.values()]
    graph = build_graph(models, [a_source(observed=draw(st.booleans()))])
    for cells in world.held.values():
        for cell in draw(st.lists(st.sampled_from(sorted(cells)), max_size=3, unique=True)):
            del cells[cell]
    world.held = {name: cells for name, cells in world.held.items() if cells}
    if world.held and draw(st.booleans()):
        change(world, draw(st.data()))
    new = [edited(model, draw(st.sampled_from(EDITS))) for model in models]
    return Edited(world, snapshots_of(graph), build_graph(new, [a_source()]))


def restatements(made: Edited) -> st.SearchStrategy[list[Restatement]]:
    """Some models, and the source, from some day to another one."""
    names = st.sampled_from([*made.loaded.order, "web.events"])
    days = st.integers(2, 8)
    return st.lists(
        st.builds(
            lambda name, first, more: Restatement(
                name, f"2024-01-{first:02d}", f"2024-01-{min(first + more, 9):02d}"
            ),
            names,
            days,
            st.integers(0, 3),
        ).filter(
            lambda restatement: (
                restatement.name in made.loaded.sources or _is_daily(made, restatement)
            )
        ),
        max_size=2,
    )


def _is_daily(made: Edited, restatement: Restatement) -> bool:
    return made.loaded.models[restatement.name].cadence.unit in (Unit.DAY, Unit.WEEK)


ALL = PlanRequest(environment=PROD, asked_by="ann")


@settings(max_examples=60, deadline=None)
@given(edited_worlds(), st.data())
def test_planned_kept_and_waiting_cells_are_apart_and_cover_what_is_required(
    made: Edited, data: st.DataObject
):
    plan = made.plan(replace(ALL, restate=tuple(data.draw(restatements(made))), select=("*",)))

    for planned in plan.models:
        model = made.loaded.models[planned.model]
        needed = required(model.cadence, now=NOW)
        assert not planned.cells & planned.kept
        assert not planned.waiting & (planned.cells | planned.kept)
        assert planned.cells | planned.kept | planned.waiting == needed
        assert IntervalSet.of(each.interval for each in planned.batches) == planned.cells


@settings(max_examples=60, deadline=None)
@given(edited_worlds(), st.data())
def test_applying_a_plan_and_planning_again_gives_the_empty_plan(made: Edited, data: st.DataObject):
    plan = made.plan(replace(ALL, restate=tuple(data.draw(restatements(made))), select=("*",)))

    after = applied(plan, made.state, made.known)

    again = made.plan(ALL, after)
    assert again.is_empty, plan_json(again)


@settings(max_examples=40, deadline=None)
@given(edited_worlds(), st.data())
def test_restating_more_never_plans_less(made: Edited, data: st.DataObject):
    more = data.draw(restatements(made))
    less = more[: data.draw(st.integers(0, len(more)))]
    some, all_of_it = (
        made.plan(replace(ALL, restate=tuple(these), select=("*",))) for these in (less, more)
    )

    for planned in some.models:
        other = all_of_it.model(planned.model)
        assert other is not None
        assert not planned.cells - other.cells
        assert not planned.certain - other.certain


@settings(max_examples=40, deadline=None)
@given(edited_worlds(), st.data())
def test_the_order_of_the_models_in_the_catalog_does_not_matter(made: Edited, data: st.DataObject):
    plan = made.plan(ALL)
    models = data.draw(st.permutations(list(made.loaded.models.values())))
    shuffled = replace(made, loaded=build_graph(models, [a_source()]))

    assert shuffled.plan(ALL) == plan


@settings(max_examples=40, deadline=None)
@given(edited_worlds(), st.data())
def test_a_plan_is_read_back_from_json_as_it_was_written(made: Edited, data: st.DataObject):
    plan = made.plan(replace(ALL, restate=tuple(data.draw(restatements(made)))))

    assert read_plan(plan_json(plan)) == plan


@settings(max_examples=40, deadline=None)
@given(edited_worlds())
def test_each_batch_waits_only_for_batches_before_it(made: Edited):
    plan = made.plan(ALL)

    done: set[tuple[str, int]] = set()
    for planned in plan.models:
        for number, batch in enumerate(planned.batches):
            assert set(batch.waits_for) <= done
            done.add((planned.model, number))


@settings(max_examples=60, deadline=None)
@given(edited_worlds(), st.data())
def test_nothing_reaches_past_a_strict_end_but_what_a_new_table_must_keep(
    made: Edited, data: st.DataObject
):
    restate = tuple(data.draw(restatements(made)))
    end = data.draw(st.sampled_from(["2024-01-04", "2024-01-07"]))
    asked = replace(ALL, restate=restate, select=("*",), end=end, end_bounded=True)

    try:
        plan = made.plan(asked)
    except OutsideLifeError:  # no model had begun by then
        reject()
    for planned in plan.models:
        cadence = made.loaded.models[planned.model].cadence
        if cadence.unit is not Unit.WHOLE and planned.build is not Build.NEW_VERSION:
            last = planned.cells.hull()
            assert last is None or last.end <= end_at(end, cadence.tz)
