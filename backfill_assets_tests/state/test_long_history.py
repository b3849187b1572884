"""What every tick, run and look asks of a state reads no table of a long history from end to end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from sqlalchemy import event

from backfill_assets.snapshots.stored_plan import OPEN
from backfill_assets.state import migrate
from backfill_assets.state.database import Database
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A state of the release before there were indexes for it."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    database = Database.open(url, busy_seconds=30)
    database.change_schema(lambda found: command.upgrade(migrate.config(found), "0024"))
    database.close()
    with Store.open(url, clock=Clock()) as opened:
        yield opened


@contextmanager
def _asked(store: Store) -> Iterator[list[tuple[str, Any]]]:
    asked: list[tuple[str, Any]] = []

    def ask(_: object, __: object, statement: str, given: object, *___: object) -> None:
        asked.append((statement, given))

    engine = store._database._engine
    event.listen(engine, "before_cursor_execute", ask)
    yield asked
    event.remove(engine, "before_cursor_execute", ask)


@pytest.mark.parametrize(
    "look",
    [
        lambda store: store.batches.failed_batches(["orders__v1", "items__v1"]),
        lambda store: store.batches.latest(limit=20),
        lambda store: store.batches.latest(model="orders", limit=20),
        lambda store: store.plans.latest(statuses=OPEN),
        lambda store: store.history.moves_of("p1"),
    ],
)
def test_a_look_finds_its_rows_by_an_index(store: Store, look: Callable[[Store], object]):
    with _asked(store) as asked:
        look(store)
    selects = [each for each in asked if each[0].lstrip().startswith("SELECT")]
    steps = [
        step.detail
        for statement, given in selects
        for step in store._database.read(
            lambda connection, of=statement, by=given: connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {of}", by
            ).all()
        )
    ]

    assert steps
    assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]


def test_the_history_of_a_model_reads_no_content_of_plans(store: Store):
    with _asked(store) as asked:
        store.history.of_model("orders")

    assert not [statement for statement, _ in asked if "plans.content" in statement]
