"""A case's words in ours: its model as a cadence, its texts as intervals, and our answers as its."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any

from backfill_assets.intervals import Cadence, Interval, IntervalSet, Unit
from backfill_assets.intervals.cron import Cron
from backfill_assets.intervals.instants import end_at, start_at

Json = Any

DEFAULT_NOW = "2025-01-01T00:00:00Z"

UNITS = {
    "five_minute": Unit.MINUTE5,
    "quarter_hour": Unit.MINUTE15,
    "half_hour": Unit.MINUTE30,
    "hour": Unit.HOUR,
    "day": Unit.DAY,
    "week": Unit.WEEK,
    "month": Unit.MONTH,
    "year": Unit.YEAR,
}
UNIT_NAMES = {unit: name for name, unit in UNITS.items()}
INFERRED = [unit for unit in Unit if unit not in (Unit.WEEK, Unit.WHOLE)]
NINE_YEARS = timedelta(days=9 * 366)  # two leap days: the shortest February is surely among them

# Kinds of which a part can't be rebuilt alone. INCREMENTAL_BY_UNIQUE_KEY is none of them: our
# ready records know which cells hold which keys.
WHOLE_HISTORY = {
    "FULL",
    "VIEW",
    "MANAGED",
    "INCREMENTAL_UNMANAGED",
    "INCREMENTAL_BY_PARTITION",
    "SCD_TYPE_2",
    "SCD_TYPE_2_BY_TIME",
    "SCD_TYPE_2_BY_COLUMN",
}
IN_ORDER = WHOLE_HISTORY | {"INCREMENTAL_BY_UNIQUE_KEY"}
ONE_BATCH = {"FULL", "VIEW"}

KINDS = IN_ORDER | {"INCREMENTAL_BY_TIME_RANGE"}
WORDS = {
    "allow_partials",
    "batch_concurrency",
    "batch_size",
    "cron",
    "cron_tz",
    "depends_on",
    "depends_on_self",
    "end",
    "interval_unit",
    "kind",
    "lookback",
    "start",
    "state",
}
RESTATEMENT_WORDS = {
    "auto_restatement_cron",
    "auto_restatement_intervals",
    "next_auto_restatement",
    "unpaused",
}


def not_understood(model: dict[str, Json]) -> set[str]:
    """What a case says about a model that we have no words for."""
    kind = model.get("kind") or "INCREMENTAL_BY_TIME_RANGE"
    return (model.keys() - WORDS - RESTATEMENT_WORDS) | (
        {f"kind {kind}"} - {f"kind {each}" for each in KINDS}
    )


def cadence_of(model: dict[str, Json], start: datetime | None = None) -> Cadence:
    """The model's cells and life; `start` is the one it inherits, if it has none of its own."""
    cron, unit = model.get("cron", "@daily"), model.get("interval_unit")
    start, end = model.get("start", start), model.get("end")
    return Cadence(
        unit_of_cron(cron) if unit is None else UNITS[unit],
        start=start_at(start, "UTC") if start is not None else None,
        end=end_at(end, "UTC") if end is not None else None,
        cron=cron,
        cron_tz=model.get("cron_tz"),
    )


@cache
def unit_of_cron(expression: str) -> Unit:
    """The largest unit that fits into the smallest gap between ticks; never a week."""
    tick = start_at("2024-01-01", "UTC")
    last, cron, ticks = tick + NINE_YEARS, Cron(expression), []
    while len(ticks) < 2 or (len(ticks) < 400 and tick <= last):
        tick = cron.next(tick)
        ticks.append(tick)
    gap = min(after - before for before, after in pairwise(ticks)).total_seconds()
    return max((each for each in INFERRED if each.shortest <= gap), key=lambda each: each.shortest)


def start_of(name: str, models: dict[str, Json]) -> datetime | None:
    """Where a model's history begins, through what it reads."""
    model = models[name]
    if "start" in model:
        return start_at(model["start"], "UTC")
    read = (start_of(each, models) for each in model.get("depends_on", ()) if each in models)
    return min((start for start in read if start is not None), default=None)


def reaches_onward(model: dict[str, Json]) -> bool:
    """Whether a restatement of the model reaches all later cells."""
    return bool(model.get("depends_on_self")) or model.get("kind") in WHOLE_HISTORY


def in_order(model: dict[str, Json]) -> bool:
    """Whether its batches must run one after the other."""
    return bool(model.get("depends_on_self")) or model.get("kind") in IN_ORDER


def now_of(case: dict[str, Json]) -> datetime:
    """The instant that counts as now."""
    now = case["call"].get("execution_time") or case.get("now") or DEFAULT_NOW
    return start_at(now, "UTC")


def state_of(holder: dict[str, Json]) -> IntervalSet:
    """The ready intervals that a case, or a model of it, records."""
    return instants((holder.get("state") or {}).get("intervals", ()))


def instants(pairs: Json) -> IntervalSet:
    """A set from pairs of instants."""
    return IntervalSet.of(
        Interval(start_at(start, "UTC"), start_at(end, "UTC")) for start, end in pairs
    )


def texts(intervals: Json) -> list[list[str]]:
    """Intervals as pairs of instants."""
    return [[text(each.start), text(each.end)] for each in intervals]


def text(instant: datetime) -> str:
    """An instant as the cases write it."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
