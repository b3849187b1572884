from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.consumer import (
    Consumer,
    ConsumerKind,
    Reading,
)
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets_tests.builders import a_model, a_source

VISITS = "web.visits"


def a_consumer(*reads: Reading, **declared: Any) -> Consumer:  # noqa: ANN401
    given: dict[str, Any] = {
        "name": "traffic report",
        "kind": "dashboard",
        "owner": "team:web",
        "reads": reads or [Reading(VISITS, columns=["ds"], days_back=30)],
    }
    return Consumer(**{**given, **declared})


def graph_of(*consumers: Consumer) -> Graph:
    return build_graph([a_model()], [a_source()], consumers)


def test_a_graph_carries_its_consumers_by_name():
    found = a_consumer()

    assert graph_of(found).consumers == {"traffic report": found}
    assert found.kind is ConsumerKind.DASHBOARD
    assert build_graph([a_model()], [a_source()]).consumers == {}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"owner": ""}, "'traffic report': found owner ''; expected 'team:name' or"),
        ({"kind": "report"}, "found kind 'report'; expected one of dashboard, notebook"),
        ({"name": " "}, "found no name"),
        ({"reads": []}, "found nothing that it reads"),
        ({"reads": [Reading(VISITS), Reading(VISITS)]}, "'web.visits' more than once"),
        ({"reads": [Reading(VISITS, days_back=0)]}, "days_back=0 of 'web.visits'; expected at"),
    ],
    ids=str,
)
def test_a_consumer_that_lacks_something_does_not_load(wrong: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        a_consumer(**wrong)


def test_a_consumer_reads_models_and_columns_that_there_are():
    with pytest.raises(DeclarationError, match=r"named by 'traffic report'\); did you mean 'web.v"):
        graph_of(a_consumer(Reading("web.visit")))
    with pytest.raises(DeclarationError, match=r"reads 'price' of 'web.visits'.* ds, id,"):
        graph_of(a_consumer(Reading(VISITS, columns=["ds", "price"])))
    with pytest.raises(DeclarationError, match="'traffic report' is declared twice"):
        graph_of(a_consumer(), a_consumer())
