"""The sums of a consumer's columns, before and after, as evidence and messages write them."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from backfill_assets.engine.review.compared import ComparedModel, sums_of
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.planning.review.touched import Touched
from backfill_assets_tests.builders import a_model, days

MODEL = a_model()
COST = "cost"
READER = Touched("board", "dashboard", "team:web", MODEL.name, (COST,), days(8, 9))


def told(*pairs: tuple[Decimal | None, Decimal | None]) -> dict[str, tuple[str, str]]:
    """Sum up a column over the 8th and the 9th, each with its sum before and after."""
    groups = {
        f"2024-01-0{8 + at}": Group(
            (f"2024-01-0{8 + at}",), 1, 1, 0, 0, 1, {COST: Measure(1, 1, 1, *pair)}
        )
        for at, pair in enumerate(pairs)
    }
    facts: Any = SimpleNamespace(
        compared={MODEL.name: ComparedModel(groups)},
        noted=SimpleNamespace(cadences={MODEL.name: MODEL.cadence}),
    )
    return sums_of(facts, READER)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Decimal("0E-9"), Decimal("1E-7"), ("0.000000000", "0.0000002")),
        (
            Decimal("1234.50"),
            Decimal(10**29 + 1),
            ("2,469.00", "200,000,000,000,000,000,000,000,000,002"),
        ),
    ],
)
def test_a_sum_is_written_out_with_all_its_digits(
    before: Decimal, after: Decimal, words: tuple[str, str]
):
    assert told((before, after), (before, after)) == {COST: words}


def test_a_sum_that_is_not_known_in_one_cell_is_not_told():
    assert told((Decimal(1), Decimal(2)), (Decimal(1), None)) == {}
