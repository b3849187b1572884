"""What a comparison may be grouped by, beside columns."""

from __future__ import annotations

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Hourly
from backfill_assets.planning.review.grouping import grouping_expression
from backfill_assets_tests.builders import a_model, a_whole


def test_a_period_is_that_of_the_cell_in_the_zone_of_its_model():
    assert grouping_expression(a_model(), "month") == "date_format(`_cell`, 'yyyy-MM')"
    hourly = a_model(cadence=Hourly(start="2024-01-01", tz="Europe/Berlin"))
    assert grouping_expression(hourly, "year") == (
        "date_format(from_utc_timestamp(`_cell`, 'Europe/Berlin'), 'yyyy')"
    )
    assert grouping_expression(a_whole("web.shops"), "month") == "'whole'", "no month of 1970"


@pytest.mark.parametrize(
    "text", ["month(ds)", "CASE WHEN cost > 5 THEN 'much' END", "id % 3", "UPPER(id)"]
)
def test_an_expression_over_the_columns_is_one(text: str):
    assert grouping_expression(a_model(), text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("monht", "did you mean 'month'"),
        ("month(dss)", "did you mean 'ds'"),
        ("other.ds", "no column 'other.ds'"),
        ("rand()", "can't be read"),
        ("id + rand()", "can't be read"),
        ("current_date", "can't be read"),
        ("sum(cost)", "can't be read"),
        ("1", "can't be read"),
        ("(SELECT 1)", "can't be read"),
        ("ds) FROM t; DROP TABLE t --", "can't be read"),
        ("ds /* all */", "can't be read"),
        ("reflect('java.lang.Runtime', id)", "can't be read"),
    ],
)
def test_what_would_not_group_both_sides_alike_is_refused(text: str, said: str):
    with pytest.raises(RequestError, match="--by") as found:
        grouping_expression(a_model(), text)
    assert said in str(found.value)
