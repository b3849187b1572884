"""Slices: a restatement that may change only the rows which a condition selects, and what its promotion must leave."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.plans.strategy_checks import SliceLeakError
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
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


@contextmanager
def leaking_if_said(history: History, plan: Plan) -> Iterator[None]:
    """A promotion that is refused for a row outside of its slice would have changed one."""
    try:
        yield
    except SliceLeakError as error:
        now, shown = history.contents(), history.contents(workspace_name(plan.plan_id))
        cells = now.of(error.model).keys() | shown.of(error.model).keys()
        if not _differing(history, plan, error.model, now, shown, cells):
            raise WrongError(f"{plan.plan_id} changes no row outside of its slice") from error
        raise


def leaves_the_rest(
    history: History,
    plan: Plan,
    before: Contents,
    after: Contents,
    carried: Mapping[str, Collection[datetime]],
) -> None:
    """A promotion of a slice has changed no row outside of it, in no cell of the restated models."""
    restated = {restatement.name for restatement in plan.request.restate}
    for name in restated & before.models.keys() & after.models.keys():
        planned = plan.model(name)
        if not plan.request.where or planned is None or not planned.moves:
            continue
        if before.models[name].schema != after.models[name].schema:
            continue
        cells = history.starts(name, planned.cells) - {*carried.get(name, ())}
        if differing := _differing(history, plan, name, before, after, cells):
            raise WrongError(
                f"promotion of {plan.plan_id}, where {plan.request.where}: {name} differs in {differing}"
            )


def _differing(
    history: History,
    plan: Plan,
    name: str,
    before: Contents,
    after: Contents,
    cells: Collection[datetime],
) -> list[tuple[Row | None, Row | None]]:
    """Give the rows of cells that a plan's condition does not select, by their old values, and that differ."""
    found, key = history.slices[plan.request.where or ""], after.models[name].key
    was, now = (_by_key(one, name, cells, key) for one in (before, after))
    pairs = [(was.get(each), now.get(each)) for each in was.keys() | now.keys()]
    return [(old, new) for old, new in pairs if old != new and not found.selects(old or new or {})]


def _by_key(
    found: Contents, name: str, cells: Collection[datetime], key: Collection[str]
) -> dict[tuple[Any, ...], Row]:
    return {
        tuple(row.get(one) for one in key): row
        for at, rows in found.of(name).items()
        if at in cells
        for row in rows
    }
