"""What a plan publishes is compared whole, as long as its tables and files are there."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli.verbs.diff import _ModelDiff, _print
from backfill_assets.testing import time_passed
from backfill_assets.warehouse.compare.compare import Comparison
from backfill_assets_tests import toy
from backfill_assets_tests.builders import a_model
from backfill_assets_tests.toy import FIRST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = "toy.sales"
SOLD = [(date(2024, 1, day), "north", Decimal(1)) for day in (28, 29, 31)]
EDITED = """
from dataclasses import replace
from backfill_assets import SqlQuery
from backfill_assets_tests import toy

sql = toy.sales.query.sql.replace("SUM(amount)", "SUM(amount) * 2")
edited = replace(toy.sales, query=SqlQuery(sql))
MODELS = [edited if model.name == "toy.sales" else model for model in toy.MODELS]
SOURCES = toy.SOURCES
"""


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let the catalog be this text."""

    def declared(text: str) -> None:
        (tmp_path / "edited_sales.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("BACKFILL_CATALOG", "edited_sales")

    return declared


@pytest.fixture
def sold(shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """Give a shop whose sales are published."""
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    toy.land_rows(str(shop.data), toy.raw_sales, *SOLD)
    assert backfill("run", "--select", SALES).code == 0
    return shop


@pytest.mark.usefixtures("computing")
@pytest.mark.parametrize(
    ("edited", "what"),
    [
        (True, r"table toy__sales__\w+ was deleted by `backfill gc`"),
        (False, r"files of \S+ are gone: `backfill gc` has deleted them, or they are lost, .*"),
    ],
    ids=["table", "files"],
)
def test_a_diff_says_so_once_a_collection_has_deleted_what_it_would_compare(
    shop: Prepared,
    backfill: Backfill,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    edited: bool,  # noqa: FBT001 - a case
    what: str,
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    row = (date.fromisoformat(FIRST), "north", Decimal(1))
    toy.land_rows(str(shop.data), toy.raw_sales, row)
    assert backfill("run", "--select", SALES).code == 0
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}")
    if edited:
        (tmp_path / "edited_sales.py").write_text(EDITED)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("BACKFILL_CATALOG", "edited_sales")
        asked = ()
    else:
        toy.land_rows(str(shop.data), toy.raw_sales, row)
    plan_id = backfill("plan", *asked, "--select", SALES, "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    promoted = backfill("promote", plan_id, "--yes")
    assert promoted.code == 0, promoted.err

    with time_passed(timedelta(days=40)):
        assert backfill("gc", "--yes").code == 0
        gone = backfill("diff", plan_id)

    assert (gone.code, gone.out) == (1, "")
    assert re.search(
        f"plan {plan_id} can't be compared any more: {what}; `backfill evidence report", gone.err
    )


def plan_that_removes_returns(
    shop: Prepared, backfill: Backfill, declare: Callable[[str], None]
) -> str:
    """Publish the returns of each day, and build a plan that removes them."""
    toy.land(str(shop.data))
    assert backfill("run", "--select", "+toy.returns_daily").code == 0
    declare(
        "from backfill_assets_tests.toy import MODELS as M, SOURCES\nMODELS = [*M[:4], *M[5:]]\n"
    )
    plan_id: str = backfill("plan", "--select", "toy.returns_daily", "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    return plan_id


@pytest.mark.usefixtures("computing")
def test_rows_of_a_model_that_a_plan_removes_are_compared_as_gone_whoever_asked_before(
    shop: Prepared, backfill: Backfill, declare: Callable[[str], None]
):
    plan_id = plan_that_removes_returns(shop, backfill, declare)

    found = backfill("diff", plan_id)

    assert found.code == 2
    assert f"removed ds={FIRST}: ds={FIRST}, amount=" in found.out
    assert f"prod -> {plan_id}: 1 model of 1 differ." in found.out
    assert backfill("diff", plan_id).out == found.out


@pytest.mark.usefixtures("computing")
def test_few_rows_of_a_model_that_only_one_side_has_are_compared_without_spark(
    shop: Prepared,
    backfill: Backfill,
    declare: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
):
    plan_id = plan_that_removes_returns(shop, backfill, declare)
    monkeypatch.setattr("backfill_assets.cli.verbs.diff.compare", None)  # what asks Spark

    removed = f"removed ds={FIRST}: ds={FIRST}, amount="
    assert removed in backfill("diff", plan_id).out
    assert backfill("promote", plan_id, "--yes").code == 0
    assert removed in backfill("diff", plan_id).out


@pytest.mark.usefixtures("computing")
def test_a_diff_compares_what_a_plan_takes_over_beside_what_it_builds(
    sold: Prepared, backfill: Backfill, declare: Callable[[str], None]
):
    declare(EDITED)
    in_dev = backfill("plan", "dev", "--select", SALES, "--json").json["plan_id"]
    assert backfill("apply", in_dev).code == 0
    toy.land_rows(str(sold.data), toy.raw_sales, SOLD[0])
    assert backfill("plan", "--select", SALES).err == ""
    plan_id = backfill("plan", "--select", SALES, "--json").json["plan_id"]
    assert backfill("apply", plan_id, "--json").json["built"] == {SALES: [FIRST]}

    built = backfill("diff", plan_id, "--json").json["models"]
    assert backfill("promote", plan_id, "--yes").code == 0
    promoted = backfill("diff", plan_id, "--json").json["models"]

    for (model,) in (built, promoted):
        assert [group["by"] for group in model["groups"]] == [[str(day)] for day, *_ in SOLD]


def test_a_model_that_has_rows_on_neither_side_is_named_without_spark(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    del shop
    monkeypatch.setattr(
        "backfill_assets.cli.project.LazySpark.__call__", lambda _: pytest.fail("Spark was started")
    )
    (tmp_path / "not_due.py").write_text(
        "from dataclasses import replace\n"
        "from backfill_assets import Daily\n"
        "from backfill_assets_tests import toy\n"
        "SOURCES = toy.SOURCES\n"
        "MODELS = [replace(toy.sales, cadence=Daily(start='2199-01-01'))]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "not_due")
    plan_id = backfill("plan", "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0

    said = backfill("diff", plan_id)

    assert (said.code, said.lines) == (
        0,
        [f"no rows on either side: {SALES}", f"prod -> {plan_id}: 0 models of 1 differ."],
    )


def test_a_diff_names_a_column_of_the_key_that_has_another_type(
    capsys: pytest.CaptureFixture[str],
):
    retyped = Comparison(("cell",), (), (), (), "", retyped=(("id", "int", "string"),))

    _print(_ModelDiff(a_model(), retyped, ()), whole=False)

    assert "id: int -> string" in capsys.readouterr().out.splitlines()


MONTHLY = """
from dataclasses import replace
from backfill_assets import Monthly, SqlQuery
from backfill_assets_tests import toy

sql = toy.sales.query.sql.replace("SUM(amount)", "SUM(amount) * {factor}")
edited = replace(toy.sales, cadence=Monthly(start="2024-01-01"), query=SqlQuery(sql))
MODELS = [edited if model.name == "toy.sales" else model for model in toy.MODELS]
SOURCES = toy.SOURCES
"""


@pytest.fixture
def planned_in_months(
    sold: Prepared, backfill: Backfill, declare: Callable[[str], None]
) -> Callable[[int], str]:
    """Plan months instead of the published days, with amounts times a factor, and a contract."""

    del sold

    def planned(factor: int) -> str:
        declare(MONTHLY.format(factor=factor))
        expected = ("--expect", f"{SALES}: only nothing; amount within 0.1% a month")
        return backfill("plan", "--select", SALES, *expected, "--json").json["plan_id"]

    return planned


@pytest.mark.usefixtures("computing")
def test_rows_whose_cells_were_days_are_compared_in_the_months_that_they_lie_in(
    shop: Prepared, backfill: Backfill, planned_in_months: Callable[[int], str]
):
    plan_id = planned_in_months(1)
    assert backfill("apply", plan_id).code == 0
    built = backfill("diff", plan_id, "--json").json["models"]
    assert backfill("promote", plan_id, "--yes").code == 0
    promoted = backfill("diff", plan_id, "--json").json["models"]

    for (model,) in (built, promoted):
        (month,) = model["groups"]
        assert (month["by"], month["old_rows"], month["new_rows"]) == (["2024-01-01"], 3, 3)
        assert not model["differs"]
    (evidence,) = (shop.data / "evidence" / plan_id).rglob("diff.json")
    assert json.loads(evidence.read_text())["models"][0]["cells"] == ["2024-01-01"]


@pytest.mark.usefixtures("computing")
def test_days_that_come_back_in_place_of_months_are_named_as_days_and_no_month_of_theirs_as_gone(
    shop: Prepared, backfill: Backfill, planned_in_months: Callable[[int], str]
):
    plan_id = planned_in_months(1)
    assert backfill("apply", plan_id).code == 0

    months = backfill("promote", plan_id, "--yes", "--json").json
    (days,) = backfill("rollback", plan_id, "--yes", "--json").json

    assert months["published"][SALES][0].startswith("2024-01-01..")
    assert months["gone"] == {}
    (outputs,) = (shop.data / "evidence" / plan_id).rglob("outputs.json")
    publications = json.loads(outputs.read_text())["publications"]
    first, (second,) = (move["gone"] for each in publications for move in each["models"])
    assert (first, second.split("..")[0]) == ([], "2024-03-01")
    assert days["published"] == {SALES: ["2024-01-28..2024-02-03"]}
    assert days["gone"][SALES][0].startswith("2024-03-01..")  # months that no day overlaps


@pytest.mark.usefixtures("computing")
def test_a_contract_is_judged_in_the_months_that_days_have_become(
    backfill: Backfill, planned_in_months: Callable[[int], str]
):
    plan_id = planned_in_months(2)
    backfill("apply", plan_id)

    shown = backfill("show", plan_id).out
    assert "no column differs: found 3 rows of amount" in shown
    assert "found +100.00% in 2024-01: 3 before, 6 after" in shown


@pytest.mark.usefixtures("computing")
def test_the_cells_of_a_plan_are_named_as_it_runs_them_whatever_is_declared_since(
    sold: Prepared, backfill: Backfill, declare: Callable[[str], None]
):
    toy.land_rows(str(sold.data), toy.raw_sales, SOLD[0])
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}", "--select", SALES)
    plan_id = backfill("plan", *asked, "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    declare(MONTHLY.format(factor=1))

    shown = backfill("show", plan_id).out
    assert backfill("diff", plan_id).code == 2
    promoted = backfill("promote", plan_id, "--yes", "--json").json

    assert f"1  {FIRST}  " in shown
    assert promoted["published"] == {SALES: [FIRST]}
    (evidence,) = (sold.data / "evidence" / plan_id).rglob("diff.json")
    assert json.loads(evidence.read_text())["models"][0]["cells"] == [FIRST]
