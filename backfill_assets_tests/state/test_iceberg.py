"""Names follow pointers: in SQLite and PostgreSQL, by the view that Iceberg's SQL catalogues read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.environment import PROD, Environment, Layer, Pointer
from backfill_assets.state.iceberg import Named
from backfill_assets.state.pointers import put_pointer
from backfill_assets_tests.state.building import NOON

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

NOTHING = IntervalSet.empty()


def point(store: Store, environment: str, at: tuple[str, int], *under: Layer) -> None:
    """Point an environment at a version of web.visits."""
    pointer = Pointer(environment, "web.visits", "print", *at, under, NOTHING)
    store._database.write(lambda connection: put_pointer(connection, pointer, NOON))


@pytest.fixture
def named(store: Store) -> Store:
    store.iceberg.enable("lake")
    for version, delta_version in (("v1", 0), ("v1", 1), ("v2", 0)):
        store.iceberg.enter(version, delta_version, f"file:///{version}/{delta_version}")
    point(store, PROD, ("v1", 0))
    return store


def test_a_name_stands_for_what_its_environment_points_at(named: Store):
    assert named.iceberg.names() == (Named("prod.web.visits", "file:///v1/0"),)
    point(named, PROD, ("v1", 1))
    assert named.iceberg.names() == (Named("prod.web.visits", "file:///v1/1"),)
    point(named, PROD, ("v2", 0))
    assert named.iceberg.names() == (Named("prod.web.visits", "file:///v2/0"),)


def test_an_environment_has_the_names_of_the_one_that_it_follows(named: Store):
    save = named.environments.save_environment
    save(Environment("dev", protected=False, follows=PROD))
    save(Environment("mine", protected=False, follows="dev"))
    own = {"prod.web.visits": "file:///v1/0"}
    assert dict(named.iceberg.names()) == {
        **own,
        "dev.web.visits": "file:///v1/0",
        "mine.web.visits": "file:///v1/0",
    }
    point(named, "dev", ("v2", 0))
    assert dict(named.iceberg.names()) == {
        **own,
        "dev.web.visits": "file:///v2/0",
        "mine.web.visits": "file:///v2/0",
    }


def test_a_table_with_others_under_it_has_no_name_and_neither_has_a_workspace(named: Store):
    save = named.environments.save_environment
    save(Environment("dev", protected=False, follows=PROD))
    save(Environment("plan:p1", protected=False, follows=PROD, opened=1))
    point(named, "dev", ("v2", 0), Layer("v1", 0))
    assert [each.name for each in named.iceberg.names()] == ["prod.web.visits"]


def test_a_pointer_that_nothing_describes_yet_has_no_name_rather_than_an_older_one(named: Store):
    point(named, PROD, ("v1", 7))
    assert named.iceberg.names() == ()


def test_without_a_catalogue_there_are_no_names(named: Store):
    named.iceberg.disable()
    assert (named.iceberg.names(), named.iceberg.catalogue()) == ((), None)


def test_pyiceberg_lists_the_names_and_can_not_write_them(named: Store, place: str):
    made = sa.make_url(place)
    psycopg = made if "sqlite" in place else made.set(drivername="postgresql+psycopg")
    uri = psycopg.render_as_string(hide_password=False)
    reader = SqlCatalog("lake", uri=uri, init_catalog_tables="false")
    assert reader.list_namespaces("prod") == [("prod", "web")]
    assert reader.list_tables("prod.web") == [("prod", "web", "visits")]
    assert SqlCatalog("other", uri=uri, init_catalog_tables="false").list_namespaces() == []
    with pytest.raises(Exception, match="view"):
        reader.drop_table("prod.web.visits")
    assert named.iceberg.names() == (Named("prod.web.visits", "file:///v1/0"),)
