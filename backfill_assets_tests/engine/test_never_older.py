"""What prod has built again from newer rows while a plan waited is not published with older ones."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import Committed, ended, on, row, text, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

VISITS, SUMS = "web.visits", "web.sums"
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"
ROWS = [row(n, 1, float(n)) for n in range(7, 11)]
LATE = row(10, 2, 5.0)
DOUBLE = Column("double", "decimal(18,2)")


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def visits(extra: str = "", source: Source | None = None, **declared: Any) -> Graph:  # noqa: ANN401
    """Every event, in a model that nobody reads and that takes late rows in; with `extra`, a column."""
    given: dict[str, Any] = {"cadence": Daily(start="2024-01-07"), "late_window": 2, **declared}
    columns = (*COLUMNS, DOUBLE) if extra else COLUMNS
    sql = f"SELECT ds, id, cost{extra} FROM web.events {WHERE}"
    return a_graph(a_model(sql=sql, columns=columns, **given), sources=[source or a_source()])


TWICE = ", CAST(cost * 2 AS DECIMAL(18,2)) AS double"


def built(world: World, plans: Plans, old: Graph, new: Graph, **asked: Any) -> Plan:  # noqa: ANN401
    """Prod holds the old logic, and a plan has built the new one."""
    (source,) = old.sources.values()
    world.land(source, *ROWS)
    world.fill(old)
    plan = plans.make(new, **asked)
    plans.apply(new, plan)
    return plan


def refreshed(world: World, graph: Graph, *rows: Any) -> None:  # noqa: ANN401
    """Late rows arrive, and prod brings them in by itself."""
    (source,) = graph.sources.values()
    world.land(source, *(rows or (*ROWS, LATE)))
    assert ended(world.fill(graph)[VISITS], Committed)


@pytest.mark.parametrize(
    "kind",
    [{}, {"kind": IncrementalByUniqueKey("ds"), "deletes": "absent"}],
    ids=["replaced", "merged"],
)
def test_a_late_row_that_prod_has_published_while_a_plan_waits_is_not_taken_away(
    world: World, plans: Plans, kind: dict[str, Any]
):
    old, new = visits(**kind), visits(TWICE, **kind)
    plan = built(world, plans, old, new)
    refreshed(world, old)
    promoted = plans.promote(new, plan)
    assert text(new, VISITS, promoted.carried[VISITS]) == "2024-01-10"
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 10, 20]
    assert told(world.fill(new)[VISITS]) == ["skipped"]
    assert plans.make(new).is_empty


def test_a_late_value_that_the_old_logic_does_not_read_comes_in_after_the_promotion(
    world: World, plans: Plans
):
    more = Column("more", "bigint")
    source = a_source(columns=(*COLUMNS, more))
    old, new = (
        visits(extra, source=source) for extra in ("", ", CAST(more AS DECIMAL(18,2)) AS double")
    )
    world.land(source, *((*values, 1) for values in ROWS))
    world.fill(old)
    plan = plans.make(new)
    plans.apply(new, plan)
    world.land(source, *((*values, 1 + (values[0] == on(10))) for values in ROWS))
    assert told(world.fill(old)[VISITS]) == ["skipped"]
    plans.promote(new, plan)
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [1, 1, 1, 1]
    assert ended(world.fill(new)[VISITS], Committed)
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [1, 1, 1, 2]
    assert plans.make(new).is_empty


def test_a_new_table_of_dev_over_a_source_that_cannot_be_observed_is_built_again(
    world: World, plans: Plans
):
    source = a_source(observed=False)
    old, new = visits(source=source), visits(TWICE, source=source)
    dev_has_built(world, plans, old, new)
    world.land(source, *ROWS, LATE)
    plans.published(old, restate=(Restatement(VISITS, "2024-01-10", "2024-01-10"),))
    plan = plans.make(new)
    plans.apply(new, plan)
    plans.promote(new, plan)
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 10, 20]


def dev_has_built(world: World, plans: Plans, old: Graph, new: Graph) -> None:
    (source,) = old.sources.values()
    world.land(source, *ROWS)
    world.fill(old)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.published(new, "dev")


def test_a_new_table_that_dev_has_built_takes_no_late_row_away_from_prod(
    world: World, plans: Plans
):
    old, new = visits(), visits(TWICE)
    dev_has_built(world, plans, old, new)
    plan = plans.make(new)
    plans.apply(new, plan)
    refreshed(world, old)
    plans.promote(new, plan)
    assert [int(value) for _, value in world.rows(VISITS, "ds", "double")] == [14, 16, 18, 10, 20]


def test_what_has_read_a_late_row_is_built_again_where_prod_has_lost_that_row_meanwhile(
    world: World, plans: Plans
):
    """The upstream's cell becomes what it is in prod, but its reader in the workspace has read another one."""
    old, (source,) = visits(), visits().sources.values()
    sums = a_model(
        SUMS,
        sql=f"SELECT ds, CAST(SUM(cost) AS DECIMAL(18,2)) AS total FROM {VISITS} {WHERE} GROUP BY ds",
        columns=[Column("ds", "date"), Column("total", "decimal(18,2)")],
        unique_key=["ds"],
        upstreams=[VISITS],
        cadence=Daily(start="2024-01-07"),
    )
    new = a_graph(*visits(TWICE).models.values(), sums)
    world.land(source, *ROWS)
    world.fill(old)
    world.land(source, *ROWS, LATE)
    plan = plans.make(new)
    plans.apply(new, plan)
    refreshed(world, old, *ROWS)

    plans.promote(new, plan)

    assert [int(total) for _, total in world.rows(SUMS, "ds", "total")] == [7, 8, 9, 10]
    assert plans.make(new).is_empty


def test_a_model_that_reads_itself_is_built_again_from_the_late_row_on(world: World, plans: Plans):
    def running(extra: str) -> Graph:
        before = f"SELECT total FROM {SUMS} WHERE ds = DATE_SUB(:start_ds, 1)"
        sql = (
            f"SELECT :start_ds AS ds, CAST(COALESCE(SUM(cost), 0) + COALESCE(({before}), 0)"
            f" AS DECIMAL(18,2)) AS total{extra} FROM web.events {WHERE}"
        )
        columns = [Column("ds", "date"), Column("total", "decimal(18,2)")]
        columns += [Column("days", "int")] if extra else []
        reads = ["web.events", Upstream(SUMS, lookback=1)]
        declared: dict[str, Any] = {"unique_key": ["ds"], "columns": columns, "late_window": 3}
        declared |= {"cadence": Daily(start="2024-01-07"), "upstreams": reads, "sql": sql}
        return a_graph(a_model(SUMS, **declared))

    old, new = running(""), running(", 1 AS days")
    plan = built(world, plans, old, new)
    world.land(a_source(), *ROWS, row(9, 2, 5.0))
    world.fill(old)  # the 9th, and the 10th, which reads it
    published = world.rows(SUMS, "ds", "total")
    plans.promote(new, plan)
    assert [int(total) for _, total in published] == [7, 15, 29, 39]
    assert world.rows(SUMS, "ds", "total") == published
    assert plans.make(new).is_empty


def test_a_promotion_is_refused_where_the_new_logic_fails_on_the_late_row(
    world: World, plans: Plans
):
    old, new = visits(), visits(TWICE, audits=[accepted_range("cost", 6, None)])
    plan = built(world, plans, old, new)
    refreshed(world, old)
    published = world.rows(VISITS)
    with pytest.raises(RequestError, match=r"can't be carried over: .*2024-01-10"):
        plans.promote(new, plan)
    assert world.rows(VISITS) == published
