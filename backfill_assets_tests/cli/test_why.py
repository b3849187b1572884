from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.cli.operating import operating
from backfill_assets.intervals import IntervalSet
from backfill_assets.render.origins import _definition, _let_in, _reason
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.publication import PointerMove, PublicationKind
from backfill_assets_tests.builders import day
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.cli.test_status import SMALLER
from backfill_assets_tests.state.building import owe
from backfill_assets_tests.toy import raw_sales, raw_shops

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def test_an_owed_cell_names_the_plan_that_owes_it_and_its_reason(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    with opened_run("prod") as run:
        model = run.graph.model("toy.sales")
        first, second = (
            IntervalSet.of([model.cadence.cell(key)]) for key in ("2024-01-29", "2024-01-30")
        )
        version = run.store.environments.pointers("prod")["toy.sales"].version
        owe(run.store, version, first, "sent twice", plan_id="p1a2b3")
        owe(run.store, version, second, "rollback of plan p7")

    said = backfill("why", "toy.sales", "2024-01-28..2024-01-30").lines

    text = "restated: declared wrong, and not rebuilt or published yet: "
    assert f"toy.sales 2024-01-29: {text}plan p1a2b3: sent twice" in said
    assert f"toy.sales 2024-01-30: {text}rollback of plan p7" in said


def test_a_gap_is_followed_upstream_to_the_model_that_can_be_filled(
    shop: Prepared, backfill: Backfill
):
    shop.land_nothing(raw_sales)

    ended = backfill("why", "toy.sales_of_three_days", "2024-01-30")

    assert ended.code == 0
    asked, upstream, hint = ended.lines
    assert asked.startswith("toy.sales_of_three_days 2024-01-30: waits: ")
    assert upstream.startswith("  toy.sales 2024-01-28..2024-01-30 (3): gap: ")
    assert hint == "Next: backfill run --select toy.sales"


def test_a_gap_whose_source_has_no_table_waits_for_the_source(shop: Prepared, backfill: Backfill):
    said = backfill("why", "toy.sales", "2024-01-30").lines

    assert said == [
        (
            "toy.sales 2024-01-30: waits: required and not ready; source toy.raw_sales has no table at "
            f"{shop.data}/sources/raw_sales"
        )
    ]


WIDER = """
from dataclasses import replace
from backfill_assets.models.column import Column
from backfill_assets_tests import toy

def selling(model, old, new, *columns):
    query = replace(model.query, sql=model.query.sql.replace(old, new))
    return replace(model, query=query, columns=columns, audits=())

SOURCES = toy.SOURCES
_PRICE = Column("price", "decimal(18,2)")
MODELS = [
    selling(toy.sales, " FROM", ", CAST(MAX(amount) AS DECIMAL(18, 2)) AS price FROM", *toy.sales.schema, _PRICE),
    selling(toy.sales_of_three_days, "amount", "price", Column("ds", "date"), _PRICE),
]
"""


def test_a_gap_that_reads_a_column_of_an_edit_waits_for_the_plan_that_promotes_both(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "smaller_shop.py").write_text(SMALLER)
    (tmp_path / "wider_shop.py").write_text(WIDER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "smaller_shop")
    shop.land_nothing(raw_sales)
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    monkeypatch.setenv("BACKFILL_CATALOG", "wider_shop")

    by_plan = "Next: backfill plan prod --select toy.sales+"
    assert backfill("why", "toy.sales_of_three_days", "2024-01-30").lines == [
        (
            "toy.sales_of_three_days 2024-01-30: waits: required and not ready; it reads price of an edit of toy.sales "
            "that is not promoted"
        ),
        by_plan,
    ]
    assert by_plan in backfill("status").lines


def test_an_overtaken_cell_says_what_builds_it_again(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "refreshing.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets_tests import toy\n"
        "SOURCES = toy.SOURCES\n"
        "MODELS = [toy.sales, replace(toy.sales_of_three_days, late_window=2)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "refreshing")
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    shop.fill("toy.sales_of_three_days", "2024-01-28", "2024-02-03")

    def said() -> list[str]:
        lines = backfill("why", "toy.sales_of_three_days", "2024-01-28..2024-02-03").lines
        return [line for line in lines if "upstream changed" in line]

    overtaken = "toy.sales_of_three_days {}: upstream changed: built before toy.sales changed; {}"
    shop.change("toy.sales", "2024-02-02", "2024-02-03")
    next_run = "they wait for `backfill run` of all models"
    assert said() == [overtaken.format("2024-02-02..2024-02-03 (2)", next_run)]

    shop.change("toy.sales", "2024-01-29", "2024-01-29")
    by_plan = "published history changes by a plan only"
    assert said() == [
        overtaken.format("2024-02-02..2024-02-03 (2)", next_run),
        overtaken.format("2024-01-29..2024-01-31 (3)", by_plan),
    ]


def test_a_ready_cell_names_the_batch_that_built_it(shop: Prepared, backfill: Backfill):
    batch = shop.fill("toy.sales", "2024-01-28", "2024-01-30")

    (reason,) = backfill("why", "toy.sales", "2024-01-29", "--json").json

    assert (reason["branch"], reason["cells"]) == ("ready", "2024-01-29")
    assert batch in reason["text"]


def test_a_range_of_hours_is_asked_for_by_its_keys(backfill: Backfill):
    reasons = backfill("why", "toy.clicks", "2024-01-28-03:00..2024-01-28-05:00", "--json").json

    assert [reason["cells"] for reason in reasons] == ["2024-01-28-03:00..2024-01-28-05:00 (3)"]


def test_dates_inside_months_mean_the_whole_months(backfill: Backfill):
    reasons = backfill("why", "toy.sales_monthly", "2024-01-30..2024-02-02", "--json").json

    assert reasons[0]["cells"] == "2024-01-01..2024-02-01 (2)"


def test_a_cell_outside_the_life_of_its_model_is_not_required(backfill: Backfill):
    said = backfill("why", "toy.sales", "2030-01-01").out

    assert said.startswith("toy.sales 2030-01-01: not required: outside what is required: 2024-0")


def test_the_one_cell_of_a_full_model_is_called_whole(shop: Prepared, backfill: Backfill):
    shop.land_nothing(raw_shops)

    (reason,) = backfill("why", "toy.shops", "whole", "--json").json

    assert reason["branch"] == "gap"


def test_a_cell_that_a_plan_built_names_the_plan_its_reason_and_who_let_it_in(
    shop: Prepared, backfill: Backfill
):
    shop.serve("p1", "toy.sales", "2024-01-28", "2024-01-30", reason="restated")

    origin = backfill("why", "toy.sales", "2024-01-29").lines[1]

    assert origin.startswith("toy.sales 2024-01-29: built by plan p1 (restated; batch ")
    assert origin.endswith("): no ads that week; promoted by grace")


def test_a_cell_that_was_recorded_as_empty_says_so_for_ever_after(
    shop: Prepared, backfill: Backfill
):
    shop.serve("p1", "toy.sales", "2024-01-28", "2024-01-30", reason=EMPTY)

    _, origin = backfill("why", "toy.sales", "2024-01-29", "--json").json

    assert (origin["branch"], origin["plan_id"]) == ("origin", "p1")
    assert origin["text"].startswith("recorded as empty by plan p1, not computed (batch ")


def test_a_restated_cell_names_the_restatement_and_not_the_gap_of_its_workspace(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")
    asked = ("plan", "--restate", "toy.sales:2024-01-29..2024-01-29", "--reason", "sent twice")
    plan_id = backfill(*asked, "--json").json["plan_id"]
    with opened_run("prod") as run:
        row = replace(run.store.batches.latest(model="toy.sales")[0], plan_id=plan_id)
        text = _reason(run.store.reading(), row)

    assert text == "restated by ada"


def test_the_definition_that_runs_is_of_the_plan_that_brought_it_not_of_one_that_refreshed_it_since():
    old, new = (Pointer("prod", "toy.sales", name, f"v_{name}", 1) for name in ("old", "new"))
    moves = [
        PointerMove(
            number=number,
            environment="prod",
            model="toy.sales",
            plan_id=plan_id,
            kind=PublicationKind.PROMOTE,
            at=datetime(2024, 1, number, tzinfo=UTC),
            who="ada",
            why=why,
            old=before,
            new=new,
        )
        for number, plan_id, why, before in ((1, "p1", "net of tax", old), (2, "p2", "", new))
    ]
    store: Any = SimpleNamespace(history=SimpleNamespace(moves_in=lambda _: moves))
    row: Any = SimpleNamespace(model="toy.sales", fingerprint="old")

    assert _definition(store, row, new) == (
        "; by the definition old, older than the definition that prod runs now, which plan p1 brought (net of tax)"
    )


@pytest.mark.parametrize(
    ("planned_for", "ended"),
    [("prod", "abandoned by ada"), ("dev", "abandoned in dev by ada")],
)
def test_a_cell_that_another_plan_took_over_names_the_plan_that_published_it(
    planned_for: str, ended: str
):
    pointer = Pointer("prod", "toy.sales", "new", "v_new", 1)
    moves = [
        PointerMove(
            number=number,
            environment=environment,
            model="toy.sales",
            plan_id=plan_id,
            kind=PublicationKind.PROMOTE,
            at=datetime(2024, 1, number, tzinfo=UTC),
            who=who,
            why="net of tax",
            old=None,
            new=pointer,
            cells=IntervalSet.of([day(number)]),
        )
        for number, environment, plan_id, who in (
            (1, "dev", "p1", "ada"),
            (1, "prod", "p2", "grace"),
            (2, "prod", "p3", "bob"),
        )
    ]
    store: Any = SimpleNamespace(
        plans=SimpleNamespace(
            get=lambda _: SimpleNamespace(reason="net", environment=planned_for, created_by="ada"),
            events=lambda _: [SimpleNamespace(event="abandoned", who="ada")],
        ),
        history=SimpleNamespace(
            moves_of=lambda plan: [move for move in moves if move.plan_id == plan],
            moves_in=lambda name: [move for move in moves if move.environment == name],
        ),
    )
    row: Any = SimpleNamespace(plan_id="p1", model="toy.sales")

    assert _let_in(store, row, pointer, IntervalSet.of([day(1)])) == (
        f": net; {ended}; taken over by plan p2 (net of tax), promoted by grace on 2024-01-01 00:00 UTC"
    )


def test_the_latest_entries_of_a_history_are_given_also_as_json(shop: Prepared, backfill: Backfill):
    batches = [
        shop.fill("toy.sales", day, day) for day in ("2024-01-28", "2024-01-29", "2024-01-30")
    ]

    latest = backfill("history", "toy.sales", "--limit", "2", "--json").json
    every = backfill("history", "toy.sales", "--json").json

    assert [entry["batch_id"] for entry in latest] == batches[1:]
    assert {entry["batch_id"] for entry in every} >= {*batches}


def test_cells_of_a_model_that_is_not_declared_any_more_are_named_and_counted_as_they_were(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    shop.fill("toy.sales_of_three_days", "2024-01-28", "2024-01-31")
    shop.fill("toy.sales_of_three_days", "2024-02-01", "2024-02-03")
    (tmp_path / "smaller_shop.py").write_text(SMALLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "smaller_shop")

    every = backfill("history", "toy.sales_of_three_days", "--json").json
    later = backfill("history", "toy.sales_of_three_days", "2024-02-02", "--json").json
    with operating() as at:
        counted = at.naming.count("toy.sales_of_three_days", IntervalSet.of([day(29, cells=2)]))

    assert [entry["cells"] for entry in every] == [
        "2024-01-28..2024-01-31 (4)",
        "2024-02-01..2024-02-03 (3)",
    ]
    assert [entry["cells"] for entry in later] == ["2024-02-01..2024-02-03 (3)"]
    assert counted == 2
