"""The parameters by which the models of the histories are declared."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.intervals import Unit

STARTS = ("2024-03-18", "2024-03-20", "2024-03-25")
"""The days on which a model's life may start."""

ENDS = (None, "2024-03-28", "2024-04-05")
"""The last days of a model's life; None where it goes on."""

CRONS = (None, "0 2 * * *", "0 6 * * 1")
"""When the days of a model are due: as soon as they are over, in the small hours, or on Mondays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """How a model is declared. Each model has use for some of it.

    Attributes:
        factor: what amounts are multiplied by.
        plus: what is added to them.
        counts: `days` also says how many sales there were; `trailing` adds up these numbers.
        lookback: how many days before its own `trailing` adds up, and how many hours `local_days`.
        unit: how long a cell of `periods` is.
        start: the first day of the model's life.
        end: the last one; None where it goes on.
        cron: when cells are due; None for as soon as they are over.
        late_window: how many cells may be refreshed without a person.
        batch_size: how many cells one batch computes.
        expected: an audit warns of totals that are not below it; 0 for no such audit.
        deletes: what `receipts` does with a sale that is deleted.
        ranges: where the ranges of the key begin in which `ledger` is computed.
        note: the description, by which nothing is computed.
    """

    factor: int = 1
    plus: int = 0
    counts: bool = False
    lookback: int = 2
    unit: Unit = Unit.WEEK
    start: str = STARTS[0]
    end: str | None = None
    cron: str | None = None
    late_window: int = 3
    batch_size: int = 4
    expected: int = 0
    deletes: str = "absent"
    ranges: tuple[int, ...] = ()
    note: str = "as it was"
