"""Why a published number changed: the parts name every cause, and sum exactly to the difference."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.engine.review.reviewed import built_plan
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, IntervalSet, Weekly
from backfill_assets.models.column import Column
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.state.store import Store
from backfill_assets.state.tables import VERSIONS
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import on, row

if TYPE_CHECKING:
    from backfill_assets.engine.review.explaining import ExplainedNumber
    from backfill_assets.intervals import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

DOUBLED: Graph = a_graph(visits(), costs("cost * 2"))


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def later(world: World) -> None:
    world.clock.now += timedelta(minutes=1)


def told(found: ExplainedNumber) -> list[tuple[str, Any, list[str]]]:
    """Per part: what happened, how much it added, and why."""
    return [
        (
            "+".join(found.steps[each.step].what for each in part.happened),
            part.difference,
            [
                f"{cause.kind.value} {cause.subject}".strip()
                for each in part.happened
                for cause in each.causes
            ],
        )
        for part in found.explained.parts
    ]


def story(world: World, plans: Plans) -> None:
    """Fill, restate with late rows, change the logic, roll back."""
    world.begin(OLD, *ROWS)
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.5)))
    plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    later(world)
    plan = plans.published(DOUBLED)
    later(world)
    rollback_plan(plans.project(DOUBLED), plan)


def test_each_step_of_a_story_is_named_and_the_parts_sum(world: World, plans: Plans):
    story(world, plans)
    run = world.open(OLD)
    found = explain_number(run, run.graph.model(COSTS), days(8), "total", (None, None))
    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("promote", Decimal("72.50"), [f"late rows {EVENTS}"]),
        ("promote", Decimal("80.50"), [f"logic {COSTS}"]),
        ("rollback", Decimal("-80.50"), ["rollback"]),
    ]
    assert found.explained.difference == Decimal("80.50")
    assert (found.explained.before, found.explained.after) == (Decimal(0), Decimal("80.50"))


def test_what_a_plan_had_read_is_not_known_after_the_state_was_lost(world: World, plans: Plans):
    story(world, plans)
    with Store.open(
        f"sqlite:///{world.root}/again.db", clock=world.clock, data_root=str(world.root)
    ) as store:
        rebuild_state(store, OLD, read_logs(OLD, str(world.root)))
        run = replace(world, store=store).open(OLD)
        found = explain_number(run, run.graph.model(COSTS), days(8), "total", (None, None))
    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("batch", Decimal("72.50"), [f"unknown {COSTS}"]),
    ]


def test_the_row_count_needs_no_table(world: World, plans: Plans):
    story(world, plans)
    for path in world.root.glob("tables/**/*.parquet"):
        path.unlink()
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "*", (None, None))
    assert told(found) == [("batch", Decimal(1), ["first build"])]
    assert found.explained.equal == 3


def test_a_range_is_split_by_publication_not_by_cell(world: World, plans: Plans):
    story(world, plans)
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(7, 8, 9), "total", (None, None))
    assert told(found) == [
        ("batch", Decimal(24), ["first build"]),
        ("promote", Decimal("72.50"), [f"late rows {EVENTS}"]),
        ("promote", Decimal("96.50"), [f"logic {COSTS}"]),
        ("rollback", Decimal("-96.50"), ["rollback"]),
    ]
    assert found.explained.parts[1].cells == days(8)


def test_only_what_was_published_between_the_two_moments_counts(world: World, plans: Plans):
    story(world, plans)
    began = world.clock.now - timedelta(minutes=3)
    run, model = world.open(OLD), OLD.model(COSTS)
    middle = (began + timedelta(seconds=90), began + timedelta(seconds=150))
    found = explain_number(run, model, days(8), "total", middle)
    assert (found.explained.before, found.explained.after) == (Decimal("80.50"), Decimal(161))
    assert told(found) == [("promote", Decimal("80.50"), [f"logic {COSTS}"])]
    before = began - timedelta(days=1)
    nothing = explain_number(run, model, days(8), "total", (before, before))
    assert (nothing.explained.difference, nothing.is_published) == (Decimal(0), (False, False))


def test_late_rows_and_logic_that_one_plan_brings_are_named_together(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plans.published(DOUBLED, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    found = explain_number(world.open(DOUBLED), OLD.model(COSTS), days(8), "total", (None, None))
    assert told(found)[1:] == [
        ("promote", Decimal(152), [f"logic {COSTS}", f"late rows {EVENTS}"]),
    ]


def test_a_change_of_an_upstream_is_named_by_the_model_whose_logic_changed(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    later(world)
    sql = f"SELECT ds, id, CAST(cost + 1 AS DECIMAL(18,2)) AS cost FROM {EVENTS} {WHERE}"  # noqa: S608
    plans.published(a_graph(a_model(VISITS, sql=sql, cadence=CADENCE), costs()))
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))
    assert told(found)[1:] == [("promote", Decimal(1), [f"logic {VISITS}"])]


def test_a_day_that_an_undo_leaves_is_not_a_part_of_it(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plan = plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    later(world)
    undo_plan(plans.project(OLD), plan)
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8, 9), "total", (None, None))
    assert told(found)[1:] == [
        ("promote", Decimal(72), [f"late rows {EVENTS}"]),
        ("undo", Decimal(-72), ["undo"]),
    ]
    assert found.explained.parts[-1].cells == days(8)


@pytest.mark.parametrize(
    ("before", "after", "cells"),
    [
        (CADENCE, Weekly(start="2024-01-01"), IntervalSet.of([Weekly().cell("2024-01-01")])),
        (Weekly(start="2024-01-01"), Daily(start="2024-01-01"), days(7)),
    ],
    ids=["days are weeks", "weeks are days"],
)
def test_what_was_published_in_other_cells_is_not_called_unpublished(
    world: World, plans: Plans, before: Cadence, after: Cadence, cells: IntervalSet
):
    old, new = (a_graph(visits(), costs(cadence=cadence)) for cadence in (before, after))
    world.begin(old, *ROWS)
    later(world)
    plans.published(new)

    found = explain_number(world.open(new), new.model(COSTS), cells, "total", (None, None))

    assert told(found) == [("batch+promote", Decimal(7), ["first build", f"unknown {COSTS}"])]
    assert [*found.unread.values()] == [cells]
    (why,) = found.unread
    assert why.endswith("were cut otherwise")


def test_what_a_collected_table_held_is_one_part_with_what_followed(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    first = world.pointer(COSTS).version
    later(world)
    plans.published(DOUBLED)
    second = world.pointer(COSTS).version
    later(world)
    plans.published(a_graph(visits(), costs("cost * 3")))
    forget(world, second)
    run, model = world.open(OLD), OLD.model(COSTS)
    found = explain_number(run, model, days(8), "total", (None, None))
    assert [(name, difference) for name, difference, _ in told(found)] == [
        ("batch", Decimal(8)),
        ("promote+promote", Decimal(16)),
    ]
    assert found.explained.difference == Decimal(24)
    assert [*found.unread] == [f"table {second} was deleted by `backfill gc`"]
    forget(world, first)
    lost = explain_number(run, model, days(8), "total", (None, None))
    assert [name for name, _, _ in told(lost)] == ["batch+promote+promote"]
    assert lost.explained.difference == Decimal(24)
    began = world.clock.now - timedelta(minutes=2)
    gone = explain_number(run, model, days(8), "total", (began, None))
    assert (gone.explained.before, gone.explained.after) == (None, Decimal(24))
    assert gone.explained.difference is None


def test_files_that_were_vacuumed_are_named_as_such(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    old = world.path(COSTS)
    later(world)
    plans.published(DOUBLED)
    for path in Path(old).glob("**/*.parquet"):
        path.unlink()
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))
    assert told(found) == [("batch+promote", Decimal(16), ["first build", f"logic {COSTS}"])]
    assert [why.startswith("files of table") for why in found.unread] == [True]


@pytest.mark.parametrize(
    ("column", "said"), [("nope", "has no column 'nope'"), ("ds", "is date, which has no sum")]
)
def test_a_column_without_a_sum_is_refused(world: World, column: str, said: str):
    world.begin(OLD, *ROWS)
    with pytest.raises(RequestError, match=said):
        explain_number(world.open(OLD), OLD.model(COSTS), days(8), column, (None, None))


def test_an_environment_that_follows_another_has_its_history_until_it_parts(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    later(world)
    plans.published(DOUBLED, "dev")
    world.environment = "dev"
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))
    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("promote", Decimal(8), [f"logic {COSTS}"]),
    ]


def test_an_environment_that_follows_another_again_has_its_history_since(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    later(world)
    plan = plans.published(DOUBLED, "dev")
    later(world)
    published = plans.published(a_graph(visits(), costs("cost * 3")))
    later(world)
    world.environment = "dev"
    rollback_plan(plans.project(DOUBLED), plan)
    later(world)
    world.environment = PROD
    rollback_plan(plans.project(OLD), published)
    world.environment = "dev"

    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))

    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("promote", Decimal(8), [f"logic {COSTS}"]),
        ("rollback", Decimal(8), ["rollback"]),
        ("rollback", Decimal(-16), ["rollback"]),
    ]
    assert [step.plan_id for step in found.steps[1:]] == [
        *(plan.plan_id, plan.plan_id, published.plan_id)
    ]


def test_an_environment_that_follows_another_again_reads_what_was_filled_there_meanwhile(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(DOUBLED, "dev")
    later(world)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), row(11, 1, 11.0))
    world.fill(OLD)
    later(world)
    world.environment = "dev"
    rollback_plan(plans.project(DOUBLED), plan)

    found = explain_number(world.open(OLD), OLD.model(COSTS), days(11), "total", (None, None))

    assert told(found) == [("rollback", Decimal(11), ["rollback"])]


def test_what_a_plan_publishes_under_the_table_of_another_environment_is_a_step_there_too(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    own = plans.published(OLD, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0), row(9, 1, 90.0)))
    ninth = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 80.0), row(9, 1, 90.0)), row(11, 1, 11.0))
    world.fill(OLD)
    rollback_plan(plans.project(OLD), ninth)
    world.environment = "dev"

    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8, 9, 11), "total", (None, None))

    assert told(found) == [
        ("batch", Decimal(17), ["first build"]),
        ("promote", Decimal(72), [f"late rows {EVENTS}"]),
        ("promote", Decimal(81), [f"late rows {EVENTS}"]),
        ("batch", Decimal(11), ["first build"]),
        ("rollback", Decimal(-92), ["rollback"]),
    ]
    assert [step.plan_id for step in found.steps if step.plan_id] == [
        *(own.plan_id, ninth.plan_id, ninth.plan_id)
    ]


@pytest.mark.parametrize("taken_back", [False, True], ids=["published", "rolled back"])
def test_what_a_dropped_environment_has_published_is_no_history_of_another_one_of_its_name(
    world: World,
    plans: Plans,
    taken_back: bool,  # noqa: FBT001
):
    world.begin(OLD, *ROWS)
    dev = Environment("dev", protected=False, follows=PROD)
    world.store.environments.save_environment(dev)
    world.environment = "dev"
    later(world)
    plan = plans.published(DOUBLED, "dev")
    if taken_back:
        later(world)
        rollback_plan(plans.project(DOUBLED), plan)
    world.store.environments.drop_environment("dev")
    world.store.environments.save_environment(dev)
    later(world)
    published = plans.published(a_graph(visits(), costs("cost * 3")))

    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))

    assert told(found) == [
        ("batch", Decimal(8), ["first build"]),
        ("promote", Decimal(16), [f"logic {COSTS}"]),
    ]
    assert found.steps[-1].plan_id == published.plan_id


def forget(world: World, version: str) -> None:
    """Collect a table, as `gc` does once no promise needs it."""
    shutil.rmtree(world.store.versions.version_path(version))
    mark = sa.update(VERSIONS).where(VERSIONS.c.version == version)
    marked = mark.values(collecting_at=world.clock.now)
    world.store.collection._database.write(lambda connection: connection.execute(marked))
    world.store.collection.forget_version(version)


def test_rows_that_came_before_a_change_of_logic_are_no_cause_of_it(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    later(world)
    world.land(a_source(), *changed(row(8, 1, 80.0), row(10, 1, 50.0)))
    sql = f"SELECT ds, id, CAST(cost + 1 AS DECIMAL(18,2)) AS cost FROM {EVENTS} {WHERE}"  # noqa: S608
    plans.published(a_graph(a_model(VISITS, sql=sql, cadence=CADENCE), costs()))
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))
    assert told(found)[1:] == [
        ("promote", Decimal(72), [f"late rows {EVENTS}"]),
        ("promote", Decimal(1), [f"logic {VISITS}"]),
    ]


def test_a_day_that_was_filled_after_a_rollback_was_not_there_before(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.published(DOUBLED)
    later(world)
    rollback_plan(plans.project(DOUBLED), plan)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    found = explain_number(world.open(OLD), OLD.model(COSTS), days(11), "total", (None, None))
    assert told(found) == [("batch", Decimal(11), ["first build"])]
    assert [step.at for step in found.steps] == [world.clock.now]


def test_a_cell_that_was_recorded_as_empty_and_is_computed_later_says_so(
    world: World, plans: Plans
):
    world.land(a_source(), *ROWS)
    world.fill(OLD, cells=days(9, 10))
    later(world)
    plans.apply(OLD, plans.make(OLD, empty=True, reason="what came before is not known"))
    later(world)
    plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))

    found = explain_number(world.open(OLD), OLD.model(COSTS), days(8), "total", (None, None))

    assert told(found) == [("promote", Decimal(8), [f"computed {COSTS}"])]


def test_equal_checksums_of_two_types_are_two_numbers_and_their_cells_differ(
    world: World, plans: Plans
):
    # Spark hashes 15000 as a bigint and 150.00 as a decimal alike.
    source = a_source(columns=(Column("ds", "date"), Column("id", "bigint"), Column("v", "bigint")))

    def readings(value: str, dtype: str) -> Graph:
        model = a_model(
            sql=f"SELECT ds, id, {value} AS v FROM {EVENTS} {WHERE}",  # noqa: S608 - the tests' own
            columns=(*source.schema[:2], Column("v", dtype)),
            cadence=CADENCE,
        )
        return a_graph(model, sources=[source])

    cents, euros = (
        readings("v", "bigint"),
        readings("CAST(v / 100 AS DECIMAL(12,2))", "decimal(12,2)"),
    )
    world.land(source, *((on(n), 1, 15000) for n in (7, 8, 9, 10)))
    world.fill(cents)
    plan = plans.make(euros)
    plans.apply(euros, plan)
    before = built_plan(plans.project(euros), plan.plan_id).changing(plan.models[0])
    plans.promote(euros, plan)

    [move] = world.store.history.moves_of(plan.plan_id)
    assert before is not None
    assert before.columns == {"v": days(7, 8, 9, 10)}
    assert move.changed == days(7, 8, 9, 10)
    found = explain_number(
        world.open(euros), euros.model(VISITS), days(7, 8), "v", (None, None)
    ).explained

    assert [part.difference for part in found.parts] == [30000, Decimal("-29700.00")]
    assert (found.after, found.equal) == (Decimal("300.00"), 0)
