from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import BackfillAssetsError, DeclarationError, RequestError
from backfill_assets.intervals import Cadence, Daily, Unit, Whole
from backfill_assets.models.audit import (
    RowRule,
    Unique,
    accepted_range,
    not_null,
    reconciles,
    references,
    row_count_within,
    row_rule,
    unique,
)
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
from backfill_assets.models.source import TimeColumns, WhenEmpty
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets.models.upstream import Reopens, Upstream, own_cells
from backfill_assets_tests.builders import COLUMNS, a_model, a_source

WHOLE: dict[str, Any] = {"kind": Full(), "cadence": Whole()}


@pytest.mark.parametrize(
    ("declared", "missing", "why"),
    [
        ({"grain": ""}, "grain", "without it a duplicate"),
        ({"grain": "  "}, "grain", "without it a duplicate"),
        ({"unique_key": []}, "unique_key", "reruns can't be distinguished"),
        ({"owner": ""}, "owner", "no person can accept"),
        ({"columns": []}, "columns", "drifted input"),
        ({"cadence": Daily()}, "start", "no first cell"),
    ],
)
def test_a_model_that_lacks_a_declaration_does_not_load_and_learns_why(
    declared: dict[str, Any], missing: str, why: str
):
    with pytest.raises(DeclarationError, match=" declares no ") as caught:
        a_model(**declared)

    assert str(caught.value).startswith(f"model 'web.visits' declares no {missing}: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "role"),
    [
        ({"unique_key": ["ds", "nope"]}, "unique key"),
        ({"kind": IncrementalByTimeRange("nope")}, "time column"),
        ({"kind": IncrementalByUniqueKey("ds", latest_by="nope")}, "latest_by"),
        ({"deletes": SoftDelete("nope")}, "delete marker"),
        ({"deletes": Tombstone("nope")}, "delete marker"),
        ({"times": TimeColumns(ingested="nope")}, "ingested time"),
        ({"key_ranges": KeyRanges("nope", [1])}, "column of key ranges"),
        ({"audits": [not_null("nope")]}, "not_null_nope"),
        ({"audits": [row_rule("r", "cost > 0 AND nope = 1")]}, "'r'"),
        ({"audits": [unique("id", "nope")]}, "unique_id_nope"),
        ({"audits": [reconciles("nope", "web.events", "cost")]}, "reconciles_nope"),
        ({"audits": [references("nope", "web.events", "id")]}, "references_nope"),
    ],
)
def test_a_declaration_that_names_no_column_is_told_the_columns(
    declared: dict[str, Any], role: str
):
    with pytest.raises(DeclarationError, match="has the columns ds, id, cost") as caught:
        a_model(**declared)

    assert "'nope'" in str(caught.value)
    assert role in str(caught.value)


@pytest.mark.parametrize("starts", [[], [2, 1], [1, 1], [1, "a"], [1.5], [True], None, "b"])
def test_starts_of_key_ranges_rise_and_are_of_one_type(starts: Any):  # noqa: ANN401
    with pytest.raises(DeclarationError, match=r"key ranges of 'id': found .*; expected "):
        KeyRanges("id", starts)


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"kind": Full()}, "Full on the cadence DAY"),
        ({"kind": IncrementalByTimeRange("ds"), "cadence": Whole()}, "IncrementalByTimeRange on"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": -1}, "batch_size=-1"),
        ({"batch_concurrency": 0}, "batch_concurrency=0"),
        ({"batch_timeout": 0}, "batch_timeout=0"),
        ({"batch_timeout": float("nan")}, "batch_timeout=nan"),
        ({"late_window": -1}, "late_window=-1"),
        ({"key_ranges": ["id", 3]}, "['id', 3] as key_ranges"),
        ({"key_ranges": KeyRanges("id", [3])}, "key_ranges on a model with cells"),
        ({**WHOLE, "key_ranges": KeyRanges("id", [3]), "volatile": True}, "on a volatile model"),
        (
            {**WHOLE, "key_ranges": KeyRanges("cost", [3])},
            "key_ranges of 'cost'; expected a column",
        ),
        (
            {**WHOLE, "key_ranges": KeyRanges("id", ["a"])},
            "key_ranges of 'id', a bigint, from 'a' on",
        ),
        ({"owner": "somebody"}, "owner 'somebody'"),
        ({"unique_key": "ds"}, "the single value 'ds' as unique_key"),
        (
            {"upstreams": "web.events", "query": SqlQuery("SELECT 1")},
            "the single value 'web.events' as upstreams",
        ),
        ({"audits": not_null("id")}, "as audits; expected a list of audits"),
        ({"audits": ["not_null"]}, "'not_null' as one of audits"),
        ({"kind": "full"}, "'full' as kind; expected IncrementalByTimeRange("),
        ({"times": "ds"}, "'ds' as times"),
        ({"late_window": "3"}, "'3' as late_window; expected a number of cells"),
        ({"owner": None}, "None as owner"),
        ({"deletes": 3}, "3 as deletes"),
        ({"automation": "maybe"}, "'maybe' as automation; expected one of 'on', 'report', 'off'"),
        ({"query": "SELECT 1"}, "a plain text as query"),
        ({"unique_key": ["ds", "ds"]}, "unique key columns named ds"),
        ({"columns": [*COLUMNS, Column("ID", "bigint")]}, "columns named id"),
        ({"columns": [*COLUMNS, Column("_cell", "bigint")]}, "a column named _cell"),
        ({"columns": [*COLUMNS, Column("_Batch_ID", "string")]}, "a column named _batch_id"),
        ({"upstreams": ["web.events", Upstream("web.events")]}, "upstreams named web.events"),
        ({"audits": [row_rule("r", "id > 0"), row_rule("r", "id > 1")]}, "audits named r"),
        ({"audits": [Unique("unique_grain", ("id",))]}, "audits named unique_grain"),
        ({"audits": [row_rule("r", "id > 0", allowed=1.5)]}, "audit 'r' with 1.5"),
        ({"audits": [reconciles("cost", "web.events", tolerance=-1)]}, "with -1"),
        ({"audits": [row_rule("r", "id >")]}, "`id >`"),
        ({"audits": [row_rule("r", "id > 'a")]}, "`id > 'a`"),
        ({"audits": [row_rule("r", "id > 0; DROP TABLE x")]}, "DROP TABLE"),
        ({"audits": [row_rule("r", "id > 0 -- not this")]}, "not this"),
        ({"audits": [row_rule("r", "id > 0 /* nor this */")]}, "nor this"),
    ],
)
def test_declarations_that_contradict_are_refused_with_what_was_expected(
    declared: dict[str, Any], found: str
):
    with pytest.raises(DeclarationError, match=r"^model '.*': found .*; expected ") as caught:
        a_model(**declared)

    assert str(caught.value).startswith("model 'web.visits': found ")
    assert found in str(caught.value)
    assert "; expected " in str(caught.value)


def test_predicates_name_columns_as_spark_does_in_any_case():
    model = a_model(audits=[row_rule("r", "ID > 0 AND EXISTS(ARRAY(cost), c -> c > 0)")])
    assert model.audits == (RowRule("r", "ID > 0 AND EXISTS(ARRAY(cost), c -> c > 0)"),)


@pytest.mark.parametrize("name", ["visits", "web.Visits", "web.a.b", "web.a-b", "", "web.`x`"])
def test_a_name_is_a_key_a_table_and_a_folder_at_once(name: str):
    with pytest.raises(DeclarationError, match=r"marketing\.campaign_performance"):
        a_model(name)
    with pytest.raises(DeclarationError, match="is not a usable name; expected two"):
        a_source(name)


def test_short_forms_are_brought_into_one_form():
    model = a_model(
        upstreams=["web.events"], unique_key=["ds"], audits=[accepted_range("cost", 0, None)],
        deletes="none",
    )  # fmt: skip

    assert model.reads == (Upstream("web.events"),)
    assert model.key == ("ds",)
    assert model.delete_policy == KeepsDeleted()
    assert model.all_audits == (Unique("unique_grain", ("ds",)), *model.audits)
    assert model.time_column == "ds"
    assert not model.in_order


def test_a_model_that_reads_itself_is_built_in_order():
    looking_back = a_model(
        upstreams=["web.events", Upstream("web.visits", lookback=1)],
    )
    assert looking_back.in_order


def test_a_lookback_reaches_back():
    assert Upstream("web.events", lookback=own_cells(2)).lookback == own_cells(2)
    for lookback in (-1, own_cells(-1)):
        with pytest.raises(
            DeclarationError, match="a lookback counts earlier cells and is zero or more"
        ):
            Upstream("web.events", lookback=lookback)


def test_an_unknown_word_for_deletes_is_told_the_known_ones():
    with pytest.raises(DeclarationError, match="'none', 'absent', SoftDelete"):
        a_model(deletes="sometimes")


def test_a_word_stands_for_what_it_names_and_another_one_is_refused():
    assert a_source(when_empty="wait").when_empty is WhenEmpty.WAIT
    assert Upstream("web.events", reopens="never").reopens is Reopens.NEVER  # type: ignore[arg-type]

    with pytest.raises(DeclarationError, match=r"'later' as when_empty; expected one of 'accept',"):
        a_source(when_empty="later")


def test_a_declaration_in_the_place_of_a_name_is_shown_by_its_beginning():
    source: Any = a_source()
    for declare in (lambda: Upstream(source), lambda: a_model(upstreams=[source])):
        with pytest.raises(DeclarationError, match=r"found Source\(name='web.events', .{,40} as "):
            declare()


def test_a_time_column_that_is_none_is_told_the_columns():
    nothing: Any = None
    with pytest.raises(DeclarationError, match="names 'None' as its time column, but has the col"):
        a_model(kind=IncrementalByTimeRange(nothing))


def test_a_source_has_a_path_and_a_grid():
    both: list[tuple[dict[str, Any], str]] = [
        ({"path": None}, "None as path"),
        ({"observed": "no"}, "'no' as observed; expected True or False"),
        ({"times": "ds"}, "'ds' as times"),
    ]
    for wrong, words in both:
        with pytest.raises(DeclarationError, match=rf"^source 'web\.events': found {words}"):
            a_source(**wrong)


def test_a_source_is_cut_by_a_column_that_it_declares():
    with pytest.raises(DeclarationError, match="names 'nope' as its event time"):
        a_source(times=TimeColumns(event="nope"))


def test_sql_lies_beside_the_file_that_declares_it():
    with pytest.raises(DeclarationError, match=r"no SQL file 'nope.sql' beside test_model.py"):
        sql_file("nope.sql")


def test_every_refusal_is_one_that_the_cli_can_print():
    for cause in (DeclarationError, RequestError):
        assert issubclass(cause, BackfillAssetsError)


def test_any_number_of_rows_may_be_allowed_to_come_and_go():
    assert a_model(audits=[row_count_within(3.0)])


def test_a_cadence_of_no_unit_but_whole_needs_a_start():
    assert Cadence(Unit.WHOLE).start is None
    assert a_model(cadence=Whole()).time_column is None
