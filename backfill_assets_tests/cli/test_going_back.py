"""The way back names every model that an environment reads otherwise by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests import toy

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


@pytest.mark.usefixtures("computing")
def test_a_model_that_the_plan_had_removed_is_one_of_those_that_go_back(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    toy.land(str(shop.data))
    (tmp_path / "both.py").write_text(
        "from backfill_assets_tests.toy import SOURCES, returns, sales\nMODELS = [sales, returns]\n"
    )
    (tmp_path / "sales_alone.py").write_text("from both import SOURCES, sales\nMODELS = [sales]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "both")
    assert backfill("run").code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_alone")
    plan_id = backfill("plan", "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    promoted = backfill("promote", plan_id, "--yes", "--json")
    assert promoted.json["removed"] == ["toy.returns"]
    assert f"promote plan {plan_id}: prod no longer reads toy.returns" in promoted.err

    back = backfill("rollback", plan_id, "--yes", "--json")

    assert "prod reads 1 model as before it" in back.err
    (told,) = back.json
    assert told["models"] == ["toy.returns"]


@pytest.mark.usefixtures("computing")
def test_a_model_that_the_plan_had_added_is_told_as_removed(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    toy.land(str(shop.data))
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    plan_id = backfill("plan", "--select", "toy.sales", "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    assert backfill("promote", plan_id, "--yes").code == 0

    back = backfill("rollback", plan_id, "--yes")

    assert "removed: toy.sales" in back.lines


@pytest.mark.usefixtures("computing")
def test_a_model_whose_plan_was_taken_back_is_filled_by_a_plan_and_by_no_run(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    toy.land(str(shop.data))
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    only_sales = ("--select", "toy.sales")
    plan_id = backfill("plan", *only_sales, "--json").json["plan_id"]
    for verb in ("apply", "promote", "rollback"):
        assert backfill(verb, plan_id, "--yes").code == 0

    assert backfill("run", *only_sales).code == 1
    assert "Next: backfill plan" in backfill("status", *only_sales).lines
    assert backfill("why", "toy.sales", toy.FIRST).lines == [
        f"toy.sales {toy.FIRST}: waits: required and not ready; only a plan can add it",
        "Next: backfill plan",
    ]
    again = backfill("plan", *only_sales, "--json").json["plan_id"]
    for verb in ("apply", "promote"):
        assert backfill(verb, again, "--yes").code == 0
    assert backfill("status", *only_sales, "--check").code == 0


@pytest.mark.usefixtures("computing")
def test_an_undo_asks_about_all_cells_that_go_back_those_of_a_table_that_was_there_as_well(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    toy.land(str(shop.data))
    (tmp_path / "sales_once.py").write_text(
        "from backfill_assets_tests.toy import raw_sales, sales\n"
        "MODELS, SOURCES = [sales], [raw_sales]\n"
    )
    (tmp_path / "sales_twice.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets import SqlQuery\n"
        "from sales_once import SOURCES, sales\n"
        "sql = sales.query.sql.replace('SUM(amount)', 'SUM(amount) * 2')\n"
        "MODELS = [replace(sales, query=SqlQuery(sql))]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_once")
    assert backfill("run").code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_twice")
    assert backfill("apply", backfill("plan", "dev", "--json").json["plan_id"]).code == 0
    plan_id = backfill("plan", "--json").json["plan_id"]
    assert backfill("apply", plan_id, "--json").json["built"] == {}
    assert backfill("promote", plan_id, "--yes").code == 0

    undone = backfill("undo", plan_id, "--yes")

    assert "up to 7 cells of 1 model in prod get back" in undone.err
    assert undone.lines[0] == "published toy.sales: 2024-01-28..2024-02-03"


@pytest.mark.usefixtures("computing")
def test_a_model_that_dev_had_added_and_prod_publishes_since_is_not_told_as_removed(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    toy.land(str(shop.data))
    (tmp_path / "doubled.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets_tests.toy import SOURCES, sales\n"
        "sql = sales.query.sql.replace('SUM(amount)', 'SUM(2 * amount)')\n"
        "MODELS = [replace(sales, query=replace(sales.query, sql=sql))]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    only_sales = ("--select", "toy.sales")
    monkeypatch.setenv("BACKFILL_CATALOG", "doubled")
    in_dev = backfill("plan", "dev", *only_sales, "--json").json["plan_id"]
    assert backfill("apply", in_dev).code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy")
    assert backfill("run", *only_sales).code == 0

    back = backfill("rollback", in_dev, "--yes")

    assert back.code == 0
    assert "removed: toy.sales" not in back.out
