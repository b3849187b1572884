"""The state names tables below the data root by their places: no absolute path of ours is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic import command

from backfill_assets.errors import RequestError
from backfill_assets.models.codec import dumps
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.observation import ObservedSource
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state import migrate
from backfill_assets.state.database import Database
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Asked, Clock, write

if TYPE_CHECKING:
    from pathlib import Path

TABLE, URI = "tables/orders/orders__v1", "s3://lake/events"


def opened(url: str, root: Path | str) -> Store:
    return Store.open(url, clock=Clock(), data_root=str(root))


def paths(url: str, root: Path | str) -> tuple[str, list[str], str]:
    """Where the state says that the table lies, and what the batch and the source name."""
    with opened(url, root) as store:
        (batch,) = store.batches.latest()
        return (
            store.versions.version_path("orders__v1"),
            [pin.path for pin in batch.inputs],
            store.sources.observed()["web.raw"].path,
        )


def stored_text(url: str) -> str:
    """Every text of the state."""
    database = Database.open(url, busy_seconds=30)

    def read(connection: sa.Connection) -> str:
        page = sa.MetaData()
        page.reflect(connection)
        rows = (connection.execute(sa.select(table)).all() for table in page.sorted_tables)
        return "\n".join(str(row) for table in rows for row in table)

    found = database.read(read)
    database.close()
    return found


def read_at(store: Store, path: str) -> list[int]:
    """At which delta_versions ready cells have read a source that lies there now."""
    source = ObservedSource("web.raw", store.place(path), "", "", 3)
    return [pin.delta_version for pin in store.sources.source_pins(None, source)]


def test_what_a_store_writes_of_tables_below_the_data_root_is_relative(url: str, tmp_path: Path):
    old, new = tmp_path / "it's old", tmp_path / "new"
    with opened(url, old) as store:
        at = Pointer("prod", "orders", "print-orders", "orders__v1", -1)
        store.environments.ensure_pointer(at, f"{old}/{TABLE}")
        pins = (
            InputPin("web.raw", "", store.place(f"{old}/raw"), 3),
            InputPin("web.events", "", store.place(URI), 3),
        )
        write(store, store.batches.open_batch(Asked(sources=pins).request))
        assert store.versions.version_path("orders__v1") == f"{old}/{TABLE}"
        assert read_at(store, f"{old}/raw") == [3]
    assert str(old) not in stored_text(url)
    with opened(url, new) as store:
        assert store.versions.version_path("orders__v1") == f"{new}/{TABLE}"
        assert read_at(store, f"{new}/raw") == [3]
        (batch,) = store.batches.latest()
        assert [store.located(pin.path) for pin in batch.inputs] == [f"{new}/raw", URI]


# What the release before wrote: absolute paths everywhere.


def before(url: str, *roots: Path | str) -> None:
    """A state of the release before: a table and a source below each of these roots."""
    database = Database.open(url, busy_seconds=30)
    database.change_schema(lambda found: command.upgrade(migrate.config(found), "0009"))
    database.write(lambda found: _hold(found, [*map(str, roots)]))
    database.close()


def _hold(connection: sa.Connection, roots: list[str]) -> None:
    page = sa.MetaData()
    page.reflect(connection)
    for number, root in enumerate(roots, 1):
        table = {"version": f"orders__v{number}", "model": "orders"}
        path = f"{root}/tables/orders/{table['version']}"
        _put(connection, page.tables["versions"], {**table, "path": path, "known_head": 0})
        if number == 1:
            _put(connection, page.tables["observed_sources"], _source(root))
            pins = (
                InputPin("web.raw", "", f"{root}/raw", 3),
                InputPin("web.events", "", URI, 3),
            )
            held = {**table, "inputs": dumps(pins), "batch_id": "b", "ends": 86400}
            _put(connection, page.tables["batches"], held)


def _source(root: str) -> dict[str, Any]:
    return {"source": "web.raw", "path": f"{root}/raw", "runs": "[]"}


def _put(connection: sa.Connection, table: sa.Table, held: dict[str, Any]) -> None:
    zeros = {
        column.name: "" if isinstance(column.type, sa.Text) else 0
        for column in table.columns
        if not column.nullable
    }
    connection.execute(sa.insert(table).values({**zeros, **held}))


RELATIVE = ["raw", URI]


def test_the_paths_of_the_release_before_become_relative(url: str, tmp_path: Path):
    root = tmp_path / "it's 50%_ü"
    before(url, root)
    assert paths(url, root) == (f"{root}/{TABLE}", RELATIVE, "raw")
    assert str(root) not in stored_text(url)


def test_a_folder_of_the_release_before_that_was_moved_or_copied_is_whole(url: str, tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    before(url, old)
    (new / TABLE).mkdir(parents=True)
    assert paths(url, new) == (f"{new}/{TABLE}", RELATIVE, "raw")
    assert str(old) not in stored_text(url)


def test_tables_that_were_left_in_another_folder_stay_there(url: str, tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    before(url, old)
    found = paths(url, new)
    assert found == (f"{old}/{TABLE}", [f"{old}/raw", URI], f"{old}/raw")


@pytest.mark.parametrize("first", [1, 2])
def test_of_two_roots_the_one_of_today_is_taken(url: str, tmp_path: Path, first: int):
    roots = [tmp_path / "one", tmp_path / "two"]
    before(url, *roots)
    today = roots[first - 1]
    with opened(url, today) as store:
        found = [store.versions.version_path(f"orders__v{number}") for number in (1, 2)]
        places = [store.place(path) for path in found]
    assert found == [f"{root}/tables/orders/orders__v{n}" for n, root in enumerate(roots, 1)]
    assert places[first - 1] == f"tables/orders/orders__v{first}"


def test_a_folder_whose_name_differs_in_case_is_another(url: str, tmp_path: Path):
    before(url, tmp_path / "data", tmp_path / "Data")
    with opened(url, tmp_path / "data") as store:
        assert (
            store.versions.version_path("orders__v2") == f"{tmp_path}/Data/tables/orders/orders__v2"
        )


def test_an_object_store_that_may_have_been_copied_is_asked_about(url: str):
    before(url, "s3://old")
    with pytest.raises(RequestError, match=r"names tables in s3://old.*is s3://new"):
        opened(url, "s3://new")
    with opened(url, "s3://old"):
        pass
    assert paths(url, "s3://new") == (f"s3://new/{TABLE}", RELATIVE, "raw")
