"""What a cell must hold, worked out in plain Python from the sales and from what its upstreams publish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets_tests.histories.deliveries import (
    ARRIVALS,
    DELIVERIES,
    FIRST_DELIVERY,
    STOCK,
)
from backfill_assets_tests.histories.functions import PACED, PACES
from backfill_assets_tests.histories.hours import (
    BUSY_DAYS,
    HOURS,
    LOCAL_DAYS,
    LOCAL_WEEKS,
    VISITS,
    day_in_berlin,
)
from backfill_assets_tests.histories.ledger import LEDGER
from backfill_assets_tests.histories.models import (
    BALANCE,
    DAYS,
    PERIODS,
    RENAMED,
    REPORT,
    RUNNING,
    TRAILING,
)
from backfill_assets_tests.histories.receipts import RECEIPTS, SOFT, TAKINGS
from backfill_assets_tests.histories.sales import SALES
from backfill_assets_tests.histories.weights import SMOOTHED, WEIGHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from backfill_assets.intervals import Interval
    from backfill_assets_tests.histories.declared import Declared

Row = dict[str, Any]
"""The values of a row; a column without one is none of them."""

Cells = dict[datetime, tuple[Row, ...]]
"""The rows of each cell, by the instant at which it begins."""

When = date | datetime
"""The day or the hour of a row of a source."""

Landed = Mapping[str, Mapping[When, Mapping[int, int]]]
"""The amounts that sources hold, by source, day or hour, and id."""

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def midnight(day: date) -> datetime:
    """Give the instant at which a day begins."""
    return datetime.combine(day, time(), UTC)


@dataclass(frozen=True, slots=True)
class Oracle:
    """What cells follow from.

    Attributes:
        landed: what the sources hold.
        published: what an environment publishes, by model.
    """

    landed: Landed
    published: Mapping[str, Cells]

    def rows(self, name: str, declared: Declared, cell: Interval) -> tuple[Row, ...]:
        """Work out one cell."""
        found = self._rules[name](declared, cell)
        return in_order(
            {column: value for column, value in row.items() if value is not None} for row in found
        )

    @property
    def _rules(self) -> Mapping[str, Callable[[Declared, Interval], Iterable[Row]]]:
        return {
            DAYS: self._days,
            TRAILING: self._trailing,
            PERIODS: self._periods,
            BALANCE: self._balance,
            RENAMED: self._balance,
            REPORT: self._report,
            RUNNING: self._running,
            HOURS: self._hours,
            LOCAL_DAYS: self._local_days,
            LOCAL_WEEKS: self._local_weeks,
            BUSY_DAYS: self._busy_days,
            RECEIPTS: self._receipts,
            TAKINGS: self._takings,
            ARRIVALS: self._arrivals,
            STOCK: self._stock,
            WEIGHED: self._weighed,
            SMOOTHED: self._smoothed,
            PACED: self._paced,
            PACES: self._paces,
            LEDGER: self._ledger,
        }

    def _days(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        day = cell.start.date()
        if amounts := self.landed[SALES].get(day):
            count = {"sold": len(amounts)} if declared.counts else {}
            yield {"ds": day, "total": sum(amounts.values()) * declared.factor, **count}

    def _trailing(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        first = cell.start - declared.lookback * DAY
        column = "sold" if declared.counts else "total"
        if found := self._read(DAYS, first, cell.end):
            yield {"ds": cell.start.date(), "total": _plus(_total(found, column), declared.plus)}

    def _periods(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if found := self._read(DAYS, cell.start, cell.end):
            total = _total(found, "total")
            yield {"first_day": cell.start.date(), "total": _times(total, declared.factor)}

    def _balance(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        days = self._read(DAYS, cell.start, cell.end)
        trailing = self._read(TRAILING, cell.start, cell.end)
        if days and trailing:
            more, less = days[0]["total"] * declared.factor, trailing[0].get("total")
            yield {"ds": cell.start.date(), "total": None if less is None else more - less}

    def _report(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        for row in self._read(PERIODS, cell.start, cell.end):
            yield {**row, "total": _plus(row.get("total"), declared.plus)}

    def _running(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if days := self._read(DAYS, cell.start, cell.end):
            before = self._read(RUNNING, cell.start - DAY, cell.start)
            total = days[0]["total"] * declared.factor
            yield {"ds": cell.start.date(), "total": total + (before[0]["total"] if before else 0)}

    def _hours(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if amounts := self.landed[VISITS].get(cell.start):
            yield {"hour": cell.start, "total": sum(amounts.values()) * declared.factor}

    def _local_days(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if hours := self._read(HOURS, cell.start - declared.lookback * HOUR, cell.end):
            total = _total(hours, "total")
            yield {"ds": day_in_berlin(cell.start), "total": _times(total, declared.factor)}

    def _local_weeks(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if hours := self._read(HOURS, cell.start, cell.end):
            total = _times(_total(hours, "total"), declared.factor)
            yield {"monday": day_in_berlin(cell.start), "total": total}

    def _busy_days(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        days: defaultdict[date, int] = defaultdict(int)
        for hour, amounts in self.landed[VISITS].items():
            assert isinstance(hour, datetime)
            if cell.start <= hour < cell.end:
                days[day_in_berlin(hour)] += sum(amounts.values()) * declared.factor
        for day, total in days.items():
            yield {"ds": day, "total": total}

    def _receipts(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        """Give a row for each sale, and the published rows of sales that are gone as they are kept."""
        day = cell.start.date()
        sold = self.landed[SALES].get(day, {})
        for one, amount in sold.items():
            yield {"ds": day, "id": one, "total": amount * declared.factor, "gone": False}
        if declared.deletes != "absent":
            for row in self._read(RECEIPTS, cell.start, cell.end):
                if row["id"] not in sold:
                    yield {**row, "gone": row["gone"] or declared.deletes == SOFT}

    def _takings(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        found = self._read(RECEIPTS, cell.start - declared.lookback * DAY, cell.end)
        if here := [row for row in found if not row["gone"]]:
            yield {"ds": cell.start.date(), "total": _plus(_total(here, "total"), declared.plus)}

    def _arrivals(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        last, landed = cell.start.date(), self.landed[DELIVERIES]
        days = [last - back * DAY for back in range(declared.lookback + 1)]
        read = [landed.get(day, {}) for day in days if str(day) >= FIRST_DELIVERY]
        if amounts := [amount for amounts in read for amount in amounts.values()]:
            yield {"ds": last, "total": sum(amounts) * declared.factor}

    def _stock(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        arrivals = self._read(ARRIVALS, cell.start, cell.end)
        days = self._read(DAYS, cell.start, cell.end)
        if arrivals and days:
            total = arrivals[0]["total"] * declared.factor - days[0]["total"]
            yield {"ds": cell.start.date(), "total": total}

    def _weighed(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        day = cell.start.date()
        if amounts := self.landed[SALES].get(day):
            yield {"ds": day, "total": float(sum(amounts.values()) * declared.factor)}

    def _smoothed(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if found := self._read(WEIGHED, cell.start - declared.lookback * DAY, cell.end):
            yield {"ds": cell.start.date(), "total": sum(row["total"] for row in found)}

    def _paced(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if found := self._read(DAYS, cell.start - declared.lookback * DAY, cell.end):
            total = _times(_total(found, "total"), declared.factor)
            yield {"ds": cell.start.date(), "total": total}

    def _paces(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        if found := self._read(PACED, cell.start - declared.lookback * DAY, cell.end):
            total = _plus(_total(found, "total"), declared.plus)
            yield {"ds": cell.start.date(), "total": total}

    def _ledger(self, declared: Declared, cell: Interval) -> Iterator[Row]:
        for day, amounts in self.landed[SALES].items():
            if midnight(day) < cell.end:
                for one, amount in amounts.items():
                    yield {"id": one, "total": amount * declared.factor, "ds": day}

    def _read(self, name: str, start: datetime, end: datetime) -> list[Row]:
        """The published rows of the cells that begin within a stretch."""
        cells = self.published.get(name, {})
        return [row for at in sorted(cells) if start <= at < end for row in cells[at]]


def in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Order the rows of a cell by their values."""
    return tuple(sorted(rows, key=lambda row: str(sorted(row.items()))))


def _total(rows: Iterable[Row], column: str) -> int | None:
    """Add up as SQL does: what was published before the column existed counts nothing."""
    found = [row[column] for row in rows if row.get(column) is not None]
    return sum(found) if found else None


def _plus(total: int | None, more: int) -> int | None:
    return None if total is None else total + more


def _times(total: int | None, factor: int) -> int | None:
    return None if total is None else total * factor
