"""What commands say of an environment that follows prod and has a table of its own, and of two tables side by side."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.testing import time_passed
from backfill_assets_tests import toy
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = "toy.sales"
SECOND, THIRD = "2024-01-29", "2024-01-31"


@pytest.fixture(autouse=True)
def _filled(
    shop: Prepared, computing: None, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sales of three days in prod."""
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_asking")
    rows = [(date.fromisoformat(day), "north", Decimal(1)) for day in (FIRST, SECOND, "2024-01-30")]
    toy.land_rows(str(shop.data), toy.raw_sales, *rows, mode="overwrite")
    assert backfill("run", "--start", FIRST, "--end", "2024-01-30").code == 0


def _edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on amounts are doubled."""
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_doubled")


def test_missing_cells_are_filled_by_a_run_of_the_environment_whose_table_it_is(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    with opened_run(PROD) as run:
        run.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    assert backfill("status", "--env", "dev").lines[-2] == "Next: backfill run"
    why = backfill("why", SALES, THIRD, "--env", "dev")
    assert why.lines[-1] == f"Next: backfill run --select {SALES}"

    _edited(monkeypatch)
    own = backfill("plan", "dev", "--start", SECOND, "--end", SECOND, "--json").json
    assert backfill("apply", own["plan_id"]).code == 0

    assert backfill("status", "--env", "dev").lines[-2] == "Next: backfill run --env dev"
    why = backfill("why", SALES, THIRD, "--env", "dev")
    assert why.lines[-1] == f"Next: backfill run --env dev --select {SALES}"
    assert backfill("status").lines[-2] == "Next: backfill run"


def test_cells_that_readers_have_lost_are_none_that_a_plan_has_published(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    _edited(monkeypatch)
    plan_id = backfill("plan", "dev", "--start", SECOND, "--end", SECOND, "--json").json["plan_id"]
    applied = backfill("apply", plan_id, "--json").json
    again = backfill("promote", plan_id, "--json").json

    lost = [FIRST, "2024-01-30"]
    for told in (applied, again):
        assert told["published"] == told["changed"] == {SALES: [SECOND]}
        assert told["gone"] == {SALES: lost}
    (back,) = backfill("rollback", plan_id, "--json").json
    assert back["gone"] == {}

    plan_id = backfill("plan", "dev", "--start", SECOND, "--end", SECOND, "--json").json["plan_id"]
    said = backfill("apply", plan_id)
    assert f"gone {SALES}: {FIRST}, 2024-01-30; 2 cells, which readers have lost" in said.lines


def test_no_command_tells_to_promote_a_plan_whose_dual_run_lasts(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    _edited(monkeypatch)
    asked = ("--strategy", f"{SALES}=dual-run", "--dual-run", "2", "--end", "2024-01-30")
    plan_id = backfill("plan", *asked, "--json").json["plan_id"]
    applied = backfill("apply", plan_id, "--json").json

    (waiting,) = backfill("status", "--json").json["plans"]
    assert waiting["next"] == [f"backfill apply {plan_id}", f"backfill abandon {plan_id}"]
    assert applied["next"] == [f"backfill diff {plan_id}", *waiting["next"]]
    assert f"Next: backfill apply {plan_id}" in backfill("checklist", plan_id).lines
    with time_passed(timedelta(days=2)):
        (waiting,) = backfill("status", "--json").json["plans"]
    assert f"backfill promote {plan_id}" in waiting["next"]


def test_no_command_tells_to_take_back_what_went_with_a_dropped_environment(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    _edited(monkeypatch)
    plan_id = backfill("plan", "dev", "--start", SECOND, "--end", SECOND, "--json").json["plan_id"]
    backfill("apply", plan_id)
    backfill("promote", plan_id, "--watch", "24h")
    assert backfill("show", plan_id, "--json").json["next"] == [
        *(f"backfill {verb} {plan_id}" for verb in ("rollback", "undo"))
    ]
    backfill("envs", "drop", "dev", "--yes")

    assert backfill("show", plan_id, "--json").json["next"] == []
    assert backfill("aftercare").out == "No plan is watched.\n"
    backfill("evidence", "write", plan_id)
    assert "Go back   Environment 'dev' was dropped at" in backfill("evidence", "show", plan_id).out


def test_a_plan_that_is_over_begins_no_environment_anew(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    _edited(monkeypatch)
    plan_id = backfill("plan", "dev", "--start", SECOND, "--end", SECOND, "--json").json["plan_id"]
    backfill("apply", plan_id)
    backfill("envs", "drop", "dev", "--yes")

    again = backfill("apply", plan_id)

    assert (again.code, f"plan {plan_id} is promoted already" in again.err) == (1, True)
    with opened_run(PROD) as run:
        assert not run.store.environments.exists("dev")
