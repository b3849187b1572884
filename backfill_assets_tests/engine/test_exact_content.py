"""What is corrected is published, however small the correction; also over a state of rounded checksums."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.plans.strategy_checks import StrategyCheckError
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.planning.change import changes, deriving
from backfill_assets.planning.change.categorize import DeclarationDifference
from backfill_assets.planning.plan.request import Category, Restatement, Strategy
from backfill_assets.state.tables import READY_RECORDS
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import on

if TYPE_CHECKING:
    from backfill_assets.models.content import Content
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark
READINGS, TOTALS = "web.readings", "web.totals"
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"
COLUMNS = (Column("ds", "date"), Column("id", "bigint"), Column("v", "double"))
DAYS = (7, 8, 9, 10)
MIGRATION = "backfill_assets.state.migrations.versions.v0004_exact_checksums"


def readings(values: str = "v") -> Any:  # noqa: ANN401
    """Every event, its value as it is, and once more where that is asked for."""
    wider = (Column("w", "double"),) if values.endswith(" w") else ()
    return a_model(
        READINGS,
        sql=f"SELECT ds, id, {values} FROM web.events {WHERE}",
        columns=(*COLUMNS, *wider),
        cadence=Daily(start="2024-01-07"),
    )


def totals() -> Any:  # noqa: ANN401
    """The sum of a day."""
    return a_model(
        TOTALS,
        sql=f"SELECT ds, SUM(v) AS v FROM {READINGS} {WHERE} GROUP BY ds",
        columns=(Column("ds", "date"), Column("v", "double")),
        unique_key=["ds"],
        upstreams=[READINGS],
        cadence=Daily(start="2024-01-07"),
    )


SOURCE = a_source(columns=COLUMNS)
GRAPH = a_graph(readings(), totals(), sources=[SOURCE])
RESTATED = (Restatement(READINGS, "2024-01-07", "2024-01-10"),)


def landed(world: World, value: float, then: float) -> None:
    """Fill with one value a day, and let the source correct that of the 8th."""
    world.land(SOURCE, *((on(n), 1, value) for n in DAYS))
    world.fill(GRAPH)
    world.land(SOURCE, *((on(n), 1, then if n == 8 else value) for n in DAYS))


def held(world: World, name: str) -> list[float]:
    return [v for _, v in world.rows(name, "ds", "v")]


@pytest.mark.parametrize(
    ("value", "then"),
    [
        (1234567890.10, 1234567894.90),
        pytest.param(1700000000.0, 1700000003.0, marks=pytest.mark.slow),
    ],
)
def test_a_correction_of_a_double_is_published_and_reaches_its_readers(
    world: World, value: float, then: float
):
    plans = Plans(world)
    landed(world, value, then)
    plans.published(GRAPH, restate=RESTATED)
    assert held(world, READINGS) == [value, then, value, value]
    assert held(world, TOTALS) == [value, then, value, value]
    assert plans.make(GRAPH).is_empty


@pytest.mark.story
def test_a_plan_that_was_built_with_rounded_checksums_publishes_what_it_corrects(world: World):
    plans = Plans(world)
    landed(world, 1234567890.10, 1234567894.90)
    plan = plans.make(GRAPH, restate=RESTATED)
    assert plans.apply(GRAPH, plan).left == {}
    as_of_the_release_before(world)
    # rounded, the other days can't be told equal
    with pytest.raises(RequestError, match="is not completely built, nothing was"):
        plans.promote(GRAPH, plan)
    assert plans.apply(GRAPH, plan).left == {}
    plans.promote(GRAPH, plan)
    assert held(world, READINGS)[1] == 1234567894.90
    assert held(world, TOTALS)[1] == 1234567894.90


@pytest.mark.parametrize(
    "asked",
    [pytest.param(Strategy.COLUMN_ENRICHMENT, marks=pytest.mark.slow), Strategy.FULL_REBUILD],
    ids=str,
)
def test_after_rounded_checksums_a_wider_table_is_held_against_the_rows_themselves(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: Strategy
):
    plans = Plans(world)
    landed(world, 1234567890.10, 1234567890.10)
    as_of_the_release_before(world)
    wrong = a_graph(readings("v + 4.8 AS v, v AS w"), totals(), sources=[SOURCE])
    only_w = DeclarationDifference(
        Category.NON_BREAKING, "adds w", rows=False, columns=frozenset({"w"})
    )
    with monkeypatch.context() as patch:  # a verdict that is wrong on purpose
        for module in (changes, deriving):
            patch.setattr(module, "difference", lambda *_: only_w)
        plan = plans.make(wrong, strategies=((READINGS, asked),))
        plans.apply(wrong, plan)
        with pytest.raises(StrategyCheckError, match="v differs in 4 cells"):
            plans.promote(wrong, plan)
        abandon_plan(plans.project(wrong), plan)
    wider = a_graph(readings("v, v AS w"), totals(), sources=[SOURCE])
    plans.published(wider, strategies=((READINGS, asked),))
    assert world.rows(READINGS, "v", "w") == [(1234567890.10, 1234567890.10)] * len(DAYS)


def as_of_the_release_before(world: World) -> None:
    """Let all records have the same rounded checksums, and open the state with this release."""

    def spoil(connection: sa.Connection) -> None:
        for row in connection.execute(sa.select(READY_RECORDS)).all():
            changed = sa.update(READY_RECORDS).where(
                READY_RECORDS.c.version == row.version,
                READY_RECORDS.c.starts == row.starts,
                READY_RECORDS.c.valid_from == row.valid_from,
            )
            connection.execute(changed.values(content=rounded(row.content)))

    def migrate(connection: sa.Connection) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            importlib.import_module(MIGRATION).upgrade()

    for step in (spoil, migrate):
        world.store._database.write(step)


def rounded(content: Content) -> Content:
    sums = {
        name: 1 if isinstance(checksum, str) else checksum
        for name, checksum in content.columns.items()
    }
    return replace(content, columns=sums)
