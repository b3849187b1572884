"""Everything that Dagster shows of this project, compared with what is stored.

After a change that is meant: `UPDATE_STORED=1 pytest ...test_definitions.py`, and read the diff.
"""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.audit import row_rule, sql_audit
from backfill_assets.models.audits_of import audits_of
from backfill_assets.orchestration.building import AUDITS_JOB, build_definitions
from backfill_assets.orchestration.definitions import defs
from backfill_assets.pipelines.catalog import MODELS, SOURCES
from backfill_assets_tests.builders import a_model, a_source
from backfill_assets_tests.orchestration.rendering import rendered

STORED = Path(__file__).with_name("definitions.txt")


def test_what_dagster_shows_is_what_is_stored():
    shown = rendered(defs)
    if os.environ.get("UPDATE_STORED"):
        STORED.write_text(shown)

    assert shown.splitlines() == STORED.read_text().splitlines()


def test_dagster_can_load_everything():
    dg.Definitions.validate_loadable(defs)


def test_every_model_and_source_is_an_asset_and_the_audits_are_a_job():
    graph = defs.resolve_asset_graph()
    audits = {(model.name, audit.name) for model in MODELS for audit in audits_of(model)}
    twins = {(name, f"published_{audit}") for name, audit in audits}

    names = {".".join(key.path) for key in graph.get_all_asset_keys()}
    checks = {(".".join(key.asset_key.path), key.name) for key in graph.asset_check_keys}
    job = defs.resolve_job_def(AUDITS_JOB).asset_layer.asset_graph.asset_check_keys

    assert names == {declared.name for declared in (*MODELS, *SOURCES)}
    assert checks == audits | twins
    assert {(".".join(key.asset_key.path), key.name) for key in job} >= twins


def test_loading_tells_nobody_about_beta_parameters():
    with warnings.catch_warnings():
        warnings.simplefilter("error", dg.BetaWarning)
        build_definitions(models=MODELS, sources=SOURCES)


def test_an_audit_of_any_name_is_a_check():
    odd = sql_audit("one price, at most", "SELECT * FROM {rows} WHERE cost < 0")

    shown = build_definitions(models=[a_model(audits=[odd])], sources=[a_source()])

    dg.Definitions.validate_loadable(shown)
    names = {key.name for key in shown.resolve_asset_graph().asset_check_keys}
    assert names >= {"one_price__at_most", "published_one_price__at_most"}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"tags": {"domain": "sales & more"}}, "Invalid tag value: sales & more"),
        ({"audits": [row_rule("a b", "cost > 0"), row_rule("a-b", "cost > 0")]}, "'a_b'"),
    ],
)
def test_what_dagster_refuses_is_said_with_the_name_of_the_model(
    declared: dict[str, Any], said: str
):
    with pytest.raises(DeclarationError, match=f"no asset of 'web.visits': .*{said}"):
        build_definitions(models=[a_model("web.visits", **declared)], sources=[a_source()])


def test_definitions_of_a_project_with_a_spark_and_a_state_of_its_own_are_put_beside_these():
    own = dg.Definitions(resources={"spark": object(), "state": object()})

    dg.Definitions.validate_loadable(dg.Definitions.merge(defs, own))


def test_specs_of_models_and_sources_are_mapped_by_dagsters_own_function():
    made = build_definitions(
        models=[a_model("web.visits")], sources=[a_source(owner="team:tracking")]
    )
    policy = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=36))

    mapped = made.map_asset_specs(
        func=lambda spec: spec.replace_attributes(freshness_policy=policy)
    )

    dg.Definitions.validate_loadable(mapped)
    shown = {spec.key.path[-1]: spec for spec in mapped.resolve_all_asset_specs()}
    assert shown["events"].owners == ["team:tracking"]
    assert {name: spec.freshness_policy for name, spec in shown.items()} == {
        "visits": policy,
        "events": policy,
    }


def test_landings_are_refused_of_an_unknown_source_and_by_an_asset_of_another_key():
    @dg.asset
    def events() -> None: ...

    source = a_source("web.events")

    with pytest.raises(
        DeclarationError, match=r"no source web\.event; expected some of web\.events"
    ):
        build_definitions(models=[], sources=[source], landings={"web.event": events})
    with pytest.raises(DeclarationError, match=r"by the asset events; expected .* key=.'web', 'ev"):
        build_definitions(models=[], sources=[source], landings={"web.events": events})


@pytest.mark.parametrize("named", [["web.events"], ["web.events", "web.shops"]])
def test_an_asset_that_lands_several_sources_lands_all_of_them(named: list[str]):
    @dg.multi_asset(specs=[dg.AssetSpec(["web", "events"]), dg.AssetSpec(["web", "shops"])])
    def both() -> Any:  # noqa: ANN401
        yield from ()

    sources = [a_source("web.events"), a_source("web.shops")]
    landings = dict.fromkeys(named, both)

    made = build_definitions(models=[], sources=sources, landings=landings)

    dg.Definitions.validate_loadable(made)
    landed = made.resolve_asset_graph().materializable_asset_keys
    assert landed == {dg.AssetKey(["web", "events"]), dg.AssetKey(["web", "shops"])}
