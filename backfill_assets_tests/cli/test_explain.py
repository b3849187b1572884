"""`explain`, `replay` and `map` as a person calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES, FIRST = "toy.sales", "2024-01-28"


def test_rows_are_explained_from_the_records_alone(shop: Prepared, backfill: Backfill):
    batch = shop.fill(SALES, FIRST, "2024-01-31")
    shop.change(SALES, FIRST, "2024-01-29")

    ended = backfill("explain", SALES, FIRST, "*")

    assert ended.code == 0
    head, before, first, again, now, last = ended.lines
    assert head == f"{SALES} {FIRST}: rows in prod"
    assert before.split(maxsplit=1) == ["0", "before it was published"]
    assert f"batch {batch[:8]}, gap fill" in first
    assert first.endswith("published for the first time")
    assert again.endswith(
        "the recorded logic and inputs are the same: a volatile query, other libraries, or a source that "
        "changed unseen"
    )
    assert now.split() == ["11", "now"]
    assert last == f"{SALES}: +11 in 2 parts, which sum to it exactly."


def test_the_json_has_exact_numbers_as_text(shop: Prepared, backfill: Backfill):
    shop.fill(SALES, FIRST, "2024-01-31")

    told = backfill("explain", SALES, f"{FIRST}..2024-01-29", "*", "--json").json

    assert (told["cells"], told["column"]) == (["2024-01-28..2024-01-29"], "*")
    assert told["before"] == {"at": None, "number": "0", "published": False}
    (part,) = told["parts"]
    assert part["difference"] == told["difference"] == told["after"]["number"]
    assert part["steps"][0]["causes"][0]["kind"] == "first build"


def test_a_number_that_was_never_published_is_said_so(shop: Prepared, backfill: Backfill):
    shop.fill(SALES, FIRST, FIRST)

    asked = ("explain", SALES, FIRST, "*", "--between", "2020-01-01", "2020-12-31")

    assert backfill(*asked).lines[-1] == f"{SALES}: not published at either moment."


def test_a_moment_that_has_not_come_is_now(shop: Prepared, backfill: Backfill):
    shop.fill(SALES, FIRST, FIRST)

    asked = ("explain", SALES, FIRST, "*", "--between", "2020-01-01", "2999-12-31")

    assert backfill(*asked, "--json").json["after"]["at"] is None
    assert backfill(*asked).lines[-2].endswith("  now")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("explain", SALES, FIRST, "*", "--between", "2999-01-01", "2999-02-01"),
            "--between 2999-01-01 2999-02-01: the first moment lies in the future; give a moment in the past",
        ),
        (
            ("explain", SALES, FIRST, "*", "--between", "2024-02-01", "2024-01-01"),
            "not after the first",
        ),
        (
            ("explain", SALES, FIRST, "*", "--between", "soon", "2024-01-01"),
            "neither a date nor an instant",
        ),
        (("explain", "toy.sale", FIRST, "*"), "toy.sales"),
        (("explain", SALES, "january", "*"), "january"),
        (("explain", SALES, FIRST, "*", "--env", "nope"), "environment 'nope' does not exist"),
        (("replay", "toy.raw_sales", FIRST), "is a source"),
        (("map", "toy.sale"), "toy.sales"),
    ],
)
def test_a_mistake_is_named_without_a_traceback(
    shop: Prepared, backfill: Backfill, asked: tuple[str, ...], said: str
):
    shop.fill(SALES, FIRST, FIRST)

    ended = backfill(*asked)

    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_cell_that_is_not_published_can_not_be_replayed(shop: Prepared, backfill: Backfill):
    shop.fill(SALES, FIRST, FIRST)

    ended = backfill("replay", SALES, "2024-01-29")

    assert ended.code == 1
    assert ended.lines == [f"{SALES}: replayed 0 cells: nothing is published there."]


def test_the_map_has_a_line_per_model_and_ends_with_the_count(shop: Prepared, backfill: Backfill):
    shop.fill(SALES, FIRST, "2024-01-31")

    lines = backfill("map", SALES, "toy.returns").lines

    assert [line.split()[1][0] for line in lines[1:3]] == [".", "A"]
    assert "  missing: 2024-02-01..2024-02-03 (3)" in lines
    assert lines[-1] == "prod: 2 models, 1 snapshot."


def test_the_map_as_a_page_is_one_file(shop: Prepared, backfill: Backfill, tmp_path: Path):
    shop.fill(SALES, FIRST, "2024-01-31")
    page = tmp_path / "map.html"

    ended = backfill("map", SALES, "--html", str(page))

    assert ended.lines == [f"prod: 1 model, 1 snapshot, in {page}."]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    missing = backfill("map", SALES, "--html", str(tmp_path / "nowhere" / "map.html"))
    assert missing.code == 1
    assert "can't be written" in missing.err
