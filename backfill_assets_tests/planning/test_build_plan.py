"""What a plan refuses, what it keeps apart, what moves under it, and what is left to do in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backfill_assets.errors import BackfillAssetsError, DeclarationError, RequestError
from backfill_assets.intervals import Daily, IntervalSet
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.instants import InstantFormatError
from backfill_assets.intervals.parse_range import OutsideLifeError, ReversedRangeError
from backfill_assets.models.audit import row_rule
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.left import left_to_do
from backfill_assets.planning.plan.plan import Build, Change, ModelPlan, Plan, Why
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import Category, PlanRequest, Restatement, Strategy
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.stale_inputs import moved_inputs
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.loaded import Reads
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, SourceState, StateView
from backfill_assets_tests.builders import (
    COLUMNS,
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_whole,
    day,
    days,
    stamps,
)

NOW = FIRST + timedelta(days=10)
TWICE = "SELECT ds, id, cost * 2 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
GRAPH = a_graph(
    a_model("web.a", tags={"tier": "gold"}), a_model("web.b", upstreams=["web.a"], owner="team:ads")
)


def a_state(graph: Graph = GRAPH, **ready: IntervalSet) -> PlanState:
    """Prod runs the graph; all of January's first ten days are ready unless said otherwise."""
    prints = snapshots_of(graph)
    models = {
        name: ModelState(
            Pointer(PROD, name, prints[name].fingerprint.id, prints[name].version, 7),
            tuple(
                ReadyRun(each, at, stamps(at), f"b{at}")
                for each in ready.get(name.partition(".")[2], IntervalSet.of([day(1, 10)]))
            ),
        )
        for at, name in enumerate(graph.order, 1)
    }
    view = StateView(Environment(PROD, protected=True), models, counter=50)
    return PlanState(view=view, running=prints)


def a_plan(graph: Graph = GRAPH, state: PlanState | None = None, **asked: Any) -> Plan:  # noqa: ANN401
    """The plan for prod of a request."""
    request = PlanRequest(environment=PROD, asked_by="ann", **asked)
    return build_plan(request, graph, state or a_state(), NOW)


def edited(**declared: Any) -> Graph:  # noqa: ANN401
    """The graph with another web.a."""
    return a_graph(a_model("web.a", **declared), GRAPH.models["web.b"])


def test_a_new_table_with_a_rarer_cron_takes_no_published_cell_from_its_readers():
    graph = edited(sql=TWICE, cadence=Daily(start="2024-01-01", cron="0 5 * * 1"))

    planned = a_plan(graph).model("web.a")

    assert planned is not None
    assert planned.build is Build.NEW_VERSION
    assert planned.cells == IntervalSet.of([day(1, 10)])


@pytest.mark.parametrize("asked", [{}, {"start": "2024-01-08"}])
def test_a_published_cell_that_a_rarer_cron_calls_due_later_is_planned_where_it_is_wrong(
    asked: dict[str, Any],
):
    graph = edited(cadence=Daily(start="2024-01-01", cron="0 5 * * 1"))

    plan = a_plan(graph, restate=(Restatement("web.a", "2024-01-09", "2024-01-09"),), **asked)

    assert {model.model: model.cells for model in plan.models if model.cells} == {
        "web.a": IntervalSet.of([day(9)]),
        "web.b": IntervalSet.of([day(9)]),
    }


def test_a_plan_says_what_it_has_clipped_of_a_range_and_which_models_the_range_misses():
    later = Daily(start="2024-02-01", end="2024-02-10")
    graph = a_graph(*GRAPH.models.values(), a_model("web.later", cadence=later))
    state = a_state(graph, a=IntervalSet.of([day(2, 9)]))

    early = a_plan(graph, state, start="2020-01-01", end="2024-01-08")
    open_end = a_plan(state=state, start="2020-01-01")
    future = a_plan(
        state=a_state(a=IntervalSet.of([day(1, 8)])), start="2024-01-08", end="2024-01-20"
    )

    [clipped, opened, cut] = [plan.models[0].notes[0] for plan in (early, open_end, future)]
    assert clipped == "clipped to the model's life: 2024-01-01..2024-01-08 (8)"
    assert opened == "clipped to the model's life: 2024-01-01..2024-01-10 (10)"
    assert cut == "without cells that are not due yet: 2024-01-08..2024-01-10 (3)"
    assert [note.partition(": the range")[0] for note in early.notes] == ["web.later: left out"]


RESTATED = (Restatement("web.a", "2024-01-03", "2024-01-04"),)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"select": ("web.moon",)}, RequestError, "no model or source 'web.moon'"),
        ({"select": ("sea.*",)}, RequestError, "selects no model"),
        ({"select": ("tag:tier=tin",)}, RequestError, "selects no model"),
        ({"select": ("", " ")}, RequestError, "'' selects no model"),
        ({"restate": (Restatement("web.moon"),)}, RequestError, "no model or source 'web.moon'"),
        (
            {"restate": (Restatement("web.a", "2019-01-01", "2019-01-05"),)},
            OutsideLifeError,
            "2019",
        ),
        (
            {"restate": (Restatement("web.a", "2030-01-01"),)},
            RequestError,
            "the start 2030-01-01 lies in the future",
        ),
        ({"start": "2030-01-01"}, RequestError, "the start 2030-01-01 lies in the future"),
        ({"start": "2024-01-05", "end": "2024-01-03"}, ReversedRangeError, "holds no time"),
        ({"start": "soon"}, InstantFormatError, "soon"),
        ({"end": "2019-01-01"}, OutsideLifeError, "2019"),
        ({"start": "2019-01-01", "end": "2019-02-01"}, OutsideLifeError, "2019"),
        ({"where": "id = 1"}, RequestError, "add --restate MODEL"),
        (
            {"restate": RESTATED, "where": "ID = 1 AND kost > 2"},
            RequestError,
            "names 'kost', which is no column of 'web.a'; did you mean 'cost'?",
        ),
        (
            {"restate": RESTATED, "where": "id = 1 OR SUM(cost) > 2"},
            RequestError,
            "is about several rows at once",
        ),
        ({"restate": RESTATED, "where": "every(cost > 2)"}, RequestError, "several rows at once"),
        (
            {"restate": RESTATED, "where": "ROW_NUMBER() OVER (ORDER BY id) = 1"},
            RequestError,
            "without aggregates, windows and generators",
        ),
        (
            {"restate": (Restatement("web.events", "2024-01-03"),), "select": ("web.b",)},
            RequestError,
            "no selected model reads the restated source 'web.events'; select web.a too",
        ),
        ({"restate_all_snapshots": True}, RequestError, "widens a restatement"),
        ({"effective_from": "2024-01-05"}, RequestError, "add --forward-only"),
        ({"cutoff": "2024-01-05"}, RequestError, "say why with --reason"),
        (
            {"cutoff": "2030-01-05", "reason": "old data"},
            RequestError,
            "the cutoff 2030-01-05 lies in",
        ),
        (
            {"forward_only": True, "effective_from": "2030-01-05"},
            RequestError,
            "the effective date 2030",
        ),
        ({"empty": True, "restate": RESTATED}, RequestError, "use one of them"),
        ({"dual_run_days": -1}, RequestError, "is no number of days"),
        ({"dual_run_days": 5}, RequestError, "no model has that strategy"),
        (
            {
                "dual_run_days": 5,
                "strategies": (("web.a", Strategy.DUAL_RUN),),
                "pause_schedules": True,
            },
            RequestError,
            "fills both histories",
        ),
        (
            {"categories": (("web.moon", Category.BREAKING),)},
            RequestError,
            "no model or source 'web.moon'",
        ),
        (
            {"strategies": (("web.moon", Strategy.DUAL_RUN),)},
            RequestError,
            "no model or source 'web.moon'",
        ),
        (
            {"categories": (("web.a", Category.BREAKING),)},
            RequestError,
            "'web.a' was declared breaking",
        ),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_met_is_refused(
    asked: dict[str, Any], error: type[BackfillAssetsError], words: str
):
    with pytest.raises(error, match=words):
        a_plan(**asked)


def test_patterns_of_which_any_may_match_are_asked_of_single_rows():
    plan = a_plan(restate=RESTATED, where="CAST(id AS STRING) LIKE ANY ('1%', '2%')")
    assert plan.model("web.a") is not None


@pytest.mark.parametrize(
    ("declared", "category"),
    [
        ({"sql": TWICE}, Category.METADATA),
        ({"unique_key": ["id"], "sql": TWICE}, Category.NON_BREAKING),
        ({"unique_key": ["id"]}, Category.FORWARD_ONLY),
        ({"owner": "team:other"}, Category.BREAKING),
    ],
    ids=str,
)
def test_a_category_that_contradicts_the_difference_is_refused(
    declared: dict[str, Any], category: Category
):
    with pytest.raises(RequestError, match=f"was declared {category.value}, but"):
        a_plan(edited(**declared), categories=(("web.a", category),))


def test_a_model_that_reads_what_changes_is_no_change_of_words():
    with pytest.raises(RequestError, match=r"'web.b' was declared metadata, but it reads what"):
        a_plan(edited(sql=TWICE), categories=(("web.b", Category.METADATA),))


def a_function(text: str, **changes: Any) -> Graph:  # noqa: ANN401
    query = ModuleQuery(
        "f", "m", (StoredModule("m", f"def f(inputs, interval):\n    return {text}\n"),)
    )
    return a_graph(a_model("web.a", query=query, **changes), a_model("web.b", upstreams=["web.a"]))


def test_an_edit_of_a_python_model_is_breaking_until_a_person_says_that_it_is_not():
    before, after = a_function("1 + 1"), a_function("2")
    asked = {"categories": (("web.a", Category.METADATA),)}

    unasked = a_plan(after, a_state(before)).model("web.a")
    plan = a_plan(after, a_state(before), **asked)

    assert unasked is not None
    assert (unasked.category, unasked.decided_by) == (Category.BREAKING, "planner")
    a, b = plan.model("web.a"), plan.model("web.b")
    assert a is not None
    assert (a.category, a.decided_by, a.build) == (Category.METADATA, "ann", Build.POINTER)
    assert "the planner found: breaking (the function" in a.category_reason
    assert b is None or b.build is Build.POINTER
    assert not any(model.work for model in plan.models)


def test_a_state_whose_functions_an_older_release_bundled_rebuilds_nothing():
    now = a_function("1 + 1")
    stored = FunctionQuery("f", "def f(inputs, interval):\n    return 1 + 1\n")
    then = a_graph(a_model("web.a", query=stored), a_model("web.b", upstreams=["web.a"]))

    assert not a_plan(now, a_state(then)).models


def test_a_python_reader_of_an_added_column_says_which_column_it_may_read():
    function = a_function("1").models["web.a"].query
    reader = a_model("web.b", query=function, upstreams=["web.a"])
    wider = a_model(
        "web.a",
        sql=TWICE.replace("cost * 2 AS cost", "cost, cost * 2 AS twice"),
        columns=[*COLUMNS, Column("twice", "double")],
    )

    planned = a_plan(a_graph(wider, reader), a_state(a_graph(a_model("web.a"), reader))).model(
        "web.b"
    )

    assert planned is not None
    assert (planned.category, planned.category_reason) == (
        Category.BREAKING,
        "may read any column of web.a, where twice differs",
    )


def test_no_person_can_call_another_key_of_a_python_model_metadata():
    with pytest.raises(RequestError, match=r"was declared .*another unique key"):
        a_plan(
            a_function("2", unique_key=["id"]),
            a_state(a_function("1")),
            categories=(("web.a", Category.METADATA),),
        )


def test_a_persons_category_is_recorded_with_the_person():
    plan = a_plan(edited(sql=TWICE), categories=(("web.a", Category.NON_BREAKING),))

    a, b = plan.model("web.a"), plan.model("web.b")
    assert a is not None
    assert (a.category, a.decided_by, a.build) == (Category.NON_BREAKING, "ann", Build.NEW_VERSION)
    assert "breaking" in a.category_reason
    assert b is not None
    assert b.build is Build.POINTER
    assert b.category_reason.startswith("decided upstream; its cells are not built again: those")


def test_a_plan_says_that_cells_of_a_reader_which_a_person_spares_may_be_stale_afterwards():
    b = a_plan(edited(sql=TWICE), categories=(("web.b", Category.NON_BREAKING),)).model("web.b")

    assert b is not None
    assert (b.category, b.build) == (Category.NON_BREAKING, Build.POINTER)
    (note,) = b.notes
    assert "those that read another content are stale after the promotion" in note


@pytest.mark.parametrize(
    ("declared", "asked", "kept"),
    [
        ({}, {}, True),
        ({"sql": TWICE}, {"cutoff": "2024-01-05", "reason": "old"}, True),
        ({"sql": TWICE}, {"forward_only": True}, False),
        ({"sql": TWICE}, {}, False),
    ],
    ids=str,
)
def test_a_plan_says_that_published_cells_get_new_audits_where_it_keeps_them(
    declared: dict[str, Any], asked: dict[str, Any], *, kept: bool
):
    a = a_plan(edited(audits=[row_rule("dear", "cost > 0")], **declared), **asked).model("web.a")

    assert a is not None
    assert any("its audits change" in note for note in a.notes) is kept


@pytest.mark.parametrize(
    "asked", [{"forward_only": True}, {"cutoff": "2024-01-05", "reason": "old"}], ids=str
)
def test_a_table_that_keeps_its_history_loses_no_column(asked: dict[str, Any]):
    sql = "SELECT ds, id FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    calm = a_graph(a_model("web.a"))
    without = a_graph(a_model("web.a", sql=sql, columns=COLUMNS[:2]))

    with pytest.raises(RequestError, match="cost is removed or of another type"):
        a_plan(without, a_state(calm), **asked)
    respelled = a_model("web.a", columns=(*COLUMNS[:2], replace(COLUMNS[2], dtype="DEC(18, 2)")))
    assert a_plan(a_graph(respelled), a_state(calm), **asked).model("web.a") is not None


def test_what_counts_from_now_on_alone_repairs_nothing_and_copies_nothing_back():
    plan = a_plan(edited(sql=TWICE), forward_only=True)

    a = plan.model("web.a")
    assert a is not None
    assert (a.build, a.strategy, a.cells) == (Build.IN_PLACE, None, IntervalSet())
    assert plan.rollback == "pointers move back at once, no data moves"


def test_readers_of_a_model_with_a_cutoff_are_told_that_its_newer_cells_may_change():
    plan = a_plan(edited(sql=TWICE), cutoff="2024-01-05", reason="agreed")

    b = plan.model("web.b")
    assert b is not None
    assert b.category_reason == "of web.a, only cells that the plan builds again may change"
    assert b.cells


def test_a_model_that_is_not_declared_any_more_can_not_be_restated():
    left = a_graph(a_model("web.a"))
    with pytest.raises(RequestError, match=r"'web.b' is restated, and is not declared any more"):
        a_plan(left, a_state(), restate=(Restatement("web.b", "2024-01-03"),))


def test_a_model_that_others_read_cannot_be_removed():
    lonely = a_graph(a_model("web.b", sql=TWICE))

    with pytest.raises(DeclarationError, match=r"'web.a' is not declared any more, but web.b"):
        a_plan(lonely, select=("web.a",))


def test_a_new_upstream_comes_along_unless_it_is_to_be_left_out():
    more = a_graph(
        *GRAPH.models.values(), a_model("web.new"), a_model("web.c", upstreams=["web.new"])
    )

    assert [model.model for model in a_plan(more, select=("web.c",)).models] == ["web.new", "web.c"]
    with pytest.raises(RequestError, match=r"reads .web\.new., which .* is not selected"):
        a_plan(more, select=("web.c",), skip_upstream=True)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("web.a", {"web.a"}),
        ("web.a+", {"web.a", "web.b"}),
        ("+web.b", {"web.a", "web.b"}),
        ("web.events+", {"web.a", "web.b"}),
        ("web.*", {"web.a", "web.b"}),
        ("tag:tier=gold", {"web.a"}),
        ("tag:tier", {"web.a"}),
        ("owner:ads", {"web.b"}),
        ("owner:team:ads", {"web.b"}),
    ],
)
def test_selectors(selector: str, names: set[str]):
    assert selected(GRAPH, [selector]) == tuple(name for name in GRAPH.order if name in names)


def test_a_version_that_was_built_elsewhere_is_not_built_again():
    new = edited(sql=TWICE)
    version = snapshots_of(new)["web.a"].version
    held = ModelState(
        Pointer("dev_x", "web.a", "f", version, 3), (ReadyRun(day(1, 8), 20, stamps(20), "dev"),)
    )

    plan = a_plan(new, replace(a_state(), built={version: held}))

    a = plan.model("web.a")
    assert a is not None
    assert (a.cells, a.kept) == (days(9, 10), IntervalSet.of([day(1, 8)]))


def test_a_table_that_holds_cells_outside_of_the_new_life_is_not_taken_for_the_new_version():
    new = edited(sql=TWICE, cadence=Daily(start="2024-01-03"))
    version = snapshots_of(new)["web.a"].version
    pointer = Pointer("prod", "web.a", "f", version, 3)

    def planned(first: int) -> ModelPlan:
        runs = (ReadyRun(day(first, 6), 20, stamps(20), "before"),)
        planned = a_plan(new, replace(a_state(), built={version: ModelState(pointer, runs)})).model(
            "web.a"
        )
        assert planned is not None
        return planned

    inside, outside = planned(3), planned(2)

    assert (inside.version, inside.cells) == (version, days(9, 10))
    assert outside.version != version
    assert outside.cells == days(*range(3, 11))


def test_a_table_that_holds_another_logics_rows_is_not_taken_for_the_new_version():
    state = a_state(edited(sql=TWICE))
    version = snapshots_of(GRAPH)["web.a"].version
    held = state.view.models["web.a"]
    pointing = {"web.a": replace(held, pointer=replace(held.pointer, version=version))}
    view = replace(state.view, models={**state.view.models, **pointing})

    a = a_plan(state=replace(state, view=view)).model("web.a")

    assert a is not None
    assert a.version != version


def test_a_window_on_prod_does_not_take_history_from_its_readers():
    a = a_plan(edited(sql=TWICE), start="2024-01-09").model("web.a")

    assert a is not None
    assert a.cells == IntervalSet.of([day(1, 10)])
    assert any("widened" in note for note in a.notes)


def test_two_plans_on_the_same_cells_are_in_each_others_way():
    first = a_plan(restate=RESTATED)
    elsewhere = replace(a_state(), open_plans=(first,))

    same = a_plan(state=elsewhere, restate=(Restatement("web.a", "2024-01-04", "2024-01-05"),))
    other = a_plan(state=elsewhere, restate=(Restatement("web.a", "2024-01-07", "2024-01-08"),))

    assert [(model.model, model.cells, model.blocks) for model in same.in_flight] == [
        ("web.a", days(4), True),
        ("web.b", days(4), True),
    ]
    assert first.plan_id in same.in_flight[0].who
    assert other.in_flight == ()


def test_a_plan_that_moves_a_model_to_another_table_is_in_the_way_of_one_that_builds_no_cell_of_it():
    moving = a_plan(edited(sql=TWICE))

    words = a_plan(edited(owner="team:other"), replace(a_state(), open_plans=(moving,)))

    assert [(found.model, found.cells, found.blocks) for found in words.in_flight] == [
        ("web.a", IntervalSet.empty(), True)
    ]


def test_plans_of_two_environments_are_in_each_others_way_only_in_a_new_table_that_both_would_build():
    def in_the_way(theirs: Plan, graph: Graph = GRAPH, **asked: Any) -> list[str]:  # noqa: ANN401
        there = replace(a_state(), open_plans=(replace(theirs, environment="dev"),))
        return [found.model for found in a_plan(graph, there, **asked).in_flight]

    once, twice = edited(sql=TWICE.replace("* 2", "* 1")), edited(sql=TWICE)

    assert in_the_way(a_plan(restate=RESTATED), restate=RESTATED) == []
    assert in_the_way(a_plan(once), twice) == []
    assert in_the_way(a_plan(twice), twice) == ["web.a", "web.b"]


def test_a_batch_that_runs_on_planned_cells_is_named_and_blocks_nothing():
    view = replace(a_state().view, claimed=CellsByModel({"web.a": days(2, 3)}))

    plan = a_plan(state=replace(a_state(), view=view), restate=RESTATED)

    assert [(found.model, found.cells, found.blocks) for found in plan.in_flight] == [
        ("web.a", days(3), False)
    ]


def test_the_way_back_is_a_commit_where_cells_are_rewritten_and_a_pointer_where_tables_are_new():
    rewritten, moved = (
        "changed cells are brought back in one commit per model",
        "pointers move back",
    )

    assert a_plan(restate=RESTATED).rollback == rewritten
    assert a_plan(edited(sql=TWICE)).rollback == f"{moved} at once, no data moves"
    assert a_plan(state=a_state(a=days(1), b=days(1))).rollback.startswith("nothing")


def test_only_a_plan_that_publishes_has_a_gate():
    assert a_plan(restate=RESTATED).gates == ("explicit promote",)
    assert a_plan(state=a_state(a=days(1, 2), b=days(1, 2))).gates == ()


def rebuilt(state: PlanState, name: str, cell: int, at: int, **columns: int) -> StateView:
    """The view after a cell was built again."""
    held = state.view.models[name]
    kept = [
        replace(run, interval=each)
        for run in held.runs
        for each in IntervalSet.of([run.interval]) - days(cell)
    ]
    changed = stamps(columns.pop("rows", 1), **columns) if columns else stamps(at)
    runs = (*kept, ReadyRun(day(cell), at, changed, f"b{at}"))
    return replace(state.view, models={**state.view.models, name: replace(held, runs=runs)})


def test_nothing_has_moved_under_a_fresh_plan():
    assert moved_inputs(a_plan(restate=RESTATED), GRAPH, a_state().view) == ()


def test_a_planned_cell_that_was_built_again_has_moved():
    plan = a_plan(restate=RESTATED)

    found = moved_inputs(plan, GRAPH, rebuilt(a_state(), "web.a", 3, at=60))

    (stale_input,) = found
    assert (stale_input.model, stale_input.of, stale_input.what) == (
        "web.a",
        "web.a",
        "2024-01-03 built again since",
    )
    assert moved_inputs(plan, GRAPH, rebuilt(a_state(), "web.a", 7, at=60)) == ()


def test_a_gap_that_was_filled_since_has_not_moved():
    nine = IntervalSet.of([day(1, 9)])
    state = a_state(a=nine, b=nine)
    plan = a_plan(state=state, restate=RESTATED)

    a = plan.model("web.a")
    assert a is not None
    assert (a.build, a.cells) == (Build.IN_PLACE, days(3, 4, 10))
    assert moved_inputs(plan, GRAPH, rebuilt(state, "web.a", 10, at=60)) == ()


def test_a_new_table_of_a_model_that_reads_itself_is_not_moved_by_cells_of_the_old_one():
    upstreams = [EVENTS, Upstream("web.a", lookback=1)]
    before = a_graph(a_model("web.a", upstreams=upstreams))
    wider = [*COLUMNS[:2], Column("cost", "double")]
    state = a_state(before)
    plan = a_plan(a_graph(a_model("web.a", upstreams=upstreams, columns=wider)), state)

    a = plan.model("web.a")
    assert a is not None
    assert (a.build, [read.upstream for read in a.reads]) == (Build.NEW_VERSION, [EVENTS, "web.a"])
    assert moved_inputs(plan, before, rebuilt(state, "web.a", 3, at=60)) == ()


def test_only_columns_that_are_read_move_a_plan():
    sql = "SELECT ds, id, 1 AS cost FROM web.a WHERE ds >= :start_ds AND ds < :end_ds"
    graph = a_graph(a_model("web.a"), a_model("web.b", upstreams=["web.a"], sql=sql))
    state = a_state(graph)
    plan = a_plan(graph, state, restate=(Restatement("web.b", "2024-01-03", "2024-01-04"),))

    assert moved_inputs(plan, graph, rebuilt(state, "web.a", 3, at=60, cost=60)) == ()
    (stale_input,) = moved_inputs(plan, graph, rebuilt(state, "web.a", 3, at=60, id=60))
    assert (stale_input.model, stale_input.of) == ("web.b", "web.a")
    assert stale_input.what == "2024-01-03 changed since in id"


def test_of_what_a_plan_reads_the_columns_that_changed_are_named_and_that_rows_came_or_went():
    state = a_state()
    plan = a_plan(state=state, restate=(Restatement("web.b", "2024-01-03", "2024-01-06"),))
    one = rebuilt(state, "web.a", 3, at=60, cost=60)
    both = rebuilt(replace(state, view=one), "web.a", 4, at=61, rows=61)

    (other_cost,) = moved_inputs(plan, GRAPH, one)
    (other_rows,) = moved_inputs(plan, GRAPH, both)

    assert other_cost.what == "2024-01-03 changed since in cost"
    assert (
        other_rows.what
        == "2024-01-03..2024-01-04 (2) changed since in cost, and with rows that came or went"
    )
    (rows_alone,) = moved_inputs(plan, GRAPH, rebuilt(state, "web.a", 4, at=61))
    assert rows_alone.what == "2024-01-04 changed since with rows that came or went"


def test_a_pointer_that_moved_is_named():
    state = a_state()
    held = state.view.models["web.a"]
    other = replace(held, pointer=replace(held.pointer, version="web__a__else"))
    view = replace(state.view, models={**state.view.models, "web.a": other})

    found = moved_inputs(a_plan(restate=RESTATED), GRAPH, view)

    assert "web__a__else" in found[0].what


def test_a_plan_that_fills_gaps_goes_on_where_its_table_has_got_other_words():
    gaps = a_state(a=days(1, 2), b=days(1, 2))
    held = gaps.view.models["web.a"]
    words = replace(held, pointer=replace(held.pointer, fingerprint="other"))
    view = replace(gaps.view, models={**gaps.view.models, "web.a": words})

    rewriting = a_plan(state=gaps, restate=(Restatement("web.a", "2024-01-02", "2024-01-02"),))

    assert moved_inputs(a_plan(state=gaps), GRAPH, view) == ()
    assert [moved.of for moved in moved_inputs(rewriting, GRAPH, view)] == ["web.a"]


def test_what_is_left_is_what_the_rule_finds_inside_the_plan():
    state = a_state(a=days(1, 2, 3), b=days(1, 2, 3))
    plan = a_plan(state=state, start="2024-01-03", end="2024-01-05")
    after = a_state(a=days(1, 2, 3, 4, 5), b=days(1, 2, 3, 4)).view

    assert left_to_do(plan, GRAPH, state.view, NOW, Reads(GRAPH)) == {
        "web.a": days(4, 5),
        "web.b": days(4, 5),
    }
    assert left_to_do(plan, GRAPH, after, NOW, Reads(GRAPH)) == {"web.b": days(5)}


def test_a_gap_that_is_filled_is_not_left_though_its_source_has_late_rows_since():
    """A plan fills gaps where readers are; a stale one there is no work of the plan's workspace."""
    state = a_state(a=days(1, 2, 3), b=days(1, 2, 3))
    plan = a_plan(state=state, start="2024-01-03", end="2024-01-05")
    filled = a_state(a=days(1, 2, 3, 4, 5), b=days(1, 2, 3, 4, 5)).view
    read = {
        name: replace(held, runs=tuple(replace(run, own=False) for run in held.runs))
        for name, held in filled.models.items()
    }
    late = SourceState(
        Pointer("", EVENTS, "", "", 4), (ReadyRun(day(4), 40, stamps(40), "", own=False),)
    )
    workspace = replace(
        filled,
        environment=Environment("plan:p1", protected=False, opened=30),
        models=read,
        sources={EVENTS: late},
    )

    assert {planned.build for planned in plan.models} == {Build.GAP_FILL}
    assert needs_work(GRAPH, workspace, GRAPH.model("web.a"), now=NOW).late_cells == days(4)
    assert left_to_do(plan, GRAPH, workspace, NOW, Reads(GRAPH)) == {}


def test_an_added_column_keeps_the_order_of_diff_and_strategy():
    sql = "SELECT ds, id, cost, id AS extra FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    new = edited(sql=sql, columns=(*COLUMNS, Column("extra", "bigint")))

    a = a_plan(new).model("web.a")

    assert a is not None
    assert a.strategy is Strategy.COLUMN_ENRICHMENT
    assert "extra" in a.diff


def test_published_cells_are_never_recorded_as_empty():
    words = r"blank 10 published cells of 'web.a': 2024-01-01..2024-01-10 \(10\)"
    with pytest.raises(RequestError, match=words):
        a_plan(edited(sql=TWICE), empty=True)
    with pytest.raises(RequestError, match=r"blank 10 published cells of 'web.a'"):
        # a new table of prod holds all that is published
        a_plan(edited(sql=TWICE), empty=True, start="2024-01-09")
    with pytest.raises(RequestError, match="To keep their old rows under a changed model"):
        a_plan(edited(sql=TWICE), empty=True, cutoff="2024-01-05", reason="old")


def test_what_a_development_environment_reads_of_prod_is_not_blanked_either():
    state = a_state()
    dev = Environment("dev_x", protected=False, follows=PROD)
    there = replace(state, view=replace(state.view, environment=dev))
    with pytest.raises(RequestError, match="To keep their old rows under a changed model"):
        a_plan(edited(sql=TWICE), there, empty=True)


def test_cells_that_nobody_has_published_are_recorded_as_empty_by_no_strategy():
    state = a_state(a=IntervalSet.of([day(6, 5)]), b=IntervalSet.of([day(6, 5)]))
    plan = a_plan(state=state, empty=True)
    assert [(model.model, model.cells, model.strategy) for model in plan.models] == [
        ("web.a", IntervalSet.of([day(1, 5)]), None),
        ("web.b", IntervalSet.of([day(1, 5)]), None),
    ]


def test_stale_and_owed_cells_stay_as_they_are_in_a_plan_that_computes_nothing():
    state = a_state()
    owed = replace(state.view, owed=CellsByModel({"web.a": IntervalSet.of([day(3)])}))
    assert not a_plan(state=replace(state, view=owed)).is_empty
    assert a_plan(state=replace(state, view=owed), empty=True).is_empty


def test_an_end_that_takes_published_cells_away_is_breaking():
    cadence = replace(GRAPH.models["web.a"].cadence, end=FIRST + timedelta(days=6))

    plan = a_plan(edited(cadence=cadence))

    model = plan.model("web.a")
    assert model is not None
    assert model.category is Category.BREAKING
    assert "2024-01-07..2024-01-10 (4) away" in model.category_reason


def test_cells_that_read_what_a_new_life_takes_away_are_built_again():
    cadence = replace(GRAPH.models["web.a"].cadence, end=FIRST + timedelta(days=6))

    two = a_plan(edited(cadence=cadence)).model("web.b")

    assert two is not None
    assert (two.change, two.build) == (Change.UNCHANGED, Build.IN_PLACE)
    assert [(work.why, work.cells, work.certain) for work in two.work] == [
        (Why.UPSTREAM_CHANGED, IntervalSet.of([day(7, 4)]), True)
    ]
    with pytest.raises(RequestError, match=r"takes 2024-01-07.* away, which 'web.b' reads"):
        a_plan(edited(cadence=cadence), select=("web.a",))


@pytest.mark.parametrize(
    ("declared", "category", "lost"),
    [
        ({"sql": TWICE}, Category.BREAKING, True),
        ({"description": "other words"}, Category.METADATA, False),
    ],
    ids=str,
)
def test_a_new_table_leaves_out_what_was_kept_outside_the_life_and_what_read_it_is_built_again(
    declared: dict[str, Any], category: Category, *, lost: bool
):
    cadence = replace(GRAPH.models["web.a"].cadence, end=FIRST + timedelta(days=6))
    running = a_state(edited(cadence=cadence))  # after a forward-only plan that shortened it

    plan = a_plan(edited(cadence=cadence, **declared), running)

    first, second = plan.model("web.a"), plan.model("web.b")
    assert first is not None
    assert first.category is category
    assert ("2024-01-07..2024-01-10 (4) away" in first.category_reason) == lost
    told = () if second is None else second.work
    assert any(work.certain and day(7, 4) in work.cells for work in told) == lost


def test_an_end_that_takes_nothing_away_is_metadata():
    cadence = replace(GRAPH.models["web.a"].cadence, end=FIRST + timedelta(days=60))

    model = a_plan(edited(cadence=cadence)).model("web.a")

    assert model is not None
    assert model.category is Category.METADATA


@pytest.mark.parametrize(
    ("reopens", "late_window", "left"),
    [(Reopens.NEVER, 0, []), (Reopens.LATE_WINDOW, 2, ["2024-01-09..2024-01-10 (2)"])],
)
def test_past_a_strict_end_only_cells_that_a_dimension_reopens_are_called_stale_later(
    reopens: Reopens, late_window: int, left: list[str]
):
    up = Upstream("web.whole", reopens=reopens)
    days_of_it = a_model("web.days", upstreams=["web.a", up], late_window=late_window)
    graph = a_graph(a_model("web.a"), a_whole("web.whole", upstreams=["web.a"]), days_of_it)
    state = a_state(graph, whole=IntervalSet.of([WHOLE_CELL]))
    plan = a_plan(graph, state, restate=RESTATED, end_bounded=True)

    said = [note for each in plan.models for note in each.notes if "past the requested end" in note]

    assert [note.split("end: ")[1].split(";")[0] for note in said] == left


@pytest.mark.parametrize("name", ["web.a", "web.events"])
def test_a_restatement_of_what_is_not_due_says_so(name: str):
    weekly = edited(cadence=Daily(start="2024-01-01", cron="0 5 * * 1"))
    state = a_state(weekly, a=IntervalSet.of([day(1, 7)]), b=IntervalSet.of([day(1, 7)]))
    plan = a_plan(weekly, state, restate=(Restatement(name, "2024-01-09"),), select=("web.a",))

    assert plan.is_empty
    said = f"nothing follows from restating {name}: no cell that is due lies in the named range"
    assert said in plan.notes


def test_readers_of_what_is_restated_are_named_where_the_selection_leaves_them_out():
    plan = a_plan(restate=RESTATED, select=("web.a",))

    assert "not selected, and left as they are: web.b, which read the restated web.a" in plan.notes
    assert not any("not selected" in note for note in a_plan(restate=RESTATED).notes)


def test_a_restated_range_of_a_source_says_in_which_zone_it_is_meant():
    plan = a_plan(restate=(Restatement("web.events", "2024-01-03", "2024-01-04"),))

    assert "the range of web.events is meant in its own zone, UTC" in plan.notes
