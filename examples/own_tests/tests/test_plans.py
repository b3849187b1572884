"""What plans hold, and what a run leaves that dies."""

from pathlib import Path

from backfill_assets.testing import assert_plan, dying_at, leases_over

ORDERS = 'Column("orders", "bigint")'
PLANS = Path(__file__).parent / "plans"


def test_a_restated_day_reopens_its_week_and_no_other(filled):
    plan = filled.plan("--restate", "shop.revenue:2024-03-05")

    cells = {"shop.revenue": "2024-03-05", "shop.revenue_weekly": "2024-03-04..2024-03-10"}
    assert_plan(plan, change={}, categories={}, cells=cells)


def test_the_weeks_do_not_follow_a_column_that_they_do_not_read(filled):
    wider = "SUM(amount) AS amount, COUNT(*) AS orders\n        FROM shop.raw_orders"
    filled.edit("shop/catalog.py", "SUM(amount) AS amount\n        FROM shop.raw_orders", wider)
    declared = 'columns=[Column("ordered_on", "date"), Column("amount", "bigint")],\n    audits'
    filled.edit("shop/catalog.py", declared, declared.replace("],", f", {ORDERS}],"))

    plan = filled.plan("--reason", "how many orders a day")

    assert_plan(
        plan,
        PLANS / "wider.txt",
        change={"shop.revenue": "modified", "shop.revenue_weekly": "indirectly modified"},
    )


def test_a_run_that_dies_after_a_commit_leaves_only_the_rest_to_do(landed):
    with dying_at("commit"):
        assert landed.do("run", code=137).out == ""
    with leases_over():
        done = landed.do("run")

    assert "0 cells missing" in done.said
    rows = landed.published("shop.revenue").to_pylist()
    assert sum(row["amount"] for row in rows) == sum(range(100, 128))
    assert len(rows) == 14
