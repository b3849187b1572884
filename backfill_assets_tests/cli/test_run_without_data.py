from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.audits_of import audits_of
from backfill_assets_tests.toy import land_rows, raw_sales, sales

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def test_a_run_says_its_id_before_it_starts_and_how_to_go_on(backfill: Backfill):
    first = backfill("run", "--select", "toy.sales").err.splitlines()[0]

    assert first.startswith("run cli-")
    assert first.endswith(
        ": 7 cells of 1 model missing; stop it at any time, the same command builds the rest"
    )


@pytest.mark.usefixtures("computing")
def test_a_run_tells_missing_cells_apart_from_those_that_it_builds_again_in_place(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "refreshing.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets_tests import toy\n"
        "SOURCES = toy.SOURCES\n"
        "MODELS = [replace(toy.sales, late_window=4)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "refreshing")
    land_rows(str(shop.data), raw_sales, (date(2024, 1, 29), "north", Decimal(1)))
    backfill("run", "--end", "2024-01-31")

    def begun(day: int) -> str:
        land_rows(str(shop.data), raw_sales, (date(2024, 1, day), "north", Decimal(1)))
        shop.look(raw_sales)
        return backfill("run").err.splitlines()[0].split(": ", 1)[1].split(";")[0]

    assert begun(29) == "3 cells of 1 model missing, 1 cell of 1 model to be built again"
    assert begun(31) == "1 cell of 1 model to be built again"


def test_a_source_that_was_never_landed_is_named_and_fails_its_readers_alone(backfill: Backfill):
    ended = backfill("run", "--select", "toy.sales,toy.shops")

    assert ended.code == 1
    assert "FAILED  toy.sales 2024-01-28..2024-02-03 (7): 'toy.raw_sales' has no Delta table" in (
        ended.err
    )
    assert "FAILED  toy.shops whole: 'toy.raw_shops' has no Delta table" in ended.err
    assert ended.lines[-1] == "prod: 0 cells filled, 2 batches failed, 8 cells missing."


def test_a_run_names_models_that_it_fills_as_they_were_declared_before(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")
    before = backfill("run", "--select", "toy.sales")
    (tmp_path / "mended.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets_tests.toy import MODELS, SOURCES\n"
        "MODELS = [replace(m, grain='a sale') if m.name == 'toy.sales' else m for m in MODELS]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "mended")

    ended = backfill("run", "--select", "toy.sales")

    assert "declaration" not in before.err
    assert (
        "toy.sales: its declaration has changed; filled with the snapshot that prod runs until a plan "
        "is promoted: `backfill plan`"
    ) in " ".join(ended.err.split())


def test_cells_that_wait_leave_the_exit_code_1(backfill: Backfill):
    ended = backfill("run", "--select", "toy.sales_monthly", "--json")

    assert (ended.code, ended.json["missing"]) == (1, 2)
    assert ended.json["models"]["toy.sales_monthly"]["waiting"] == 1
    assert "waits   toy.sales_monthly 2024-01-01..2024-02-01 (2): for toy.sales" in ended.err


def test_a_run_with_nothing_to_do_says_so_and_ends_with_0(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")

    ended = backfill("run", "--select", "toy.sales")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "prod: nothing to do, every required cell of 1 model is ready.\n"


def test_json_has_the_same_shape_when_there_is_nothing_to_do(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")

    done = backfill("run", "--select", "toy.sales", "--json").json

    assert done.keys() == {
        "environment",
        "run_id",
        "missing",
        "models",
        "built",
        "late",
        "left",
    }


def test_stale_cells_that_wait_are_counted_in_the_last_line_and_a_run_does_not_end_with_0(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    shop.fill("toy.sales_of_three_days", "2024-01-30", "2024-01-31")
    shop.change("toy.sales", "2024-01-29", "2024-01-29")
    asked = ("--select", "toy.sales_of_three_days")

    ran = backfill("run", *asked, "--start", "2024-01-30", "--end", "2024-01-31")
    left = ran.lines[-1].removeprefix("prod: every required cell of 1 model is ready; ")

    assert ran.code == 3
    assert left == "0 cells missing, 2 stale: 2 need a plan."
    missing = left.replace("0 cells", "5 cells")
    assert backfill("status", *asked).lines[-1] == f"prod: 1 model, {missing}"


def test_a_range_is_clipped_to_the_life_of_each_model_with_a_note(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")

    ended = backfill("run", "--select", "toy.sales", "--start", "2024-01-01", "--end", "2024-01-31")

    assert ended.code == 0
    assert ended.err.startswith(
        "toy.sales: clipped to the model's life: 2024-01-28..2024-01-31 (4)"
    )


def test_a_model_whose_life_a_range_misses_is_left_out_with_a_note(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-02-01", "2024-02-03")

    ended = backfill(
        "run", "--select", "toy.sales,toy.clicks", "--start", "2024-02-01", "--end", "2024-02-03"
    )

    assert ended.code == 0
    assert ended.err.startswith("toy.clicks: left out: the range ")


def test_an_audit_of_nothing_fails_and_says_where_it_has_looked(
    shop: Prepared, backfill: Backfill, tmp_path: Path
):
    """A job of a CI with a wrong data folder must not be green."""
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")

    ended = backfill("audit", "--select", "toy.clicks", "--junit", str(tmp_path / "audits.xml"))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        f"error: no audit has run: prod publishes nothing of toy.clicks in {shop.data}; fill it "
        "first: `backfill run`; or set BACKFILL_DATA_DIR to where it was filled\n"
    )
    assert not (tmp_path / "audits.xml").exists()


def test_an_audit_says_what_it_is_before_it_starts(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    monkeypatch.setenv("BACKFILL_JARS_DIR", str(tmp_path / "none"))

    first = backfill("audit", "--select", "toy.sales,toy.clicks").err.splitlines()[0]

    audits = len(audits_of(sales))
    assert first == (
        f"audit of prod: {audits} audits of 1 model over all that is published; no data is written"
    )


def test_a_rebuild_refuses_a_state_that_holds_something(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-02-01", "2024-02-03")

    ended = backfill("state", "rebuild")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")


def test_a_rebuild_of_nothing_tells_so(backfill: Backfill):
    assert backfill("state", "rebuild").lines[-1] == "0 batches of 0 tables rebuilt."
