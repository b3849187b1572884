"""The fake warehouse is held to Spark: one story, told on both, comes out the same in all that can be seen."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, example, given, settings, strategies as st

from backfill_assets.engine.batch.audit_run import audit_published
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.plan_verbs import apply_plan, promote_plan, rollback_plan
from backfill_assets.engine.plans.refusals import PlanConflictError
from backfill_assets.engine.project.events import Committed, Event, Failed
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.review.preflight import LostSourceHistoryError
from backfill_assets.intervals import Daily, Hourly, Weekly
from backfill_assets.models.audit import references, row_rule
from backfill_assets.models.column import Column
from backfill_assets.models.kind import (
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    SoftDelete,
    Tombstone,
)
from backfill_assets.models.source import TimeColumns
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.store import Store
from backfill_assets.warehouse.compare.compare import compare, rows_outside
from backfill_assets.warehouse.compare.comparison_sql import Compared, Question
from backfill_assets.warehouse.files.tables import Table
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model, a_source, a_whole
from backfill_assets_tests.engine.dying import Killed, die_after, mortal
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import LEASE, Clock, World, row, run_targets
from backfill_assets_tests.fake_session import NeedsRealSparkError
from backfill_assets_tests.fake_warehouse import fake_warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.kind import Deletes
    from backfill_assets.models.source import Source
    from backfill_assets.planning.plan.plan import Plan

VISITS, COSTS = "web.visits", "web.costs"
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"
SEVENTH = Daily(start="2024-01-07")
POSITIVE = row_rule("cost_is_positive", "cost >= 0")


def visits(sql: str = f"SELECT ds, id, cost FROM {EVENTS} {WHERE}", **declared: Any) -> Any:  # noqa: ANN401, S608
    given: dict[str, Any] = {
        "cadence": SEVENTH,
        "batch_size": 2,
        "audits": [POSITIVE],
        "late_window": 2,
    }
    return a_model(VISITS, sql=sql, **{**given, **declared})


def costs() -> Any:  # noqa: ANN401
    return a_model(
        COSTS,
        sql=f"SELECT ds, CAST(SUM(cost) AS DECIMAL(18,2)) AS total, COUNT(*) AS n FROM {VISITS} "  # noqa: S608
        f"{WHERE} GROUP BY ds",
        columns=(Column("ds", "date"), Column("total", "decimal(18,2)"), Column("n", "bigint")),
        unique_key=["ds"],
        upstreams=[VISITS],
        cadence=SEVENTH,
        grain="one row per day",
    )


DAYS = a_graph(visits(), costs())
FAILING = a_graph(
    visits(f"SELECT ds, id, IF(cost = 13, raise_error('no'), cost) AS cost FROM {EVENTS} {WHERE}"),  # noqa: S608
    costs(),
)


KEYS = a_graph(visits(kind=IncrementalByUniqueKey("ds"), deletes="none"))


def deleting(policy: Deletes) -> Graph:
    """Visits that are merged, and of which a column tells whether they are gone."""
    return a_graph(
        visits(
            f"SELECT ds, id, cost, id = 2 AS gone FROM {EVENTS} {WHERE}",  # noqa: S608
            columns=(*COLUMNS, Column("gone", "boolean")),
            kind=IncrementalByUniqueKey("ds"),
            deletes=policy,
        )
    )


LONGER = a_graph(
    visits(),
    a_model("web.weeks", upstreams=[VISITS], cadence=Weekly(start="2024-01-01")),
    a_whole("web.all", upstreams=[VISITS]),
)
HOURS = (Column("at", "timestamp"), Column("id", "bigint"))
BY_HOUR = a_source(columns=HOURS, times=TimeColumns(event="at"))
HOURLY = a_model(
    VISITS,
    sql=f"SELECT at, id FROM {EVENTS} WHERE at >= :start_ts AND at < :end_ts",  # noqa: S608
    kind=IncrementalByTimeRange("at"),
    cadence=Hourly(start="2024-01-10T20:00:00Z"),
    columns=HOURS,
    unique_key=["at", "id"],
    late_window=3,
)


@dataclass
class Teller:
    """Tells a story in a world of its own, and writes down what can be seen of it."""

    world: World
    graph: Graph
    source: Source
    seen: list[object]
    plan: Plan | None = None

    @property
    def plans(self) -> Plans:
        return Plans(self.world, told=self.world.heard, given={"batches_at_once": 1})

    def land(self, *rows: tuple[Any, ...]) -> None:
        self.world.land(self.source, *rows)

    def fill(self) -> None:
        run = open_run(self.world.project(self.graph, batches_at_once=1), self.world.environment)
        targets = {name: run_targets(run, name) for name in self.graph.order}
        fill_cells(run, targets, self.world.heard.append)
        self.look()

    def restate(self, first: int, last: int) -> None:
        """Plan, build and publish days anew; a plan that fails is left as it is."""
        restated = Restatement(VISITS, f"2024-01-{first:02}", f"2024-01-{last:02}")
        plan = self.plans.make(self.graph, restate=(restated,))
        try:
            outcome = apply_plan(self.plans.project(self.graph), plan)
        except PlanConflictError:  # an earlier plan that failed still holds these days
            self.seen.append("refused: an earlier plan holds these days")
        except LostSourceHistoryError as error:
            self.seen.append(str(error))
        else:
            self.seen += [outcome.status, outcome.spared, outcome.refused]
            if outcome.status is PlanStatus.BUILT and not outcome.refused:
                self.seen.append(promote_plan(self.plans.project(self.graph), plan).status)
                self.plan = plan
        self.look()

    def roll_back(self) -> None:
        if self.plan is not None:
            self.seen.append(rollback_plan(self.plans.project(self.graph), self.plan).status)
            self.plan = None
        self.look()

    def die(self, step: str) -> None:
        """A run dies after a step of its first batch, and its claims lapse."""
        with mortal(self.world) as store:
            doomed = World(self.world.spark, self.world.root, store, self.world.clock, runs=100)
            die_after(step, doomed)
            run = open_run(doomed.project(self.graph, batches_at_once=1), doomed.environment)
            with suppress(Killed):
                fill_cells(run, {VISITS: run_targets(run, VISITS)}, doomed.heard.append)
        self.world.clock.pass_lease()

    def look(self) -> None:
        """Write down everything that both warehouses must agree on."""
        self.seen += map(event_seen, self.world.heard)
        self.world.heard.clear()
        store = self.world.store
        for name, pointer in sorted(store.environments.pointers(self.world.environment).items()):
            columns = [column.name for column in self.graph.model(name).schema]
            self.seen += [name, pointer, self.world.ready(self.graph, name)]
            self.seen += self.world.rows(name, *columns)
            self.seen += map(record_seen, store.versions.ready_records(pointer.version))
            self.seen += log_seen(self.world.path(name))
        for batch in sorted(
            store.batches.latest(), key=lambda opened: (opened.built_at, opened.attempt)
        ):
            self.seen.append(batch_seen(batch))
            self.seen += store.batches.audit_results(batch_id=batch.batch_id)


def event_seen(event: Event) -> object:
    """An event without its seconds, without hashes, and of foreign errors without their words."""
    if isinstance(event, Committed):
        rows = {cell: content.rows for cell, content in event.contents.items()}
        return (event.model, event.batch_id, event.delta_version, rows, event.audits)
    if isinstance(event, Failed):
        ours = " failed: " not in event.error
        return (event.model, event.batch_id, event.kind, event.audits, event.error if ours else "")
    return event


def record_seen(record: Any) -> object:  # noqa: ANN401
    """A record without its hashes: that content is equal shows in when it changed."""
    return replace(record, content=record.content.rows)


def batch_seen(batch: Any) -> object:  # noqa: ANN401
    """A batch without its bytes, and without the words of a foreign error."""
    ours = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {**ours, "bytes_written": None, "inputs": len(batch.inputs), "error": bool(batch.error)}


def log_seen(path: str) -> Iterator[object]:
    """What each commit of a table adds and removes, with the statistics of its files."""
    if not DeltaTable.is_deltatable(path):
        return
    for entry in sorted((Path(path) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        yield (
            entry.name,
            sorted(
                (action["add"]["partitionValues"].items(), action["add"]["stats"])
                for action in actions
                if "add" in action
            ).__repr__(),
        )
        yield sum("remove" in action for action in actions)


def told(
    session: Any,  # noqa: ANN401
    root: Path,
    graph: Graph,
    story: Callable[[Teller], object],
    source: Source,
) -> Teller:
    clock = Clock()
    root.mkdir(parents=True)
    with Store.open(
        f"sqlite:///{root / 'state.db'}",
        clock=clock,
        lease_seconds=LEASE.total_seconds(),
        data_root=str(root),
    ) as store:
        teller = Teller(World(session, root, store, clock), graph, source, [])
        story(teller)
    return teller


def on_both(
    spark: SparkSession,
    root: Path,
    graph: Graph,
    story: Callable[[Teller], object],
    source: Source | None = None,
) -> list[object]:
    """Tell a story on the fake and on Spark, and hold what is seen against each other."""
    source = source or a_source()
    with fake_warehouse() as fake:
        ours = told(fake, root / "fake", graph, story, source).seen
    theirs = told(spark, root / "spark", graph, story, source).seen
    assert named_in_order(ours) == named_in_order(theirs)
    return ours


def named_in_order(seen: Sequence[object]) -> list[str]:
    """Number the ids, in the order in which they are seen: those of plans come of bytes and seconds."""
    names: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return names.setdefault(found.group(), f"<{len(names)}>")

    return [re.sub("[0-9a-f]{16}|p[0-9a-f]{9}", number, str(entry)) for entry in seen]


FOUR = [row(n, 1, float(n)) for n in range(7, 11)]


def filled_again(teller: Teller) -> None:
    """With a gap, equal content, other content in the late window and before it."""
    teller.land(*FOUR[:2], *FOUR[3:])
    teller.fill()
    teller.land(*FOUR[:2], row(10, 1, 10.0))
    teller.fill()
    teller.land(*FOUR[:2], row(10, 1, 11.0), row(7, 2, 1.0))
    teller.fill()


def restated_and_back(teller: Teller) -> None:
    teller.land(*FOUR)
    teller.fill()
    teller.land(row(7, 1, 7.0), row(8, 1, 80.0), row(9, 2, 9.0), row(10, 3, 10.0))
    teller.restate(7, 10)
    teller.roll_back()


def audits_fail(teller: Teller) -> None:
    teller.land(row(7), row(8, 1, -1.0), row(8, 2, -2.5), row(9), row(9), row(10))
    teller.fill()
    teller.land(*FOUR)
    teller.fill()
    teller.land(*FOUR[1:], row(7, 1, -1.0))
    teller.restate(7, 8)


def a_query_fails(teller: Teller) -> None:
    teller.land(*FOUR[:2], row(9, 1, 13.0), FOUR[3])
    teller.fill()
    teller.land(*FOUR)
    teller.fill()


@pytest.mark.parametrize(
    ("graph", "story"),
    [
        (DAYS, filled_again),
        (DAYS, restated_and_back),
        (DAYS, audits_fail),
        (FAILING, a_query_fails),
        (KEYS, filled_again),
        (deleting(SoftDelete("gone")), restated_and_back),
        (deleting(Tombstone("gone")), restated_and_back),
        (LONGER, filled_again),
    ],
    ids=["filled", "restated", "audited", "failed", "keys", "marked", "tombstones", "longer"],
)
def test_a_story_comes_out_on_the_fake_as_on_spark(
    spark: SparkSession, tmp_path: Path, graph: Graph, story: Callable[[Teller], object]
):
    assert on_both(spark, tmp_path, graph, story)


@pytest.mark.parametrize("step", ["open", "compute", "audit", "lock", "commit", "record"])
def test_a_run_that_dies_is_followed_on_the_fake_as_on_spark(
    spark: SparkSession, tmp_path: Path, step: str
):
    def story(teller: Teller) -> None:
        teller.land(*FOUR)
        teller.die(step)
        teller.fill()

    assert on_both(spark, tmp_path, a_graph(visits()), story)


def test_hours_that_share_a_file_come_out_on_the_fake_as_on_spark(
    spark: SparkSession, tmp_path: Path
):
    def at(hour: int, id_: int = 1) -> tuple[datetime, int]:
        return (datetime(2024, 1, 10, hour, 30, tzinfo=UTC), id_)

    def story(teller: Teller) -> None:
        teller.land(at(20), at(22), at(23))
        teller.fill()
        teller.land(at(20), at(22), at(22, 2), at(23))
        teller.fill()

    assert on_both(spark, tmp_path, a_graph(HOURLY, sources=[BY_HOUR]), story, BY_HOUR)


LANDED = st.lists(
    st.tuples(st.integers(7, 10), st.integers(1, 3), st.sampled_from([-1.0, 0.5, 2.0])),
    max_size=6,
    unique_by=lambda landed: landed[:2],
)
CELLS = st.tuples(st.integers(7, 10), st.integers(7, 10)).map(sorted)
STEPS = st.one_of(
    st.tuples(st.just("land"), LANDED),
    st.tuples(st.just("fill"), st.just(())),
    st.tuples(st.just("restate"), CELLS),
    st.tuples(st.just("roll_back"), st.just(())),
    st.tuples(st.just("die"), st.sampled_from([("compute",), ("commit",)])),
)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(landed=[(10, 1, -1.0), (8, 1, -1.0), (7, 1, -1.0)], steps=[("fill", ()), ("land", [])])
@given(landed=LANDED, steps=st.lists(STEPS, min_size=2, max_size=4))
def test_any_story_comes_out_on_the_fake_as_on_spark(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    landed: Any,  # noqa: ANN401
    steps: Any,  # noqa: ANN401
):
    def story(teller: Teller) -> None:
        teller.land(*(row(*values) for values in landed))
        teller.fill()
        for step, asked in steps:
            if step == "land":
                teller.land(*(row(*values) for values in asked))
            else:
                getattr(teller, step)(*asked)
        teller.fill()

    assert on_both(spark, tmp_path_factory.mktemp("story"), DAYS, story)


@pytest.mark.story
def test_comparisons_and_audits_of_what_is_published_agree(spark: SparkSession, tmp_path: Path):
    where = "cost > 5 AND ds < DATE'2024-01-09'"

    def story(teller: Teller) -> None:
        teller.land(*FOUR)
        teller.fill()
        teller.land(row(7, 1, 7.0), row(8, 1, 80.0), row(9, 2, 9.0))
        teller.restate(7, 10)
        model, world = teller.graph.model(VISITS), teller.world
        old, new = (Table(world.path(VISITS), at) for at in (2, world.head(VISITS)))
        both = Compared(model, old, new)
        for question in (Question(), Question(by=()), Question(where=where)):
            teller.seen.append(replace(compare(world.spark, both, question), sql=""))
        teller.seen.append(rows_outside(world.spark, both, where))
        teller.seen += audit_published(world.open(teller.graph), VISITS)

    assert on_both(spark, tmp_path, DAYS, story)


@pytest.mark.parametrize(
    "declared",
    [
        {"audit_columns": True},
        {"kind": IncrementalByUniqueKey("ds", latest_by="cost")},
        {"audits": [references("id", EVENTS, "id")]},
    ],
    ids=["stamped", "latest", "references"],
)
def test_what_the_fake_can_not_do_it_refuses(tmp_path: Path, declared: dict[str, Any]):
    graph = a_graph(visits(**declared))

    def story(teller: Teller) -> None:
        teller.land(*FOUR)
        events = fill_cells(
            teller.world.open(graph),
            {VISITS: run_targets(teller.world.open(graph), VISITS)},
            teller.world.heard.append,
        )
        failed = [event for event in events[VISITS] if isinstance(event, Failed)]
        assert failed
        assert all(NeedsRealSparkError.__name__ in event.error for event in failed)

    with fake_warehouse() as fake:
        told(fake, tmp_path / "fake", graph, story, a_source())
