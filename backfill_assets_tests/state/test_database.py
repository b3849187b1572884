from __future__ import annotations

import multiprocessing
import os
import socket
import sqlite3
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from backfill_assets.errors import DeclarationError
from backfill_assets.snapshots.timing import Timing
from backfill_assets.state.database import Database, StateBusyError, StateUnavailableError
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Asked, Clock, days, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.postgres import Server

NOBODY = 65534


def _open(path: Path, busy_seconds: float = 30) -> Store:
    return Store.open(f"sqlite:///{path}", clock=Clock(), busy_seconds=busy_seconds)


def _numbers(store: Store, first: int, count: int) -> list[int]:
    """Open batches over days of one's own; each draws a number."""
    return [
        store.batches.open_batch(Asked(start=at, end=at + 1, run=f"run-{at}").request).built_at
        for at in range(first, first + count)
    ]


def _numbers_elsewhere(url: str, first: int, count: int) -> list[int]:
    with Store.open(url, clock=Clock()) as store:
        return _numbers(store, first, count)


def test_threads_of_one_process_never_draw_the_same_number(store: Store):
    with ThreadPoolExecutor(6) as threads:
        drawn = list(threads.map(lambda first: _numbers(store, first * 20, 20), range(6)))

    assert sorted(chain(*drawn)) == list(range(1, 121))
    assert all(each == sorted(each) for each in drawn)


def test_processes_never_draw_the_same_number(store: Store, place: str):
    starting = multiprocessing.get_context("spawn")
    with starting.Pool(2) as processes:
        asked = [(place, first * 30, 30) for first in range(2)]
        drawn = processes.starmap(_numbers_elsewhere, asked)
        processes.close()  # it ends by itself: where SIGTERM is ignored it could not be terminated
        processes.join()

    assert sorted(chain(*drawn)) == list(range(1, 61))
    assert all(each == sorted(each) for each in drawn)


def test_what_the_url_asks_of_a_connection_counts_but_for_how_writers_are_isolated(
    postgres: Server,
):
    asked = "-cwork_mem%3D8MB%20-cdefault_transaction_isolation%3Dserializable"
    with Store.open(
        f"{postgres.create('with_options')}?options={asked}", clock=Clock(), busy_seconds=7
    ) as store:
        shown = {
            name: store._database.write(
                lambda open_, name=name: open_.exec_driver_sql(f"SHOW {name}").scalar_one()
            )
            for name in ("work_mem", "lock_timeout", "transaction_isolation")
        }

    assert shown == {
        "work_mem": "8MB",
        "lock_timeout": "7s",
        "transaction_isolation": "read committed",
    }


def test_a_connection_finds_out_that_the_other_machine_is_gone_unless_the_url_asks_otherwise(
    postgres: Server,
):
    url = postgres.create("gone")
    with Store.open(f"{url}?keepalives_idle=60", clock=Clock()) as store:
        asked = store._database.read(_parameters)

    assert (asked["tcp_user_timeout"], asked["keepalives_count"]) == ("15000", "3")
    assert asked["keepalives_idle"] == "60"


def _parameters(open_: Any) -> dict[str, str]:  # noqa: ANN401 - a driver's own
    return open_.connection.dbapi_connection.info.get_parameters()


def test_a_server_that_accepts_and_stays_silent_is_told():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none?connect_timeout=2"
        with pytest.raises(StateUnavailableError, match="connection timeout expired"):
            Store.open(url, clock=Clock(), busy_seconds=0.5)


def test_threads_that_open_a_new_state_at_once_all_find_it_ready(url: str):
    def environment(_: int) -> str:
        with Store.open(url, clock=Clock()) as store:
            return store.environments.get("prod").name

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(environment, range(4))) == ["prod"] * 4


def test_a_state_file_is_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "new" / "state.db"
    with _open(path) as store:
        assert store.environments.get("prod").protected
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path):
    path = tmp_path / "state.db"
    path.write_bytes(b"these are not the bytes of a database" * 100)
    before = path.read_bytes()

    with pytest.raises(StateUnavailableError, match="state rebuild") as refused:
        _open(path)
    assert str(path) in str(refused.value)
    assert "corrupt" in str(refused.value)
    assert path.read_bytes() == before


def test_a_page_that_is_damaged_later_is_reported_as_corruption(tmp_path: Path):
    path = tmp_path / "state.db"
    with _open(path) as store:
        store.environments.get("prod")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    with pytest.raises(StateUnavailableError, match="corrupt"), _open(path) as store:
        store.views.of("prod")


@pytest.fixture
def foreign_folder() -> Iterator[Path]:
    """A folder that somebody who is nobody can reach but not write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o700)


def _refusal_of(path: Path) -> str:
    if os.getuid() == 0:
        os.setuid(NOBODY)
    try:
        _open(path).close()
    except StateUnavailableError as error:
        return str(error)
    return "opened"


def test_a_read_only_folder_is_named(foreign_folder: Path):
    path = foreign_folder / "state.db"
    with multiprocessing.get_context("spawn").Pool(1) as process:
        refusal = process.apply(_refusal_of, (path,))
        process.close()
        process.join()

    assert f"{path} can't be used: Permission denied" in refusal


def test_a_folder_that_is_a_file_is_named(tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StateUnavailableError, match=r"data/state\.db"):
        _open(tmp_path / "data" / "state.db")


def test_a_full_disk_is_reported_and_leaves_what_was_there(store: Store):
    if store._database.dialect != "sqlite":
        pytest.skip("SQLite alone lets a test fill its disk")
    fill(store, Asked(start=0, end=3))
    before = store.versions.ready_records("orders__v1")
    with store._database._engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(
        store._database._engine,
        "begin",
        lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count={pages}"),
        insert=True,
    )

    with pytest.raises(StateUnavailableError, match="disk is full"):
        fill(store, Asked(start=3, end=400))
    assert store.versions.ready_records("orders__v1") == before


def test_a_state_that_turns_read_only_is_reported(store: Store):
    if store._database.dialect != "sqlite":
        pytest.skip("a pragma of SQLite")
    event.listen(
        store._database._engine,
        "begin",
        lambda connection: connection.exec_driver_sql("PRAGMA query_only=1"),
        insert=True,
    )
    with pytest.raises(StateUnavailableError, match="read-only"):
        store.batches.open_batch(Asked().request)


def test_a_state_that_others_keep_locked_is_reported_as_busy_and_works_afterwards(tmp_path: Path):
    path = tmp_path / "state.db"
    with _open(path, busy_seconds=0.2) as store:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateBusyError, match=str(path)):
            store.batches.heartbeat("run-1")
        store.plans.keep_timing(
            Timing("run", {})
        )  # what was done is done, whether it is kept or not
        assert store.plans.timings() == []
        assert store.environments.get("prod").protected
        blocker.execute("ROLLBACK")
        blocker.close()
        store.batches.heartbeat("run-1")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite://host/x.db", "mysql://x/y", "what?"]
)
def test_a_url_that_cannot_hold_the_state_is_refused(url: str):
    with pytest.raises(
        DeclarationError, match=r"neither an SQLite file nor PostgreSQL; .*postgresql://"
    ):
        Store.open(url, clock=Clock())


def test_a_server_that_does_not_answer_is_named_without_its_password():
    url = "postgresql://me:secret@127.0.0.1:1/none"
    with pytest.raises(StateUnavailableError) as refused:
        Store.open(url, clock=Clock(), busy_seconds=0.5)
    assert "me:***@127.0.0.1:1/none" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "postgresql://me:s3cret@host:port/db",
            "'postgresql://me:...@host:port/db' has a port that is no",
        ),
        (
            "postgresql://me:s3@cret@host/db",
            "'postgresql://me:...@host/db' has an @ too many: .* as %40",
        ),
        ("postgres:/me:s3cret@host/db", "'postgres:...@host/db' is neither"),
        ("mysql://host/db?password=s3cret", r"'mysql://host/db\?password=\*\*\*' is neither"),
        ("sqlite:///state.db?timeout=5", r"'sqlite:///state.db\?timeout=5' has options"),
        ("sqlite:////data/a?b/state.db", ".*/a.b/state.db' has options, .* is written as %3F"),
    ],
)
def test_a_url_that_is_wrong_is_refused_with_the_reason_and_without_its_password(
    url: str, why: str
):
    with pytest.raises(DeclarationError, match=f"state URL {why}") as refused:
        Store.open(url, clock=Clock())
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("user=me&password=s3cret", r"password=\*\*\*&user=me can't be used: .*"),
        ("foo=bar", 'foo=bar can\'t be used: invalid connection option "foo"'),
        ("connect_timeout=soon", "can't be used: bad value for connect_timeout: 'soon'"),
    ],
)
def test_a_url_whose_options_no_server_takes_is_named_without_its_password(options: str, why: str):
    with pytest.raises(StateUnavailableError, match=why) as refused:
        Store.open(f"postgresql://127.0.0.1:1/none?{options}", clock=Clock(), busy_seconds=0.5)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("search_path%3Dnowhere", "no schema has been selected to create in"),
        ("statement_timeout%3D1", "canceling statement due to"),
        ("role%3Dwithout_rights", "permission denied for schema public"),
    ],
)
def test_what_a_server_does_not_allow_is_told(postgres: Server, option: str, why: str):
    url = postgres.create("not_allowed")
    postgres.do("DROP ROLE IF EXISTS without_rights", "CREATE ROLE without_rights")
    owner = Database.open(url, busy_seconds=1)
    forbidden = sa.text("REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # as of PostgreSQL 15 it is
    owner.change_schema(lambda open_: open_.execute(forbidden))
    owner.close()

    with (
        pytest.raises(StateUnavailableError, match=rf"{why}.*what the user may do there"),
        Store.open(f"{url}?options=-c{option}", clock=Clock(), busy_seconds=1) as store,
    ):
        store._database.write(lambda open_: open_.exec_driver_sql("SELECT pg_sleep(1)"))


def test_texts_of_any_language_are_kept_whatever_encoding_clients_have(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.create("any_language")
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    with Store.open(url, clock=Clock()) as store:
        store.limits.set_limit("model:日本", 3, "Zoë")

        assert store.limits.by_scope() == {"model:日本": 3}


def test_a_driver_that_is_not_installed_is_told_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(
        DeclarationError, match=r"//me:...@host/db' needs psycopg, .* its extra `postgres`"
    ):
        Store.open("postgresql://me:s3cret@host/db", clock=Clock())


def test_a_driver_of_another_kind_is_not_asked_for(tmp_path: Path):
    with Store.open(f"sqlite+aiosqlite:///{tmp_path}/state.db", clock=Clock()) as store:
        assert store.environments.get("prod").protected


def test_a_folder_that_the_url_names_keeps_its_mode(tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)

    with pytest.raises(StateUnavailableError, match="folder can't be used: it is a folder"):
        _open(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_what_is_given_for_reading_answers_like_the_store_and_cannot_be_written_to(store: Store):
    fill(store, Asked(start=0, end=3))
    reader = store.reading()
    assert reader.views.of("prod") == store.views.of("prod")
    assert reader.batches.latest() == store.batches.latest()
    with pytest.raises(AttributeError, match="write"):
        reader.limits.set_limit("all", 3, "ann")  # pyright: ignore[reportAttributeAccessIssue]
    assert store.limits.by_scope() == {}


def test_what_one_store_wrote_another_reads_at_once(store: Store, other: Store):
    fill(store, Asked(start=0, end=3))
    assert days(0, 3) in other.views.of("prod").ready("orders")


def test_a_state_is_absent_until_it_is_opened(url: str):
    absent = Store.absent(url)
    Store.open(url, clock=Clock()).close()

    assert absent is not None
    assert absent in url or "***" in absent
    assert Store.absent(url) is None


def test_of_an_empty_state_to_look_at_nothing_stays():
    with Store.empty(clock=Clock()) as store:
        place = Path(store._database.where)
        assert place.exists()
        assert [each.name for each in store.environments.by_name()] == ["prod"]

    assert not place.parent.exists()
