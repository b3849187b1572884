"""A database server that is away for a while: it is waited for, and nothing is done twice."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from backfill_assets.state.database import StateCommitUnknownError, StateUnavailableError
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Clock, add_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.postgres import Server


@pytest.fixture
def kept(postgres: Server) -> Iterator[Store]:
    with Store.open(postgres.create("away"), clock=Clock(), busy_seconds=60) as store:
        add_model(store, "orders")
        yield store


def test_a_server_that_is_restarted_is_waited_for_and_nothing_is_lost(
    postgres: Server, kept: Store
):
    before = kept.environments.pointers("prod")
    postgres.stop()
    starting = Thread(target=postgres.start)
    starting.start()
    try:
        kept.limits.set_limit("all", 3, "ann")
        assert kept.limits.by_scope() == {"all": 3}
        assert kept.environments.pointers("prod") == before
    finally:
        starting.join()


def test_a_server_that_stays_away_is_an_error_of_its_own_and_later_all_is_there(
    postgres: Server,
):
    url = postgres.create("away")
    with Store.open(url, clock=Clock(), busy_seconds=1) as store:
        add_model(store, "orders")
        before = store.environments.pointers("prod")
        postgres.stop()
        try:
            with pytest.raises(StateUnavailableError, match=r"backfill:\*\*\*@"):
                store.limits.set_limit("all", 3, "ann")
        finally:
            postgres.start()
        assert store.limits.by_scope() == {}
        assert store.environments.pointers("prod") == before


def test_a_connection_that_breaks_in_a_commit_is_not_tried_again(postgres: Server, kept: Store):
    engine = kept._database._engine
    commits: list[int] = []

    def cut(connection: sa.Connection) -> None:
        pid = connection.scalar(sa.text("select pg_backend_pid()"))
        commits.append(pid)
        other = sa.create_engine(engine.url)
        with other.connect() as killer:
            killer.execute(sa.text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        other.dispose()

    event.listen(engine, "commit", cut)
    try:
        with pytest.raises(StateCommitUnknownError, match="not known"):
            kept.limits.set_limit("all", 3, "ann")
    finally:
        event.remove(engine, "commit", cut)
    assert len(commits) == 1
    assert kept.limits.by_scope() == {}


def test_a_wrong_password_is_not_waited_for(postgres: Server):
    url = postgres.url().replace("s3cret", "wrong")
    with pytest.raises(StateUnavailableError, match="authentication failed") as refused:
        Store.open(url, clock=Clock(), busy_seconds=3600)
    assert "wrong-of" not in str(refused.value)
