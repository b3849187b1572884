"""The command and the launchpad make the same plan of the same options, and refuse with the same words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from backfill_assets import BackfillProject
from backfill_assets.orchestration.released_runs import op_name
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.planning.plan.plan_json import content_hash, read_plan
from backfill_assets.snapshots.person import verified_person
from backfill_assets_tests import toy_read
from backfill_assets_tests.cli.test_looking import land
from backfill_assets_tests.orchestration.shop import NoSpark, UnwantedSparkError, failure, shown
from backfill_assets_tests.toy import FIRST, LAST
from backfill_assets_tests.toy_definitions import defs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

AT = datetime(2024, 2, 5, tzinfo=UTC)
WRONG = {"name": "toy.sales", "first": "2024-01-29", "last": "2024-01-30"}
CHOICES: dict[str, tuple[Any, ...]] = {
    "environment": ("dev_refunds", "Dev"),
    "restate": ([WRONG], [{"name": "toy.raw_sales", "first": FIRST}], [{"name": "toy.nobody"}]),
    "select": (["toy.sales"], ["toy.sales+", "toy.returns"], ["toy.clicks, toy.shops"], ["nope"]),
    "first": ("2024-01-30", "2024-01-30T00:00:00Z", "soon"),
    "last": ("2024-02-01", "2030-01-01"),
    "forward_only": (True,),
    "empty": (True,),
    "restate_all_snapshots": (True,),
    "end_bounded": (True,),
    "ignore_cron": (True,),
    "skip_upstream": (True,),
    "dual_run": (3, -1),
    "pause_schedules": (True,),
    "canary": (True,),
    "effective_from": ("2024-01-31",),
    "where": ("amount > 0",),
    "cutoff": ("2024-01-31",),
    "lift_cutoff": (["toy.sales"],),
    "category": (["toy.sales=breaking"], ["toy.sales=magic"]),
    "strategy": (["toy.sales=dual-run"], ["toy.sales"]),
    "kept_rows": ("carry", "often"),
    "spark": (["spark.sql.shuffle.partitions=4"], ["spark"]),
    "now": ("2024-01-31T00:00:00Z", "2024-01-31"),
    "reason": ("counted twice",),
}
ONE = tuple((name, value) for name, values in CHOICES.items() for value in values)
SPELLED = {"first": "start", "last": "end"}

asked_for = st.lists(st.sampled_from(ONE), max_size=4, unique_by=lambda choice: choice[0]).map(dict)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral(str(tmp_path)) as made:
        yield made


@pytest.fixture
def both(
    shop: Prepared,
    backfill: Backfill,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> Both:
    """Some of the shop is filled, no clock moves, and one person uses both."""
    monkeypatch.setattr("backfill_assets.cli.project.now", lambda: AT)
    monkeypatch.setattr("backfill_assets.orchestration.resources.now", lambda: AT)
    ada = verified_person("ada", "")
    monkeypatch.setattr("backfill_assets.orchestration.jobs.who_launched", lambda *_: ada)
    shop.fill("toy.sales", FIRST, "2024-02-01")
    shop.fill("toy.returns", FIRST, LAST)
    return Both(backfill, instance)


class Both:
    """The two ways to ask for a plan."""

    def __init__(self, backfill: Backfill, instance: dg.DagsterInstance) -> None:
        self.backfill, self.instance, self.defs = backfill, instance, defs

    def commanded(self, asked: dict[str, Any]) -> str:
        """The content of the command's plan, or what it says instead."""
        ended = self.backfill("plan", *words(asked), "--json")
        if ended.code == 1:
            return ended.err.splitlines()[-1].removeprefix("error: ")
        return content(ended.out)

    def launch(
        self, asked: dict[str, Any], spark: type[SparkResource] = NoSpark
    ) -> dg.ExecuteInProcessResult:
        """Launch the job `plan`."""
        return self.defs.resolve_job_def("plan").execute_in_process(
            run_config={"ops": {op_name("plan"): {"config": asked}}},
            resources={"backfill_spark": spark(spark_config={}), "backfill_state": StateResource()},
            instance=self.instance,
            raise_on_error=False,
        )

    def launched(self, asked: dict[str, Any]) -> str:
        """The content of the launchpad's plan, or what it says instead."""
        result = self.launch(asked)
        if not result.success:
            return failure(result)
        plan_id = shown(result).get("plan_id")
        if plan_id is None:
            return "nothing to do"
        state = StateResource()
        text = state.store.plans.get(plan_id).content
        state.store.close()
        return content(text)


def words(asked: dict[str, Any]) -> Iterator[str]:
    """Write what is asked as the command takes it."""
    for name, value in asked.items():
        option = f"--{SPELLED.get(name, name).replace('_', '-')}"
        match name, value:
            case "environment", _:
                yield value
            case "restate", _:
                for restated in value:
                    span = (
                        f":{restated['first']}..{restated.get('last', '')}"
                        if "first" in restated
                        else ""
                    )
                    yield from (option, f"{restated['name']}{span}")
            case _, bool():
                yield option
            case _, list():
                for word in value:
                    yield from (option, word)
            case _:
                yield from (option, str(value))


def content(text: str) -> str:
    """Hash all that a plan does."""
    plan = read_plan(text)
    if plan.is_empty:
        return "nothing to do"
    assert plan.created_at == AT
    return content_hash(plan)


def every_option_once(test: Any) -> Any:  # noqa: ANN401 - any test
    """Let a test see each value of each option by itself."""
    for name, value in ONE:
        test = example(asked={name: value})(test)
    return test


@every_option_once
@example(asked={"cutoff": "2024-01-31", "reason": "accounts are closed"})
@example(asked={"restate": [WRONG], "where": "amount > 0", "environment": "dev_refunds"})
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(asked=asked_for)
def test_the_command_and_the_launchpad_make_one_plan_of_the_same_options(
    both: Both, asked: dict[str, Any]
):
    assert both.launched(asked) == both.commanded(asked)


def test_both_know_the_consumers_of_the_catalog(both: Both, monkeypatch: pytest.MonkeyPatch):
    catalog = toy_read.__name__
    monkeypatch.setenv("BACKFILL_CATALOG", catalog)
    both.defs = dg.build_defs_for_component(BackfillProject(catalog=catalog))
    asked: dict[str, Any] = {"select": ["toy.sales_of_three_days"]}

    proposed = both.commanded(asked)

    assert both.launched(asked) == proposed
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy")
    assert both.commanded(asked) != proposed  # that catalog has no consumer, nor a smaller window


def test_the_launchpad_starts_spark_to_look_where_nothing_else_can_and_names_what_was_not_looked_at(
    both: Both, shop: Prepared
):
    asked: list[str] = []

    class Refusing(SparkResource):
        @property
        def spark_session(self) -> SparkSession:
            asked.append("spark")
            raise UnwantedSparkError

    land(shop, {28: "1.00"})
    both.launch({"select": ["toy.returns"]})  # the first look
    for file in land(shop, {28: "1.00", 29: "2.00"}).glob("*.parquet"):
        file.unlink()

    result = both.launch({"select": ["toy.returns"]}, spark=Refusing)

    assert asked
    told = shown(result)
    assert told["plan"].startswith("nothing to plan; ")
    assert "source 'toy.raw_sales' has commits that were not looked at" in told["notes"]
