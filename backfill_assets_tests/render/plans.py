"""Plans built by hand: one of every sort of work, and one that is larger than a screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from backfill_assets.intervals.cadence import Cadence, Daily, Monthly
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.batch_size import BatchSize, SizedBy
from backfill_assets.planning.plan.plan import (
    Build,
    CellWork,
    Change,
    Estimate,
    InFlight,
    ModelPlan,
    Plan,
    PlannedBatch,
    PlannedRead,
    Untouched,
    Why,
)
from backfill_assets.planning.plan.request import Category, PlanRequest, Restatement, Strategy
from backfill_assets.render.plan_words import Naming

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
DAYS = Daily(start="2024-01-01")
MONTHS = Monthly(start="2024-01-01")
PERFORMANCE, ROI, TRENDS = (
    "marketing.campaign_performance",
    "marketing.roi_analysis",
    "marketing.campaign_trends_monthly",
)
EVENTS = "marketing.ad_events"
NAMING = Naming({PERFORMANCE: DAYS, ROI: DAYS, TRENDS: MONTHS, EVENTS: DAYS})
DIFF = """\
--- prod
+++ loaded
@@ -3,4 +3,5 @@
   CAST(SUM(cost) AS DECIMAL(18, 2)) AS cost,
+  SUM(clicks) AS clicks,
-  COUNT(*) AS events
+  COUNT(*) AS events,
+  SUM(conversions) AS conversions"""


def span(cadence: Cadence, first: str, last: str) -> IntervalSet:
    return IntervalSet.of([Interval(cadence.cell(first).start, cadence.cell(last).end)])


def batch(cadence: Cadence, first: str, last: str) -> PlannedBatch:
    interval = Interval(cadence.cell(first).start, cadence.cell(last).end)
    return PlannedBatch(interval, cadence.count(interval))


def a_plan(*models: ModelPlan, **given: Any) -> Plan:  # noqa: ANN401 - any field
    return Plan(
        **{
            "plan_id": "p1a2b3c4d5",
            "request": PlanRequest(environment="prod", asked_by="ada", reason="new columns"),
            "environment": "prod",
            "protected": True,
            "created_at": NOON,
            "expires_at": datetime(2024, 6, 8, 12, tzinfo=UTC),
            "until": NOON,
            "seen": 41,
            "models": models,
            **given,
        }
    )


def added_columns() -> Plan:
    """Columns are added to one model; a reader follows, and another is left alone."""
    half = span(DAYS, "2024-01-01", "2024-05-31")
    changed = ModelPlan(
        model=PERFORMANCE,
        change=Change.MODIFIED,
        category=Category.NON_BREAKING,
        category_reason="adds clicks, conversions",
        diff=DIFF,
        build=Build.NEW_VERSION,
        strategy=Strategy.COLUMN_ENRICHMENT,
        risk="a join that multiplies rows",
        signal="row count and all other columns equal",
        fingerprint="f2",
        version="performance__2",
        old_fingerprint="f1",
        old_version="performance__1",
        work=(CellWork(Why.NEW_SNAPSHOT, half),),
        batches=(
            batch(DAYS, "2024-01-01", "2024-03-31"),
            batch(DAYS, "2024-04-01", "2024-05-31"),
        ),
        batch_size=BatchSize(SizedBy.BYTES, 91, 5_280_000),
        reads=(PlannedRead(EVENTS, ("clicks", "cost"), half),),
        estimate=Estimate((150, 230), (0.1, 0.2), 900_000_000, "41 recorded batches"),
    )
    follows = ModelPlan(
        model=ROI,
        change=Change.INDIRECT,
        category=Category.NON_BREAKING,
        category_reason="reads clicks of marketing.campaign_performance",
        decided_by="grace",
        build=Build.IN_PLACE,
        strategy=Strategy.PARTITION_REPAIR,
        fingerprint="g2",
        version="roi__1",
        old_fingerprint="g1",
        old_version="roi__1",
        work=(
            CellWork(Why.UPSTREAM_CHANGED, half, certain=False, because=PERFORMANCE),
            CellWork(Why.OWED, span(DAYS, "2024-05-02", "2024-05-03"), because="plan p0"),
        ),
        batches=(batch(DAYS, "2024-01-01", "2024-05-31"),),
        notes=("2024-06-01 is left out: it has not ended",),
    )
    return a_plan(
        changed,
        follows,
        untouched=(Untouched(TRENDS, "reads none of: clicks, conversions"),),
        in_flight=(
            InFlight(ROI, span(DAYS, "2024-05-30", "2024-05-31"), "run cli-77", blocks=False),
        ),
        estimate=Estimate(
            (200, 3900), (0.12, 0.3), 1_200_000_000, "41 recorded batches", currency="EUR"
        ),
        gates=("an explicit promotion",),
        rollback="the pointers go back to performance__1; nothing is computed",
        notes=("promised until 2024-07-01",),
    )


def restated() -> Plan:
    """A source was wrong in January, and another plan is at work there."""
    january = span(DAYS, "2024-01-01", "2024-01-31")
    plan = added_columns()
    repaired = replace(
        plan.models[1],
        change=Change.UNCHANGED,
        category=None,
        work=(CellWork(Why.RESTATED, january, because=f"{EVENTS} by ada"),),
        notes=(),
    )
    return a_plan(
        repaired,
        request=PlanRequest(
            environment="prod", restate=(Restatement(EVENTS, "2024-01-01", "2024-01-31"),)
        ),
        in_flight=(InFlight(ROI, january, "plan p0", blocks=True),),
    )


def larger_than_a_screen() -> Plan:
    """Thirty models, each with a diff of its own."""
    first = added_columns().models[0]
    many = [
        replace(first, model=f"many.model_{at:02}", diff="\n".join(["+ line"] * 30))
        for at in range(30)
    ]
    left = tuple(Untouched(f"many.reader_{at:02}", "reads none of: clicks") for at in range(30))
    return a_plan(*many, untouched=left)
