"""Bundles of earlier releases, held against the modules of today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backfill_assets.models.fingerprint import changed_models
from backfill_assets.models.python.bundling import bundle_text
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery, changed_code
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.snapshots.snapshot import snapshots_of, stored_model
from backfill_assets_tests.builders import a_graph, a_model

MODULE = '''"""Visits."""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from backfill_assets import Column
import pandas as pd

if TYPE_CHECKING:
    from decimal import Decimal

RATES: dict[str, Decimal] = {"a": 3}
RATES["b"] = 4
LOG = logging.getLogger(__name__)
TABLE = pd.DataFrame()


def visits(inputs: dict[str, int], interval: Decimal | None) -> Decimal:
    """Count them."""
    return _sum(RATES)  # all


def _sum(rates):
    return sum(rates.values())


class Other(dict):
    """Something else."""


def other():
    return Other()
'''


def query(text: str) -> ModuleQuery:
    return ModuleQuery("visits", "visits", (StoredModule("visits", text),))


def bundle(text: str) -> FunctionQuery:
    cut = bundle_text(text, "visits")
    assert cut is not None
    return FunctionQuery("visits", cut)


def test_a_new_release_alone_changes_no_model():
    old, new = a_model(query=bundle(MODULE)), a_model(query=query(MODULE))

    assert not changed_code(bundle(MODULE), query(MODULE))
    assert changed_models(a_graph(old), a_graph(new)) == frozenset()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('RATES["b"] = 4', 'RATES["b"] = 5'),
        ("sum(rates.values())", "max(rates.values())"),
        ('{"a": 3}', '{"a": 4}'),
    ],
)
def test_an_edit_since_an_earlier_release_is_a_change(old: str, new: str):
    assert changed_code(bundle(MODULE), query(MODULE.replace(old, new)))


@pytest.mark.parametrize(
    "dropped",
    [
        "def _fill(rates):\n    rates['c'] = 5\n_fill(RATES)",
        "def _fill():\n    RATES['c'] = 5\n_fill()",
        "dict.update(RATES, c=5)",
        "del RATES['b']",
        "setattr(visits, 'rates', 3)",
        "@print\ndef more(rates=RATES): ...",
    ],
)
def test_what_an_earlier_release_left_out_of_its_bundle_is_a_change_now(dropped: str):
    text = f"{MODULE}\n\n{dropped}\n"

    assert bundle(text) == bundle(MODULE)
    assert changed_code(bundle(text), query(text))


def test_a_bundle_without_the_types_that_make_its_kind_is_a_change():
    text = MODULE.replace("def _sum", "@pd.pandas_udf\ndef _sum")
    assert changed_code(bundle(text), query(text))


def test_a_snapshot_of_an_earlier_release_is_read_back_and_runs():
    model = a_model(query=bundle("RATE = 3\ndef visits(inputs, interval):\n    return RATE\n"))
    definition = (
        '{"@":"FunctionQuery","v":{"bundle":"RATE = 3\\n\\ndef visits(inputs, interval):\\n    return '
        'RATE\\n","name":"visits"}}'
    )
    stored = snapshots_of(a_graph(model))[model.name].definition()

    assert definition in stored
    read = stored_model(stored)
    assert read == replace(model)
    assert isinstance(read.logic, FunctionQuery)
    assert read.logic.load()({}, None) == 3
