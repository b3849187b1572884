"""What `backfill diff` is asked, as it is written on the line."""

from __future__ import annotations

import pytest

from backfill_assets.cli.diff_options import DiffOptions, question
from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.models.column import Column
from backfill_assets_tests.builders import a_model


def test_groups_tolerances_and_keys_are_read():
    asked = DiffOptions(
        by=("cell", "month", "month(ds)"), tolerances=("cost=0.010",), keys=("id=7",)
    )
    found = question(a_model(), asked, None)
    assert found.by == ("_cell", "month", "month(ds)")
    assert [name for name, _ in found.computed] == ["month", "month(ds)"]
    assert found.tolerances == (("cost", "0.010"),)
    assert found.where == "CAST(`id` AS STRING) = '7'"
    assert question(a_model(), DiffOptions(), None).by == ("_cell",)


@pytest.mark.parametrize("dtype", ["NUMERIC(18, 2)", "long", "real"])
def test_a_number_is_one_in_every_spelling_of_its_type(dtype: str):
    model = a_model(columns=(*a_model().schema[:2], Column("cost", dtype)))
    asked = DiffOptions(tolerances=("cost=1",), most="cost")
    assert question(model, asked, None).tolerances == (("cost", "1"),)


def test_a_tolerance_of_a_group_is_read_as_a_condition():
    asked = DiffOptions(
        tolerances=("cost=0.1", "cost=2 where id=7", "cost = 3 WHERE month=2024-03")
    )
    found = question(a_model(), asked, None)
    assert found.tolerances == (("cost", "0.1"),)
    assert found.own_tolerances == (
        ("cost", "CAST(`id` AS STRING) = '7'", "2"),
        ("cost", "CAST(date_format(`_cell`, 'yyyy-MM') AS STRING) = '2024-03'", "3"),
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (DiffOptions(by=("csot",)), "did you mean 'cost'"),
        (DiffOptions(tolerances=("cost",)), "expected COLUMN=NUMBER, such as cost=0.01"),
        (DiffOptions(tolerances=("cost=-1",)), "expected COLUMN=NUMBER"),
        (DiffOptions(tolerances=("cost=NaN",)), "expected COLUMN=NUMBER"),
        (DiffOptions(tolerances=("csot=1",)), "did you mean 'cost'"),
        (DiffOptions(tolerances=("ds=1",)), "ds is of the key"),
        (DiffOptions(tolerances=("cost=1 where id",)), "expected GROUP=VALUE"),
        (DiffOptions(tolerances=("cost=1 where idd=7",)), "did you mean 'id'"),
        (DiffOptions(most="csot"), "did you mean 'cost'"),
        (DiffOptions(keys=("idd=7",)), "COLUMN=VALUE with a column of web.visits"),
    ],
)
def test_what_names_no_column_says_which_was_meant(asked: DiffOptions, said: str):
    with pytest.raises(RequestError) as found:
        question(a_model(), asked, None)
    assert said in str(found.value)


@pytest.mark.parametrize("dtype", ["map<string,int>", "variant", "array<struct<a:variant>>"])
def test_values_that_can_not_be_compared_make_no_groups(dtype: str):
    model = a_model(columns=(*a_model().schema, Column("tags", dtype)))
    with pytest.raises(DeclarationError, match="in --by tags; expected values that Spark can comp"):
        question(model, DiffOptions(by=("tags",)), None)
