"""The job `audits`: every audit once more over what is published, without rebuilding anything."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg

from backfill_assets.engine.batch.audit_run import audit_and_keep
from backfill_assets.engine.project.opening import open_run
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.catching_up import report_ready
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets_tests.orchestration.shop import checks, failure, lent
from backfill_assets_tests.planting import plant, publish_head
from backfill_assets_tests.toy import MODELS, SOURCES, sales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets_tests.orchestration.shop import Shop


@contextmanager
def looked(shop: Shop) -> Iterator[RunContext]:
    """Open prod as a command does, outside of Dagster's runs."""
    state = StateResource()
    loaded = Loaded.of(build_graph(MODELS, SOURCES))
    yield open_run(state.project(loaded, "by-hand", lent(shop.spark)), PROD)
    state.store.close()


def test_published_data_passes_and_a_planted_failure_fails_the_job(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")

    passing = shop.audit()

    assert passing.success
    assert len(passing.get_asset_check_evaluations()) == sum(
        len(checks(passing, model.name)) for model in MODELS
    )
    sold = checks(passing, "toy.sales")["published_amount_not_negative"]
    assert sold.passed
    assert sold.metadata["batches"].value == 1
    empty = checks(passing, "toy.shops")["published_unique_grain"]  # nothing of it is published
    assert not empty.passed
    assert empty.severity is dg.AssetCheckSeverity.WARN
    assert "no published cell was audited" in (empty.description or "")

    plant(shop.root, "toy.sales", "2024-01-29")
    assert shop.audit().success  # what is not published is nobody's concern

    publish_head(shop.root, "toy.sales")
    failing = shop.audit()

    assert not failing.success
    found = checks(failing, "toy.sales")["published_amount_not_negative"]
    assert not found.passed
    assert "found 2 of" in (found.description or "")
    assert found.metadata["failing_cells"].value == "2024-01-29"


def test_one_audit_of_a_model_can_be_run_alone(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")
    check = dg.AssetCheckKey(dg.AssetKey(["toy", "sales"]), "published_amount_not_negative")
    own = dg.define_asset_job("own", selection=dg.AssetSelection.checks(check))
    job = dg.Definitions.merge(shop.defs, dg.Definitions(jobs=[own])).resolve_job_def("own")

    result = job.execute_in_process(resources=shop.resources(), instance=shop.instance)

    [evaluation] = result.get_asset_check_evaluations()
    assert evaluation.asset_check_key == check
    assert evaluation.passed


def test_the_job_of_the_audits_gives_no_model_a_place_that_it_did_not_have(shop: Shop):
    shop.audit()
    state = StateResource()
    assert not state.store.environments.pointers(PROD)
    state.store.close()


def test_the_job_fails_where_nothing_at_all_is_published(shop: Shop):
    result = shop.audit()

    assert not result.success
    assert "no audit has run: prod publishes nothing of " in failure(result)
    assert not result.get_asset_check_evaluations()


def test_dagster_is_told_what_the_command_has_found_and_only_once(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")
    check = dg.AssetCheckKey(dg.AssetKey(["toy", "sales"]), "published_amount_not_negative")
    with looked(shop) as run:
        audit_and_keep(run, "toy.sales")
        report_ready(shop.instance, run)
        told = shop.instance.get_latest_asset_check_evaluation_record(check)
        report_ready(shop.instance, run)
        again = shop.instance.get_latest_asset_check_evaluation_record(check)

        every = [
            shop.instance.get_latest_asset_check_evaluation_record(
                dg.AssetCheckKey(check.asset_key, f"published_{audit.name}")
            )
            for audit in audits_of(sales)
        ]

    assert all(every)
    assert told is not None
    assert told.event is not None
    assert again is not None
    assert again.id == told.id


def test_an_audit_that_passed_is_not_told_of_what_was_published_after_it(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")
    check = dg.AssetCheckKey(dg.AssetKey(["toy", "sales"]), "published_amount_not_negative")
    with looked(shop) as run:
        audit_and_keep(run, "toy.sales")
    shop.sell("2024-01-29", "west", 7)
    shop.refresh("toy.sales", "2024-01-29")
    before = shop.instance.get_latest_asset_check_evaluation_record(check)

    with looked(shop) as run:
        report_ready(shop.instance, run)
        told = shop.instance.get_latest_asset_check_evaluation_record(check)
        audit_and_keep(run, "toy.sales")
        report_ready(shop.instance, run)
    after = shop.instance.get_latest_asset_check_evaluation_record(check)

    assert before is not None
    assert told is not None
    assert after is not None
    assert told.id == before.id
    assert after.id != before.id


def test_what_the_job_has_found_stands_in_the_history_of_audits(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")
    shop.audit()
    with looked(shop) as run:
        found = run.store.published_audits.history("prod", "toy.sales")
    assert {row.result.audit for row in found} == {audit.name for audit in audits_of(sales)}
    assert all(row.result.passed for row in found)
