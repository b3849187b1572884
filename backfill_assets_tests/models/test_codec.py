from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Hourly, Weekly, Whole
from backfill_assets.models.audit import accepted_range, not_null, reconciles, references, unique
from backfill_assets.models.automation import Automation
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.column import Column
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import (
    Full,
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    KeepsDeleted,
    SoftDelete,
    Tombstone,
)
from backfill_assets.models.model import Model
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream, own_cells
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets_tests.builders import COLUMNS, a_model

SQL = "SELECT ds, id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
words = st.text(max_size=8)
upstreams = st.lists(
    st.builds(
        Upstream,
        st.sampled_from(["web.events", "web.b", "shop.c"]),
        lookback=st.integers(0, 3) | st.integers(0, 3).map(own_cells),
        time_column=st.none() | st.just("ds"),
        reopens=st.sampled_from(Reopens),
    ),
    max_size=3,
    unique_by=lambda upstream: upstream.name,
)
audits = st.lists(
    st.sampled_from(
        [
            not_null("id"),
            accepted_range("cost", 0, 1.5, warn=True),
            unique("id", "cost"),
            references("id", "web.events", "id", allowed=0.1),
            reconciles("cost", "web.events"),
        ]
    ),
    unique=True,
)
models = st.builds(
    a_model,
    query=st.sampled_from([SqlQuery(SQL), FunctionQuery("f", "def f(i, j):\n    return 'ü'\n")]),
    kind=st.sampled_from(
        [
            IncrementalByTimeRange("ds"),
            IncrementalByUniqueKey("ds", latest_by="id", rows_move=True),
        ]
    ),
    cadence=st.sampled_from(
        [
            Daily(start="2024-01-01", end="2024-02-01", tz="Europe/Berlin"),
            Hourly(start="2024-01-01", cron="5 * * * *"),
            Weekly(start="2024-01-01"),
        ]
    ),
    upstreams=upstreams,
    audits=audits,
    columns=st.sampled_from([COLUMNS, (*COLUMNS, Column("x", "map<string,int>", unique=True))]),
    times=st.sampled_from([TimeColumns(), TimeColumns(event="ds", updated="id")]),
    deletes=st.sampled_from([KeepsDeleted(), SoftDelete("id"), Tombstone("id")]),
    batch_size=st.none() | st.integers(1, 9),
    batch_timeout=st.none() | st.floats(1, 9),
    tags=st.dictionaries(words | st.sampled_from(["@", "v"]), words, max_size=3),
    description=words,
    volatile=st.booleans(),
    automation=st.sampled_from(Automation),
)


@given(models)
def test_a_stored_model_reads_back_as_it_was(model: Model):
    assert stored_model(dumps(model)) == model


def test_a_stored_model_has_its_key_ranges_and_one_without_them_says_nothing_of_them():
    whole = a_model(kind=Full(), cadence=Whole(), sql="SELECT ds, id, cost FROM web.events")
    ranged = replace(whole, key_ranges=KeyRanges("id", [7, 9]))
    assert stored_model(dumps(ranged)) == ranged
    assert "key_ranges" not in dumps(whole)


@given(models, st.randoms())
def test_equal_values_give_equal_text(model: Model, random: object):
    turned = dict(reversed([*model.tags.items()]))
    assert dumps(replace(model, tags=turned)) == dumps(model)
    assert dumps(stored_model(dumps(model))) == dumps(model)


def test_equal_instants_give_equal_text_in_every_zone():
    instant = datetime(2024, 3, 31, 1, 30, 0, 5, tzinfo=UTC)
    elsewhere = instant.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert dumps(elsewhere) == dumps(instant)
    assert loads(dumps(elsewhere), []) == instant


@given(st.integers(), st.text(), st.booleans())
def test_plain_values_of_any_size_read_back(number: int, text: str, flag: bool):  # noqa: FBT001
    value = (number * 10**40, text, flag, None, (), {"a": (text,)})
    assert loads(dumps(value), []) == value


def test_a_type_that_is_not_in_the_registry_is_never_made():
    with pytest.raises(RequestError, match=r"'Column'.*newer one, upgrade"):
        loads(dumps(COLUMNS), [])
    with pytest.raises(RequestError, match="type 'Popen' is not known to this release"):
        loads('{"@":"Popen","v":{"args":"x"}}', [Column])


def test_what_can_not_be_stored_is_said_at_once():
    with pytest.raises(TypeError, match="can't store a set"):
        dumps({"a": {1, 2}})
