"""What the ledger's tables must hold, worked out move by move in Python.

Neither Spark, nor SQL, nor anything of the product is used. A world is its models; a model, its
cells by first day or hour; a cell, its rows in order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

ENTRIES, DAILY = "ledger.entries", "ledger.daily"
THREE_DAYS, MONTHLY = "ledger.three_days", "ledger.monthly"
HOURLY = "ledger.hourly"
MODELS = (ENTRIES, DAILY, THREE_DAYS, HOURLY, MONTHLY)

Cells = dict[date, list[tuple[Any, ...]]]
World = dict[str, Cells]


@dataclass(frozen=True, order=True)
class Move:
    """A row of the source."""

    move_id: int
    account: str
    moved_at: datetime
    amount: Decimal


FIRST, LAST = date(2024, 1, 28), date(2024, 2, 4)
FIRST_OF_HOURS, LAST_OF_HOURS = date(2024, 1, 31), date(2024, 2, 2)
_DAYS = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]


def first_moves() -> list[Move]:
    """What is landed at first: three moves an hour on eight days, cents and all."""
    hours = [
        datetime(day.year, day.month, day.day, hour, 15, tzinfo=UTC)
        for day in _DAYS
        for hour in range(24)
    ]
    return [
        Move(3 * number + index, "abc"[index], at, Decimal(7 * number % 1000 + index) / 100)
        for number, at in enumerate(hours)
        for index in range(3)
    ]


def world_of(moves: list[Move], *, doubled: bool = False) -> World:
    """Work out every model; `doubled` once somebody has let `daily` count amounts twice."""
    found: dict[date, list[Move]] = defaultdict(list)
    for move in moves:
        if FIRST <= move.moved_at.date() <= LAST:
            found[move.moved_at.date()].append(move)
    entries: Cells = {
        day: sorted((moved.move_id, moved.account, day, moved.amount) for moved in of)
        for day, of in found.items()
    }
    daily = {day: _accounts(day, of, 2 if doubled else 1) for day, of in found.items()}
    totals = {day: sum((row[2] for row in rows), Decimal(0)) for day, rows in daily.items()}
    return {
        ENTRIES: entries,
        DAILY: daily,
        THREE_DAYS: _sums(totals),
        HOURLY: _hours(moves),
        MONTHLY: _months(totals),
    }


def _hours(moves: list[Move]) -> Cells:
    found: dict[datetime, list[Move]] = defaultdict(list)
    for move in moves:
        if FIRST_OF_HOURS <= move.moved_at.date() <= LAST_OF_HOURS:
            found[move.moved_at.replace(minute=0)].append(move)
    return {hour: _accounts(hour, of, 1) for hour, of in found.items()}


def _accounts(start: date, moves: list[Move], times: int) -> list[tuple[Any, ...]]:
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for move in moves:
        amounts[move.account].append(move.amount * times)
    return sorted((start, who, sum(of, Decimal(0)), len(of)) for who, of in amounts.items())


def _sums(totals: dict[date, Decimal]) -> Cells:
    found: Cells = {}
    for day in _DAYS:
        back = [totals[at] for at in (day - timedelta(days=n) for n in range(3)) if at in totals]
        if back:
            found[day] = [(day, sum(back, Decimal(0)))]
    return found


def _months(totals: dict[date, Decimal]) -> Cells:
    months: dict[date, Decimal] = {}
    for day, amount in totals.items():
        first = day.replace(day=1)
        months[first] = months.get(first, Decimal(0)) + amount
    return {
        month: [(month, amount, months.get((month - timedelta(days=1)).replace(day=1)))]
        for month, amount in months.items()
    }
