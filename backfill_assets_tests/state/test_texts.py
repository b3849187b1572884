"""Texts of modules and files are kept once, and come back as they were saved."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from alembic import command
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.models.codec import dumps
from backfill_assets.models.python.function_query import ModuleQuery, StoredFile
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.state import migrate
from backfill_assets.state.database import Database
from backfill_assets.state.snapshots import UnknownSnapshotError
from backfill_assets.state.store import Store
from backfill_assets.state.tables import SNAPSHOTS, TEXTS
from backfill_assets.state.texts import taken_apart
from backfill_assets_tests.builders import a_model
from backfill_assets_tests.state.building import Clock
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from sqlalchemy import Connection

SHARED = StoredModule("shop.rates", "RATE = 2  # é\r\n" * 50)


def definition(number: int = 0) -> str:
    """The stored model of a function whose module changes, beside one that does not."""
    own = StoredModule("shop.visits", f"def visits(inputs, interval):\n    return {number}\n")
    files = (StoredFile("shop/rates.csv", "YSxi"),)
    return dumps(a_model(query=ModuleQuery("visits", "shop.visits", (SHARED, own), files)))


def save(store: Store, name: str, text: str, version: str = "m__v1") -> None:
    store.snapshots.save_snapshot(
        fingerprint_id=name, model="m", version=version, definition=text, logic="", upstream="", metadata=""
    )  # fmt: skip


def texts(store: Store) -> list[str]:
    return store._database.read(
        lambda found: [*found.execute(sa.select(TEXTS.c.text).order_by(TEXTS.c.text)).scalars()]
    )


def test_one_module_in_a_hundred_snapshots_is_stored_once(store: Store):
    for number in range(100):
        save(store, f"print-{number}", definition(number))

    assert len(texts(store)) == 100 + 2
    assert texts(store).count(SHARED.source) == 1
    for number in range(100):
        read = store.snapshots.get(f"print-{number}").definition
        assert read == definition(number)
        assert stored_model(read).logic == stored_model(definition(number)).logic


def test_what_is_stored_names_its_texts_and_holds_none(store: Store):
    save(store, "print", definition())
    rows = store._database.read(
        lambda found: [*found.execute(sa.select(SNAPSHOTS.c.definition)).scalars()]
    )

    assert not any("RATE" in row or "YSxi" in row for row in rows)
    assert all(len(row) < len(definition()) for row in rows if "StoredModule" in row)


@given(
    st.lists(st.tuples(st.text(), st.text(st.characters(codec="utf-8")))),
    st.dictionaries(st.sampled_from(["@", "v", "source", "a"]), st.sampled_from(["text", "StoredModule", "b"])),
)  # fmt: skip
def test_any_definition_comes_apart_into_texts_that_it_names(
    modules: list[tuple[str, str]], tags: dict[str, str]
):
    stored = tuple(StoredModule(name, source) for name, source in modules)
    model = a_model(query=ModuleQuery("f", "m", stored), tags=tags)
    named, held = taken_apart(dumps(model))

    assert {*held.values()} == {source for _, source in modules}
    assert json.loads(named)["v"]["tags"] == json.loads(dumps(model))["v"]["tags"]


def test_a_text_that_is_not_there_is_told(store: Store):
    save(store, "print", definition())
    store._database.write(lambda found: found.execute(sa.delete(TEXTS)))

    with pytest.raises(RequestError, match="texts` from a backup"):
        store.snapshots.get("print")


def test_texts_of_an_older_state_are_taken_out_of_its_snapshots(url: str, clock: Clock):
    database = Database.open(url, busy_seconds=30)
    database.change_schema(lambda found: command.upgrade(migrate.config(found), "0011"))
    odd = definition(1) + " "  # not as today's codec writes it: it stays as it is
    held = {"one": definition(1), "two": definition(2), "odd": odd, "sql": dumps(a_model()), "none": "?"}  # fmt: skip

    def write(connection: Connection) -> None:
        rows = [
            {"fingerprint": name, "model": "m", "version": "v", "definition": text, "logic": "",
             "upstream": "", "metadata": "", "saved_at": clock()}
            for name, text in held.items()
        ]  # fmt: skip
        connection.execute(sa.insert(SNAPSHOTS), rows)

    database.write(write)
    database.close()
    with Store.open(url, clock=clock) as store:
        assert {name: store.snapshots.get(name).definition for name in held} == held
        assert len(texts(store)) == 4
        save(store, "three", definition(2))
        assert len(texts(store)) == 4


@pytest.mark.parametrize("again", [False, True])
def test_a_snapshot_that_was_just_saved_is_kept_while_its_old_table_is_collected(
    store: Store, clock: Clock, *, again: bool
):
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    day = timedelta(days=1)
    save(store, "old", definition(1), "orders__v2")
    save(store, "seldom", definition(2), "orders__v2")
    clock.pass_by(day.total_seconds() + 1)
    if again:  # a run is about to let a pointer name it
        save(store, "old", definition(1), "orders__v2")
    store.environments.drop_workspace(trial.plan_id)
    store.collection.mark_collecting("orders__v2", timedelta(0))
    store.collection.forget_version("orders__v2", day)

    if again:
        assert store.snapshots.get("old").definition == definition(1)
    with pytest.raises(UnknownSnapshotError):
        store.snapshots.get("seldom")


def test_texts_go_with_the_last_snapshot_that_names_them(store: Store):
    trial = Trial(store)
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 2)
    save(store, "gone", definition(1), "orders__v2")
    save(store, "print-orders", definition(2), "orders__v2")  # runs in another table, too
    save(store, "stays", definition(3))
    store.environments.drop_workspace(trial.plan_id)
    store.collection.mark_collecting("orders__v2", timedelta(days=30))
    store.collection.forget_version("orders__v2")

    with pytest.raises(UnknownSnapshotError):
        store.snapshots.get("gone")
    assert store.snapshots.get("print-orders").definition == definition(2)
    assert store.snapshots.get("stays").definition == definition(3)
    assert len(texts(store)) == 2 + 2
