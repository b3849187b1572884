"""Hours, the same hours capped, days and months over one source; and what they must hold, in Python.

The oracle knows nothing of the product: it has the rows of the source, what every table was built
from last, and which hour goes into which day and month.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals import Daily, Hourly, Monthly
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.builders import a_graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.graph import Graph

RAW, HOURS, CAPPED, DAYS, MONTHS = "web.raw", "web.hours", "web.capped", "web.days", "web.months"
LEVELS = (HOURS, CAPPED, DAYS, MONTHS)
FIRST = datetime(2024, 1, 29, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CAP, EARLIER_HOURS, EARLIER_DAYS = 6, 3, 1
WINDOWS = {HOURS: 80, CAPPED: 80, DAYS: 4, MONTHS: 1}
Value = tuple[int, ...] | None

_START = "2024-01-29"
_DAYS_SQL = """
    WITH reaching AS (
        SELECT TO_DATE(hour) AS ds, total FROM web.capped
        WHERE hour >= :start_ts - INTERVAL 3 HOURS AND hour < :end_ts
        UNION ALL
        SELECT DATE_ADD(TO_DATE(hour), 1) AS ds, total FROM web.capped
        WHERE hour >= :start_ts - INTERVAL 3 HOURS AND hour < :end_ts AND HOUR(hour) >= 21
    )
    SELECT ds, SUM(total) AS total FROM reaching
    WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds
"""
_MONTHS_SQL = """
    WITH reaching AS (
        SELECT TRUNC(ds, 'month') AS month, total FROM web.days
        WHERE ds >= :start_ds - INTERVAL 1 DAY AND ds < :end_ds
        UNION ALL
        SELECT TRUNC(DATE_ADD(ds, 1), 'month') AS month, total FROM web.days
        WHERE ds >= :start_ds - INTERVAL 1 DAY AND ds < :end_ds AND DAY(DATE_ADD(ds, 1)) = 1
    )
    SELECT month, SUM(total) AS total FROM reaching
    WHERE month >= :start_ds AND month < :end_ds GROUP BY month
"""


def source() -> Source:
    """One row per event; nothing says in which file an hour lies."""
    return Source(
        name=RAW,
        path="raw",
        cadence=Hourly(start=_START),
        times=TimeColumns(event="at"),
        columns=(Column("at", "timestamp"), Column("id", "bigint"), Column("v", "bigint")),
        owner="team:web",
    )


def graph() -> Graph:
    """The four models."""
    hourly, time = Hourly(start=_START), "timestamp"
    return a_graph(
        _model(
            HOURS,
            hourly,
            [RAW],
            "SELECT DATE_TRUNC('hour', at) AS hour, SUM(v) AS total, COUNT(*) AS n FROM web.raw "
            "WHERE at >= :start_ts AND at < :end_ts GROUP BY 1",
            (("hour", time), ("total", "bigint"), ("n", "bigint")),
        ),
        _model(
            CAPPED,
            hourly,
            [HOURS],
            f"SELECT hour, LEAST(total, {CAP}) AS total FROM web.hours "  # noqa: S608
            "WHERE hour >= :start_ts AND hour < :end_ts",
            (("hour", time), ("total", "bigint")),
        ),
        _model(
            DAYS,
            Daily(start=_START),
            [Upstream(CAPPED, lookback=EARLIER_HOURS)],
            _DAYS_SQL,
            (("ds", "date"), ("total", "bigint")),
        ),
        _model(
            MONTHS,
            Monthly(start="2024-01-01"),
            [Upstream(DAYS, lookback=EARLIER_DAYS)],
            _MONTHS_SQL,
            (("month", "date"), ("total", "bigint")),
        ),
        sources=[source()],
    )


def _model(name: str, cadence, reads, sql: str, columns: tuple[tuple[str, str], ...]) -> Model:  # noqa: ANN001
    return Model(
        name=name,
        query=SqlQuery(sql),
        kind=IncrementalByTimeRange(columns[0][0]),
        cadence=cadence,
        upstreams=reads,
        grain="one row per cell",
        unique_key=[columns[0][0]],
        columns=tuple(Column(*column) for column in columns),
        late_window=WINDOWS[name],
        batch_size=100,
        owner="team:web",
    )


@dataclass
class Oracle:
    """What the source holds, and what every cell of every level was built with last.

    Attributes:
        rows: (instant, value) by id.
        built: per level, the content of each ready cell by its start.
        seen: the rows of each hour as they were looked at last.
    """

    rows: dict[int, tuple[datetime, int]] = field(default_factory=dict)
    built: dict[str, dict[datetime, Value]] = field(
        default_factory=lambda: {name: {} for name in LEVELS}
    )
    seen: dict[datetime, list[tuple[int, datetime, int]]] = field(default_factory=dict)

    def look(self) -> set[datetime]:
        """Give the hours whose rows are not what they were at the last look."""
        now: dict[datetime, list[tuple[int, datetime, int]]] = defaultdict(list)
        for id_, (at, value) in sorted(self.rows.items()):
            now[hour_of(at)].append((id_, at, value))
        changed = {
            hour for hour in now.keys() | self.seen.keys() if now.get(hour) != self.seen.get(hour)
        }
        self.seen = dict(now)
        return changed

    def waiting(self, late: Iterable[datetime]) -> set[datetime]:
        """Give the hours of which some cell that they reach lies outside of a late window."""
        return {hour for hour in late if not all(map(self._inside, reached(hour)))}

    def _inside(self, cell: tuple[str, datetime]) -> bool:
        name, start = cell
        ready = sorted(self.built[name])
        if start not in self.built[name]:
            return True  # nobody reads it there yet
        first = ready[-1]
        for _ in range(WINDOWS[name] - 1):
            first = before(name, first)
        return start >= first

    def rebuild(self, late: Iterable[datetime]) -> dict[str, int]:
        """Build late hours again, and then whatever reads something that came out otherwise."""
        todo = {hour for hour in late if hour in self.built[HOURS]}
        counts: dict[str, int] = dict.fromkeys(LEVELS, 0)
        for number, name in enumerate(LEVELS):
            counts[name] = len(todo)
            changed = {cell for cell in todo if self._build(name, cell)}
            if name == MONTHS:
                break
            up = LEVELS[number + 1]
            todo = {
                reader
                for cell in changed
                for reader in read_by(name, cell)
                if reader in self.built[up]
            }
        return counts

    def fill(self, now: datetime) -> dict[str, int]:
        """Build every cell that is over and not there yet."""
        counts: dict[str, int] = dict.fromkeys(LEVELS, 0)
        for name in LEVELS:
            cell = first_of(name)
            while after(name, cell) <= now:
                if cell not in self.built[name]:
                    self._build(name, cell)
                    counts[name] += 1
                cell = after(name, cell)
        return counts

    def from_scratch(self) -> dict[str, dict[datetime, Value]]:
        """Give what every ready cell holds when all of it is built anew."""
        fresh = Oracle(dict(self.rows), seen={})
        fresh.look()
        for name in LEVELS:
            for cell in self.built[name]:
                fresh._build(name, cell)
        return fresh.built

    def _build(self, name: str, cell: datetime) -> bool:
        """Build a cell of what is there; tell whether it came out otherwise."""
        before_, now = self.built[name].get(cell), self._content(name, cell)
        self.built[name][cell] = now
        return before_ != now

    def _content(self, name: str, cell: datetime) -> Value:
        if name == HOURS:
            values = [value for _, _, value in self.seen.get(cell, [])]
            return (sum(values), len(values)) if values else None
        if name == CAPPED:
            read = self.built[HOURS].get(cell)
            return None if read is None else (min(read[0], CAP),)
        up = LEVELS[LEVELS.index(name) - 1]
        totals = [
            held[0] for at, held in self.built[up].items() if held and cell in read_by(up, at)
        ]
        return (sum(totals),) if totals else None


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def read_by(name: str, cell: datetime) -> set[datetime]:
    """Give the cells of the next level that read a cell."""
    if name == HOURS:
        return {cell}
    if name == CAPPED:
        day = cell.replace(hour=0)
        return {day, day + DAY} if cell.hour >= 24 - EARLIER_HOURS else {day}
    month = cell.replace(day=1)
    tomorrow = cell + EARLIER_DAYS * DAY
    return {month, tomorrow.replace(day=1)}


def reached(hour: datetime) -> set[tuple[str, datetime]]:
    """Give every cell that an hour's change may reach."""
    found, cells = {(HOURS, hour)}, {hour}
    for number, name in enumerate(LEVELS[:-1]):
        cells = {reader for cell in cells for reader in read_by(name, cell)}
        found |= {(LEVELS[number + 1], cell) for cell in cells}
    return found


def first_of(name: str) -> datetime:
    return FIRST.replace(day=1) if name == MONTHS else FIRST


def after(name: str, cell: datetime) -> datetime:
    """Where a cell ends."""
    if name == MONTHS:
        return (cell + 32 * DAY).replace(day=1)
    return cell + (DAY if name == DAYS else HOUR)


def before(name: str, cell: datetime) -> datetime:
    """Where the cell before begins."""
    if name == MONTHS:
        return (cell - DAY).replace(day=1)
    return cell - (DAY if name == DAYS else HOUR)


def as_date(at: datetime, name: str) -> date | datetime:
    """Write a cell's start as its table has it."""
    return at if name in (HOURS, CAPPED) else at.date()
