"""Slices: a restatement that may change only the rows which a condition selects, and what its promotion must leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime
    from random import Random

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.oracle import Row
    from backfill_assets_tests.histories.published import Contents


@dataclass(frozen=True, slots=True)
class Slice:
    """A condition on rows, in SQL and in Python.

    Attributes:
        sql: as it is asked for.
        selects: whether it is true of a row.
    """

    sql: str
    selects: Callable[[Row], bool]


def any_slice(random: Random, model: str) -> Slice:
    """Choose a condition that rows of a model may fulfil."""
    number = random.choice([0, 4, 9, 20])
    slices = [
        Slice("TRUE", lambda _: True),
        Slice(f"total < {number}", lambda row: "total" in row and row["total"] < number),
        Slice(f"total >= {number}", lambda row: "total" in row and row["total"] >= number),
    ]
    if model == "shop.receipts":
        slices += [Slice("id % 2 = 0", lambda row: row["id"] % 2 == 0)]
        slices += [Slice("NOT gone", lambda row: not row["gone"])]
    return random.choice(slices)


def leaves_the_rest(
    history: History,
    plan: Plan,
    before: Contents,
    after: Contents,
    carried: Mapping[str, Collection[datetime]],
) -> None:
    """A promotion of a slice has changed no row outside of it, in no cell of the restated models."""
    found = history.slices.get(plan.request.where or "")
    if found is None:
        return
    restated = {restatement.name for restatement in plan.request.restate}
    for name in restated & before.models.keys() & after.models.keys():
        planned, (old, new) = plan.model(name), (before.models[name], after.models[name])
        if planned is None or not planned.moves or old.schema != new.schema:
            continue
        cells = history.starts(name, planned.cells) - {*carried.get(name, ())}
        was, now = (_by_key(one, name, cells, old.key) for one in (before, after))
        for key in was.keys() | now.keys():
            row = was.get(key) or now[key]
            if was.get(key) != now.get(key) and not found.selects(row):
                raise WrongError(
                    f"promotion of {plan.plan_id}, where {found.sql}: {name} {key} was {was.get(key)} and is "
                    f"{now.get(key)}"
                )


def _by_key(
    found: Contents, name: str, cells: Collection[datetime], key: Collection[str]
) -> dict[tuple[Any, ...], Row]:
    return {
        tuple(row.get(one) for one in key): row
        for at, rows in found.of(name).items()
        if at in cells
        for row in rows
    }
