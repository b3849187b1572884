"""Every verb finds a plan in the same ways: by its id, the beginning of it, or its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

LOOKING = (
    "show PLAN",
    "diff PLAN",
    "checklist PLAN",
    "approvals PLAN",
    "notices PLAN",
    "aftercare PLAN",
    f"why-not toy.sales {FIRST} --plan PLAN",
    "evidence note PLAN",
    "evidence report PLAN --markdown",
)
REFUSED = (
    "approve PLAN",
    "accept PLAN toy.sales check --reason why",
    "acknowledge PLAN board",
    f"results add report toy.sales {FIRST} --plan PLAN",
    "promote PLAN",
    "undo PLAN",
    "rollback PLAN",
    "rollback --to PLAN",
    "evidence show PLAN",
)
CHANGING = (
    "limit PLAN 2",
    "pause PLAN",
    "resume PLAN",
    "stop PLAN",
    "evidence write PLAN",
    "evidence show PLAN",
    "abandon PLAN",
)


@pytest.fixture
def file(shop: Prepared, backfill: Backfill, tmp_path: Path) -> tuple[str, str]:
    """A plan: its id, and its file."""
    shop.fill("toy.sales", FIRST, FIRST)
    path = tmp_path / "p4.json"
    asked = f"toy.sales:{FIRST}..{FIRST}"
    made = backfill("plan", "--restate", asked, "--out", str(path), "--json")
    return made.json["plan_id"], str(path)


def named(verb: str, plan: str) -> list[str]:
    return [plan if word == "PLAN" else word for word in verb.split()]


@pytest.mark.parametrize("verb", [*LOOKING, *REFUSED])
def test_a_plan_is_the_same_by_its_id_the_beginning_of_it_and_its_file(
    backfill: Backfill, file: tuple[str, str], verb: str
):
    plan_id, path = file

    by_id, by_beginning, by_file = (
        backfill(*named(verb, name)) for name in (plan_id, plan_id[:6], path)
    )

    assert by_id == by_beginning == by_file
    assert "is not in the state" not in by_id.err


@pytest.mark.parametrize("by", ["file", "beginning"])
def test_a_plan_is_controlled_and_ended_by_its_file_and_the_beginning_of_its_id(
    backfill: Backfill, file: tuple[str, str], by: str
):
    plan_id, path = file
    for verb in CHANGING:
        ended = backfill(*named(verb, path if by == "file" else plan_id[:6]))

        assert ended.code == 0, ended.err

    assert "Status    abandoned" in backfill("show", plan_id).out


@pytest.mark.parametrize("verb", ["apply PLAN --yes", *LOOKING[:-1], *REFUSED[:-1], *CHANGING[:5]])
def test_an_empty_name_is_no_plan_and_nothing_is_made(
    backfill: Backfill, file: tuple[str, str], verb: str
):
    with opened_run("prod") as run:
        before = run.store.plans.latest()

    ended = backfill(*named(verb, ""))

    assert ended.code == 1
    assert f"plan '' is not in the state; the latest are {file[0]}" in ended.err
    with opened_run("prod") as run:
        assert run.store.plans.latest() == before
