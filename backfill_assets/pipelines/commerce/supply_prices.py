"""Make up a history of supply prices, because jafgen gives only today's costs.

The history is the same every time: a price from before the shop opened, and a change of each supply's
price each quarter, by -3% to +9%, computed from its name and the day alone. One price was typed wrong
and corrected two days later, so the history holds two rows for one day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BEFORE_OPENING = date(2018, 1, 1)
CHANGES = (date(2018, 12, 1), date(2019, 3, 1), date(2019, 6, 1))
MISTYPED = ("SUP-026", date(2019, 3, 1))
"""The supply (coffee) and the day whose price was first recorded ten times too high."""

_CENT = Decimal("0.01")
_PRECISION = Decimal("0.0001")


class SupplyPrice(NamedTuple):
    """From `effective_from` on, one piece sold of `sku` needs `cost` dollars of the supply."""

    supply_id: str
    sku: str
    cost: Decimal
    effective_from: date
    recorded_at: datetime


def price_history(supplies: Iterable[tuple[str, str, int]]) -> Iterator[SupplyPrice]:
    """Make up the history of prices.

    Args:
        supplies: of each supply and product that needs it: its id, the sku, the cost in cents.
    """
    for supply_id, sku, cents in supplies:
        cost = cents * _CENT
        yield _recorded(supply_id, sku, cost, BEFORE_OPENING)
        for day in CHANGES:
            cost *= 1 + _change(supply_id, day)
            right = _recorded(supply_id, sku, cost, day)
            if (supply_id, day) == MISTYPED:
                yield right._replace(cost=right.cost * 10)
                right = right._replace(recorded_at=right.recorded_at + timedelta(days=2))
            yield right


def _recorded(supply_id: str, sku: str, cost: Decimal, day: date) -> SupplyPrice:
    at = datetime.combine(day, time(9), tzinfo=UTC)
    return SupplyPrice(supply_id, sku, cost.quantize(_PRECISION), day, at)


def _change(supply_id: str, day: date) -> Decimal:
    """The change of a supply's price on a day, as a fraction."""
    return (crc32(f"{supply_id} {day}".encode()) % 13 - 3) * _CENT
