"""A held consumer goes on reading what was published when it was held, by every way to read."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import duckdb
import pytest

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.plans.making import make_plan
from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.project.holds import hold_consumer, release_consumer
from backfill_assets.engine.project.iceberg import enable
from backfill_assets.engine.project.opening import look, open_run
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.project.views import published_views
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.errors import RequestError
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.reading import published
from backfill_assets.render.holds import hold_text, untouched_text
from backfill_assets.settings import Dialect, Settings
from backfill_assets.snapshots.environment import PROD
from backfill_assets.warehouse.views.view_file import views_sql
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.names import rows_by_name
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import World, row, text

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.hold import Hold

NAME, HELD = "Yearly accounts", "held_yearly_accounts"
ACCOUNTS = Consumer(
    name=NAME, kind="dashboard", owner="team:finance", reads=[Reading(VISITS), Reading(COSTS)]
)
BEFORE, AFTER = [7, 8, 9, 10], [7, 99, 9, 10]
AT_ONCE = timedelta(0)


def consumed(graph: Graph) -> Graph:
    return replace(graph, consumers={NAME: ACCOUNTS})


@pytest.fixture
def plans(world: World) -> Plans:
    world.begin(OLD, *ROWS)
    return Plans(world)


def hold(plans: Plans, name: str = NAME) -> Hold:
    until = plans.world.clock() + timedelta(days=2)
    project = plans.project(consumed(OLD))
    return hold_consumer(project, name, PROD, until=until, reason="the books close")


def restate(plans: Plans) -> None:
    plans.world.land(a_source(), *changed(row(8, 1, 99.0)))
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))


def settings(world: World) -> Settings:
    return Settings(data_dir=str(world.root), state_url=f"sqlite:///{world.root}/state.db")


def by_consumer(world: World, consumer: str = NAME) -> list[int]:
    frame = published(consumer=consumer, settings=settings(world)).read(COSTS, spark=world.spark)
    return [int(each["total"]) for each in sorted(frame.collect(), key=lambda each: each["ds"])]


def by_view(world: World) -> list[int]:
    """What the consumer's own file of views shows, under the names of prod."""
    views = published_views(world.store, world.store.holds.read_by(NAME, PROD), PROD)
    with duckdb.connect() as connection:
        connection.execute(views_sql(Dialect.DUCKDB, views))
        found = connection.execute(f"SELECT total FROM {COSTS} ORDER BY ds").fetchall()  # noqa: S608
    return [int(total) for (total,) in found]


def by_name(world: World, environment: str) -> list[int]:
    return [
        int(total) for _, total in rows_by_name(world.root, f"{environment}.{COSTS}", "ds", "total")
    ]


def test_a_held_consumer_reads_as_before_by_every_way_until_it_is_released(
    world: World, plans: Plans
):
    enable(InProject(project=world.project(OLD)))
    held = hold(plans)
    assert (held.environment, held.models) == (HELD, (COSTS, VISITS))
    restate(plans)  # within the table, by which old rows are replaced
    plans.published(MORE)  # to another table
    world.clock.now += timedelta(days=90)
    collect(world.open(MORE), AT_ONCE)

    assert by_consumer(world) == by_view(world) == by_name(world, HELD) == BEFORE
    assert by_consumer(world, "another") == by_name(world, PROD) == AFTER

    ended, differs = release_consumer(plans.project(consumed(MORE)), NAME)
    assert ended.consumer == NAME
    days = {model: text(MORE, model, cells) for model, cells in differs.items()}
    assert days == {VISITS: "2024-01-07..2024-01-10 (4)", COSTS: "2024-01-08"}
    assert by_consumer(world) == by_view(world) == AFTER
    world.clock.now += timedelta(days=2)
    collect(world.open(MORE), AT_ONCE)
    assert world.store.holds.all() == ()
    assert by_consumer(world) == AFTER


def test_a_hold_is_no_place_to_build_in_and_never_owns_a_table(world: World, plans: Plans):
    hold(plans)
    for refused in (
        lambda: open_run(world.project(OLD), HELD),
        lambda: make_plan(plans.project(OLD), PlanRequest(environment=HELD)),
    ):
        with pytest.raises(RequestError, match="nothing is built in it"):
            refused()
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    abandon_plan(plans.project(OLD), plan)
    owners = {world.store.versions.owner(world.pointer(name).version) for name in (VISITS, COSTS)}
    assert owners == {PROD}


def test_late_data_is_not_refreshed_in_a_hold(world: World, plans: Plans):
    held = hold(plans)
    with pytest.raises(RequestError, match="nothing is built in it"):
        refresh_late(look(world.project(OLD), held.environment))


def test_what_can_not_be_held_or_released_is_refused_with_what_was_meant(
    world: World, plans: Plans
):
    with pytest.raises(RequestError, match="did you mean 'Yearly accounts'"):
        hold(plans, "Yearly account")
    with pytest.raises(RequestError, match="is not held"):
        release_consumer(plans.project(OLD), NAME)
    with pytest.raises(RequestError, match="is in the past"):
        hold_consumer(plans.project(consumed(OLD)), NAME, PROD, until=world.clock(), reason="")
    twin = "yearly-accounts"
    both = replace(OLD, consumers={NAME: ACCOUNTS, twin: replace(ACCOUNTS, name=twin)})
    with pytest.raises(RequestError, match=f"'{NAME}' would both read environment '{HELD}'"):
        hold_consumer(plans.project(both), twin, PROD, until=None, reason="")
    hold(plans)
    with pytest.raises(RequestError, match="is held already, since"):
        hold(plans)


def test_the_command_that_ends_a_hold_can_be_pasted_whatever_the_name_of_the_consumer(
    world: World, plans: Plans
):
    held = replace(hold(plans), consumer="the king's report", reason="")

    command = hold_text(held, world.clock()).split("`")[1]

    assert shlex.split(command) == ["backfill", "release", "the king's report"]


def test_a_hold_that_should_have_ended_is_told_loudly_and_goes_on(world: World, plans: Plans):
    held = hold(plans)
    assert hold_text(held, world.clock()).startswith("held     Yearly accounts reads")
    world.clock.now += timedelta(days=3)
    collect(world.open(OLD), AT_ONCE)
    (there,) = world.store.holds.all()
    assert there == held
    assert hold_text(there, world.clock()).startswith("OVERDUE  Yearly accounts reads")
    assert "3 days ago" in untouched_text(there, [COSTS], world.clock())
    assert COSTS in untouched_text(there, [COSTS], world.clock())
    assert VISITS not in untouched_text(there, [COSTS], world.clock())
