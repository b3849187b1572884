from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import pytest

from backfill_assets.models.graph import build_graph
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.pipelines import catalog
from backfill_assets.pipelines.landing import LANDINGS
from backfill_assets.pipelines.marketing.ad_events import CHANNELS
from backfill_assets.pipelines.marketing.schemas import CHANNELS as ALLOWED_CHANNELS

GRAPH = build_graph(catalog.MODELS, catalog.SOURCES)
MODELS = pytest.mark.parametrize("model", catalog.MODELS, ids=attrgetter("name"))


def test_catalog_fits_on_one_screen():
    assert len(Path(catalog.__file__).read_text(encoding="utf-8").splitlines()) <= 60


def test_every_upstream_comes_before_its_readers():
    assert {name.partition(".")[0] for name in GRAPH.order} == {"commerce", "marketing", "web"}
    for name in GRAPH.order:
        for upstream in GRAPH.models[name].reads:
            earlier = GRAPH.order[: GRAPH.order.index(name)]
            assert upstream.name in {*earlier, *GRAPH.sources}


@MODELS
def test_model_says_what_it_is_and_which_time_is_which(model: Model):
    assert model.description
    assert model.tags
    assert model.times.event or model.times.effective
    for column in (model.times.event, model.times.updated, model.times.effective):
        assert column is None or column in {declared.name for declared in model.schema}


@MODELS
def test_model_reads_exactly_its_declared_upstreams(model: Model):
    if isinstance(model.logic, SqlQuery):
        assert model.logic.tables() == {upstream.name for upstream in model.reads}


@MODELS
def test_audits_of_a_model_have_names_of_their_own(model: Model):
    names = [audit.name for audit in model.all_audits]
    assert len(names) == len(set(names))


@MODELS
def test_money_is_decimal(model: Model):
    money = {"cost", "revenue", "amount", "subtotal", "unit_price", "cpc", "gross_margin"}
    for column in model.schema:
        assert column.name not in money or column.dtype.startswith("decimal(18,")


@MODELS
def test_history_of_a_model_is_whole_cells_with_an_end(model: Model):
    if model.time_column is not None:
        assert model.cadence.start is not None
        assert model.cadence.end is not None


def test_weeks_start_and_end_on_a_monday():
    cadence = GRAPH.model("commerce.revenue_weekly").cadence
    assert cadence.start is not None
    assert cadence.end is not None
    assert (cadence.start.weekday(), cadence.end.weekday()) == (0, 0)


def test_no_model_ends_after_what_it_reads():
    ends = {model.name: model.cadence.end for model in catalog.MODELS if model.cadence.end}
    for model in catalog.MODELS:
        for upstream in model.reads:
            if model.name in ends and upstream.name in ends:
                assert ends[model.name] <= ends[upstream.name]


def test_marketing_has_540_days():
    cadence = GRAPH.model("marketing.campaign_performance").cadence
    assert cadence.start is not None
    assert cadence.end is not None
    assert cadence.end - cadence.start == timedelta(days=540)


def test_every_source_has_a_landing_and_an_owner():
    assert set(LANDINGS) == set(GRAPH.sources)
    assert all(source.owner for source in catalog.SOURCES)


def test_every_generated_channel_is_an_allowed_one():
    assert sorted(CHANNELS) == sorted(ALLOWED_CHANNELS)
