"""A model that an environment publishes and that the code does not declare any more is told as it is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli.operating import looking
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets_tests import toy

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES, RETURNS = "toy.sales", "toy.returns"
CELL, EVERY = "2024-02-02", f"{toy.FIRST}..{toy.LAST}"
NOTHING_FILLS = (
    "it is not declared any more; prod publishes what it has of it, and nothing fills it, until a plan that "
    "removes it is promoted (`backfill plan`)"
)


@pytest.fixture
def removed(
    shop: Prepared,
    computing: None,
    backfill: Backfill,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sales and returns are published; the code declares neither the returns nor their source any more."""
    del computing
    toy.land(str(shop.data))
    (tmp_path / "both.py").write_text(
        "from backfill_assets_tests.toy import raw_returns, raw_sales, returns, sales\n"
        "SOURCES, MODELS = [raw_sales, raw_returns], [sales, returns]\n"
    )
    (tmp_path / "sales_alone.py").write_text(
        "from both import sales, raw_sales\nSOURCES, MODELS = [raw_sales], [sales]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "both")
    assert backfill("run").code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_alone")


@pytest.fixture
def promoted(removed: None, backfill: Backfill) -> str:
    """The plan that has removed the returns from what is published."""
    del removed
    plan_id: str = backfill("plan", "--json").json["plan_id"]
    assert backfill("apply", plan_id).code == 0
    assert backfill("promote", plan_id, "--yes").code == 0
    return plan_id


@pytest.mark.usefixtures("removed")
def test_why_says_that_nothing_fills_it_and_what_built_its_cells(backfill: Backfill):
    removal, *built = backfill("why", RETURNS, EVERY).lines

    assert removal == f"{RETURNS} {EVERY} (7): removed: {NOTHING_FILLS}"
    assert built
    assert all(": built by run " in line for line in built)


@pytest.mark.usefixtures("removed")
def test_an_environment_that_only_follows_it_names_the_plan_of_the_one_that_publishes_it(
    backfill: Backfill,
):
    with looking() as at:
        dev = Environment("dev", protected=False, follows=PROD)
        at.project.store.environments.save_environment(dev)

    (removal, *_) = backfill("why", RETURNS, CELL, "--env", "dev").lines

    assert removal == f"{RETURNS} {CELL}: removed: {NOTHING_FILLS}"


@pytest.mark.usefixtures("removed")
def test_a_hold_keeps_it_until_the_hold_ends(
    backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "reported.py").write_text(
        "from backfill_assets import Consumer, Reading\nfrom both import MODELS, SOURCES\n"
        "reads = [Reading('toy.returns', columns=['ds'], days_back=2)]\n"
        "CONSUMERS = [Consumer(name='report', kind='dashboard', owner='team:toy', reads=reads)]\n"
    )
    monkeypatch.setenv("BACKFILL_CATALOG", "reported")
    assert backfill("hold", "report", "--reason", "month end").code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_alone")

    (removal, *_) = backfill("why", RETURNS, CELL, "--env", "held_report").lines

    assert removal == (
        f"{RETURNS} {CELL}: removed: it is not declared any more; held_report keeps what it has of it until the "
        "hold ends (`backfill release report`)"
    )


@pytest.mark.usefixtures("removed")
def test_why_of_its_cells_that_were_never_built_names_no_command_that_would_fill_them(
    backfill: Backfill,
):
    said = backfill("why", RETURNS, "2024-02-05", "--json").json

    assert [(each["branch"], each["text"]) for each in said] == [("removed", NOTHING_FILLS)]


@pytest.mark.usefixtures("removed")
def test_its_numbers_are_explained(backfill: Backfill):
    assert backfill("explain", RETURNS, CELL, "*").lines[0] == f"{RETURNS} {CELL}: rows in prod"


def test_its_numbers_are_explained_after_its_removal_was_promoted(
    backfill: Backfill, promoted: str
):
    said = backfill("explain", RETURNS, CELL, "amount")

    assert said.code == 0
    assert any(f"promotion of plan {promoted}" in line for line in said.lines)
    assert said.lines[-1] == f"{RETURNS}: not published at either moment."


@pytest.mark.usefixtures("removed")
def test_its_cells_are_replayed(backfill: Backfill):
    ended = backfill("replay", RETURNS, CELL, "--upstreams")

    assert ended.lines[-1] == f"{RETURNS}: replayed 1 cell: 1 equal."


@pytest.mark.usefixtures("removed")
def test_the_map_has_a_line_of_it_on_which_nothing_is_missing(backfill: Backfill):
    told = {each["model"]: each for each in backfill("map", "--json").json["models"]}

    assert told.keys() == {SALES, RETURNS}
    assert [each["cells"] for each in told[RETURNS]["snapshots"]] == [[f"{EVERY}"]]
    assert (told[RETURNS]["missing"], told[RETURNS]["removed"]) == ([], True)
    removal = "  removed: it is not declared any more, and nothing fills it"
    assert removal in backfill("map", RETURNS).lines


@pytest.mark.usefixtures("removed")
def test_what_is_published_of_it_is_audited(backfill: Backfill):
    audited = backfill("audit")

    assert audited.code == 0
    assert f"{RETURNS}: it is not declared any more; audited as prod runs it" in audited.err
    told = {row["model"] for row in backfill("audits", "--json").json["audits"]}
    assert told == {SALES, RETURNS}


@pytest.mark.usefixtures("removed")
def test_its_source_lies_where_it_was_looked_at_last():
    with looking() as at:
        (source,) = (
            each
            for each in at.published("prod").graph.sources.values()
            if each.name != toy.raw_sales.name
        )

    assert (source.name, source.path) == (toy.raw_returns.name, toy.raw_returns.path)


@pytest.mark.usefixtures("removed")
def test_a_result_that_rests_on_it_is_registered(backfill: Backfill):
    added = backfill("results", "add", "report", RETURNS, CELL)

    assert added.lines == [f"report: rests on {RETURNS} {CELL}."]


@pytest.mark.usefixtures("promoted")
def test_its_batches_are_listed_after_its_removal_was_promoted(backfill: Backfill):
    assert {row["model"] for row in backfill("batches", "--model", RETURNS, "--json").json} == {
        RETURNS
    }
    assert backfill("batches", "--model", "toy.unknown").code == 1


@pytest.mark.parametrize(
    "asking",
    [
        ("why", RETURNS, CELL),
        ("replay", RETURNS, CELL),
        ("audit", "--mutate", RETURNS),
        ("results", "add", "report", RETURNS, CELL),
    ],
)
@pytest.mark.usefixtures("promoted")
def test_what_is_asked_of_what_is_published_points_to_its_history_after_its_removal(
    backfill: Backfill, asking: tuple[str, ...]
):
    said = backfill(*asking)

    assert said.code == 1
    assert said.err.endswith(
        f"error: environment 'prod' does not publish model '{RETURNS}', which is not declared any more; "
        f"`backfill history {RETURNS}` lists what became of it\n"
    )


def test_where_it_was_read_names_the_plan_that_took_it_away_and_no_run_that_would_fill_it(
    backfill: Backfill, promoted: str
):
    said = backfill("resolve", RETURNS)

    assert said.code == 1
    by_plan = f"plan {promoted} has taken it away (promote): see `backfill history {RETURNS}`"
    assert said.err.splitlines()[-1].endswith(f"(it has: {SALES}); {by_plan}")


@pytest.mark.usefixtures("removed")
def test_where_dev_read_it_names_the_plan_of_prod_that_took_it_away_after_dev_had_gone_back_to_it(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "both")
    restated = ("--restate", f"{RETURNS}:{CELL}", "--reason", "a test")
    in_dev = backfill("plan", "dev", *restated, "--json").json["plan_id"]
    assert backfill("apply", in_dev).code == 0
    assert backfill("rollback", in_dev, "--yes").code == 0
    monkeypatch.setenv("BACKFILL_CATALOG", "sales_alone")
    removing = backfill("plan", "--json").json["plan_id"]
    assert backfill("apply", removing).code == 0
    assert backfill("promote", removing, "--yes").code == 0

    said = backfill("resolve", RETURNS, "--env", "dev")

    assert f"plan {removing} has taken it away (promote)" in said.err


def test_one_that_a_published_model_still_reads_is_said_to_be_filled(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    daily = "toy.returns_daily"
    (tmp_path / "returned.py").write_text(
        "from dataclasses import replace\nfrom backfill_assets import SqlQuery\n"
        "from backfill_assets_tests.toy import raw_returns, returns, returns_daily\n"
        "SOURCES, MODELS = [raw_returns], [returns, returns_daily]\n"
    )
    (tmp_path / "returned_at_once.py").write_text(
        "from returned import SOURCES, SqlQuery, replace, returns_daily\n"
        "query = SqlQuery(returns_daily.query.sql.replace('toy.returns', 'toy.raw_returns'))\n"
        "MODELS = [replace(returns_daily, query=query, upstreams=['toy.raw_returns'])]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "returned")
    shop.land_nothing(toy.raw_returns)
    shop.fill(RETURNS, toy.FIRST, "2024-02-02")
    shop.fill(daily, toy.FIRST, "2024-02-02")
    monkeypatch.setenv("BACKFILL_CATALOG", "returned_at_once")

    said = backfill("status").out

    assert (
        f"removed  {RETURNS}: it is not declared any more; prod fills it for what still reads it there, until a plan that "
        "removes it is promoted (`backfill plan`)"
    ) in said
    assert f"missing  {RETURNS}: {toy.LAST}" in said
    (gap,) = backfill("why", RETURNS, toy.LAST, "--json").json
    assert gap["branch"] == "gap"
