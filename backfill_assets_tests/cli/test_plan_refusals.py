"""What can't be done with a plan: one line, exit code 1, and nothing written."""

from __future__ import annotations

import os
import pwd
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli import project
from backfill_assets.cli.project import now
from backfill_assets_tests.toy import FIRST, LAST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

CATALOG = """\
from dataclasses import replace

from backfill_assets.models.sql.query import SqlQuery
from backfill_assets_tests.toy import MODELS as ALL, SOURCES

MODELS = tuple(
    {change} for model in ALL if not model.name == {gone!r}
)
"""


def declare(folder: Path, *, change: str = "model", gone: str = "") -> None:
    """Write the catalog of the toy shop, with one edit."""
    (folder / "edited_shop.py").write_text(CATALOG.format(change=change, gone=gone))


@pytest.fixture
def edited(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of a catalog that can be edited; the shop's sales are published."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BACKFILL_CATALOG", "edited_shop")
    monkeypatch.setenv("BACKFILL_CACHE_DIR", str(tmp_path / "cache"))
    declare(tmp_path)
    shop.fill("toy.sales", FIRST, LAST)
    return tmp_path


def planned(backfill: Backfill, *asked: str) -> str:
    """Make a plan and give its id."""
    return backfill("plan", *(asked or ("--select", "toy.sales")), "--json").json["plan_id"]


def test_without_a_terminal_apply_shows_its_plan_and_says_how_to_say_yes(backfill: Backfill):
    ended = backfill("apply")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Plan p")
    assert ended.err.splitlines()[-1].endswith("give --yes to continue without being asked")


def test_a_plan_file_that_was_edited_is_refused(backfill: Backfill, tmp_path: Path):
    file = tmp_path / "plan.json"
    plan_id = planned(backfill, "--select", "toy.sales", "--out", str(file))
    file.write_text(file.read_text().replace('"protected": true', '"protected": false'))

    ended = backfill("apply", str(file))

    assert (ended.code, ended.out) == (1, "")
    assert (
        "its content is not what its content_hash says: it was edited, or another release"
        in ended.err
    )
    assert backfill("show", plan_id, "--json").json["status"] == "proposed"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "other"}', "\x00"])
def test_a_file_that_is_no_plan_is_refused(backfill: Backfill, tmp_path: Path, text: str):
    file = tmp_path / "plan.json"
    file.write_text(text)

    ended = backfill("apply", str(file))

    assert ended.code == 1
    assert ended.err.startswith("error: this is not a plan that can be applied: ")


def test_a_plan_of_another_state_is_refused(
    backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "plan.json"
    planned(backfill, "--select", "toy.sales", "--out", str(file))
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path / "elsewhere"))

    ended = backfill("apply", str(file))

    assert ended.code == 1
    assert "was made with another state" in ended.err


def test_a_file_that_is_not_there_is_named(backfill: Backfill):
    assert "nowhere.json can't be used: No such file" in backfill("apply", "nowhere.json").err


def test_an_expired_plan_is_refused(backfill: Backfill, monkeypatch: pytest.MonkeyPatch):
    plan_id = planned(backfill)
    monkeypatch.setattr(project, "now", lambda: now() + timedelta(days=8))

    ended = backfill("apply", plan_id)

    assert ended.code == 1
    assert f"plan {plan_id} expired at " in ended.err


def test_code_that_was_edited_after_the_plan_is_refused(backfill: Backfill, edited: Path):
    plan_id = planned(backfill, "--restate", "toy.sales")
    changed = "replace(model, query=SqlQuery(str(model.query.sql).replace('SUM(', 'MAX(')))"
    declare(edited, change=f"{changed} if model.name == 'toy.sales' else model")

    ended = backfill("apply", plan_id)

    assert ended.code == 1
    assert f"the code has changed since plan {plan_id} was made: 'toy.sales'" in ended.err


def test_a_model_that_others_read_cannot_be_removed(backfill: Backfill, edited: Path):
    declare(edited, gone="toy.returns")

    ended = backfill("plan")

    assert (ended.code, ended.out) == (1, "")
    assert "toy.returns" in ended.err
    assert "toy.returns_daily" in ended.err


def test_a_plan_that_has_built_nothing_yet_cannot_be_compared(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    plan_id = planned(backfill)
    monkeypatch.setattr("backfill_assets.engine.plans.building.fill_cells", lambda *_, **__: {})
    assert backfill("apply", plan_id).code == 1

    ended = backfill("diff", plan_id)

    assert (ended.code, ended.out) == (1, "")
    assert f"nothing of plan {plan_id} is built yet" in ended.err


def test_what_was_never_applied_cannot_be_compared_or_taken_back(backfill: Backfill):
    plan_id = planned(backfill)

    assert "there is nothing to compare" in backfill("diff", plan_id).err
    assert "Only a promoted plan can be rolled back" in backfill("rollback", plan_id, "--yes").err
    assert "Only a promoted plan can be rolled back" in backfill("undo", plan_id, "--yes").err
    assert backfill("promote", plan_id, "--yes").code == 1


def test_an_abandoned_plan_is_at_its_end(backfill: Backfill):
    plan_id = planned(backfill)

    assert backfill("abandon", plan_id, "--reason", "a mistake").code == 0

    shown = backfill("show", plan_id).lines
    assert "Status    abandoned" in shown
    assert any(line.endswith("abandoned by ada: a mistake") for line in shown)
    assert f"plan {plan_id} is abandoned already" in backfill("apply", plan_id).err


def test_a_plan_that_this_release_cannot_read_can_still_be_given_up(
    shop: Prepared, backfill: Backfill
):
    shop.propose_unreadable("p1")

    assert "this is not a plan that can be applied" in backfill("show", "p1").err
    assert backfill("abandon", "p1").code == 0


def test_only_operators_may_change_a_protected_environment(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    plan_id = planned(backfill)
    monkeypatch.setenv("BACKFILL_OPERATORS", "grace, alan")

    for verb in ("promote", "rollback", "undo"):
        said = backfill(verb, plan_id, "--yes").err
        assert said.startswith("error: ada may not change prod, which is protected; ")
        assert "grace, alan" in said


def test_a_name_that_is_set_permits_nothing(backfill: Backfill, monkeypatch: pytest.MonkeyPatch):
    plan_id = planned(backfill)
    monkeypatch.setenv("BACKFILL_OPERATORS", "grace")
    monkeypatch.setenv("BACKFILL_USER", "grace")

    said = backfill("promote", plan_id, "--yes").err

    assert said.startswith("error: ada (typed: grace) may not change prod, which is protected; ")


def test_the_user_is_the_operating_systems_whatever_the_variables_say(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "grace")

    assert project.os_user() == pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize(
    "verb", ["show", "apply", "promote", "abandon", "undo", "rollback", "diff"]
)
def test_an_unknown_plan_is_told_which_there_are(backfill: Backfill, verb: str):
    plan_id = planned(backfill)

    ended = backfill(verb, "p0nothing")

    assert (ended.code, ended.out) == (1, "")
    assert f"plan 'p0nothing' is not in the state; the latest are {plan_id}" in ended.err


WRONG = {
    ("diff", "prod"): "expected PLAN [MODEL], or two environments",
    ("diff", "prod", "nowhere"): "environment 'nowhere' does not exist",
    ("envs", "drop", "prod", "--yes"): "it is protected",
    ("envs", "drop", "nowhere"): "environment 'nowhere' does not exist",
    ("rollback",): "rollback needs one plan: the plan to take back",
    ("history", "toy.sale"): "did you mean 'toy.sales'?",
    ("history", "toy.sales", "soon"): "is not the key of a cell",
    ("why-not", "toy.sale", "2024-01-30"): "did you mean 'toy.sales'?",
    ("status", "--env", "nowhere"): "environment 'nowhere' does not exist",
}


@pytest.mark.parametrize(("asked", "said"), WRONG.items())
def test_other_mistakes_end_in_one_line_too(backfill: Backfill, asked: tuple[str, ...], said: str):
    ended = backfill(*asked)

    assert (ended.code, ended.out) == (1, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert said in last
