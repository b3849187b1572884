"""What verbs name as the next step of a plan whose promotion waits for answers, results or approvals."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.plan_check import PlanCheck
from backfill_assets.testing import time_passed
from backfill_assets_tests import toy
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.signing import Keys
from backfill_assets_tests.toy import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES, READER, REPORT = "toy.sales", "counter report", "report of January"


@pytest.fixture(autouse=True)
def _computing(shop: Prepared, computing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sales in a catalog whose consumer wants to be asked."""
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_asking")
    _land(shop, 1)


def _land(shop: Prepared, amount: int) -> None:
    row = (date.fromisoformat(FIRST), "north", Decimal(amount))
    toy.land_rows(str(shop.data), toy.raw_sales, row, mode="overwrite")


def _built(shop: Prepared, backfill: Backfill) -> str:
    """A plan that changes the published first day."""
    assert backfill("run").code == 0
    assert backfill("results", "add", REPORT, SALES, FIRST, "--rerun").code == 0
    _land(shop, 2)
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}", "--reason", "wrong")
    plan_id = backfill("plan", *asked, "--json").json["plan_id"]
    assert backfill("approvals", plan_id).lines == [
        f"Next: backfill apply {plan_id}",
        f"{plan_id}: proposed, 0 signatures.",
    ]
    assert backfill("apply", plan_id).code == 0
    return plan_id


def _last(backfill: Backfill, *words: str) -> list[str]:
    """The line that names the next command, and the last one."""
    ended = backfill(*words)
    assert ended.code == 0, ended.err
    return ended.lines[-2:]


def test_answers_and_results_that_are_awaited_are_counted_and_are_the_next_step(
    shop: Prepared, backfill: Backfill
):
    plan_id = _built(shop, backfill)
    answering = f"Next: backfill acknowledge {plan_id} '{READER}'"

    assert _last(backfill, "approvals", plan_id) == [
        answering,
        f"{plan_id}: built, 0 signatures, 2 awaited.",
    ]
    assert _last(backfill, "checklist", plan_id)[0] == answering
    watched = _last(backfill, "show", plan_id, "--watch")[0]
    assert answering.removeprefix("Next: ") in watched
    assert "promote" not in watched
    diff, abandon = f"backfill diff {plan_id}", f"backfill abandon {plan_id}"
    assert backfill("apply", plan_id, "--json").json["next"] == [
        diff,
        answering.removeprefix("Next: "),
        abandon,
    ]

    (waiting,) = backfill("status", "--json").json["plans"]
    assert waiting["next"] == [answering.removeprefix("Next: "), abandon]

    answered = backfill("acknowledge", plan_id, READER)
    assert "Next" not in answered.out  # a result is awaited still
    assert _last(backfill, "approvals", plan_id)[1] == f"{plan_id}: built, 0 signatures, 1 awaited."
    assert backfill("show", plan_id, "--json").json["next"] == [diff, abandon]

    backfill("results", "add", REPORT, SALES, FIRST, "--plan", plan_id)
    assert _last(backfill, "approvals", plan_id) == [
        f"Next: backfill promote {plan_id}",
        f"{plan_id}: built, 0 signatures.",
    ]


def test_under_a_policy_nothing_is_called_done_while_answers_are_awaited(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan_id = _built(shop, backfill)
    policy = tmp_path / "policy.toml"
    (tmp_path / "allowed_signers").write_text("")
    monkeypatch.setenv("BACKFILL_POLICY", str(policy))
    policy.write_text("[[rules]]\nmodels = ['other.*']\napprovers = ['bob@shop.example']\n")

    assert _last(backfill, "approvals", plan_id) == [
        f"Next: backfill acknowledge {plan_id} '{READER}'",
        f"{plan_id}: 0 approvals, 2 awaited.",
    ]

    policy.write_text("[[rules]]\napprovers = ['bob@shop.example']\n")
    assert _last(backfill, "approvals", plan_id) == [
        f"Next: backfill approve {plan_id}, or backfill acknowledge {plan_id} '{READER}'",
        f"{plan_id}: 0 approvals, 1 still required, 2 awaited.",
    ]
    shown = backfill("show", plan_id, "--json").json
    assert (len(shown["lacking"]), f"backfill approve {plan_id}" in shown["next"]) == (1, True)
    assert "Required  rewrites published history of toy.sales" in backfill("show", plan_id).out


def test_an_answer_that_does_not_count_is_listed_with_the_reason(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan_id = _built(shop, backfill)
    keys, policy = Keys(tmp_path), tmp_path / "policy.toml"
    keys.allow(["bob@shop.example"])
    policy.write_text("[[rules]]\napprovers = ['bob@shop.example']\n")
    monkeypatch.setenv("BACKFILL_POLICY", str(policy))
    monkeypatch.setenv("BACKFILL_SIGNING_KEY", str(keys.path("bob@shop.example")))
    backfill("acknowledge", plan_id, READER, "--reason", "told the counter")

    def signed() -> tuple[str, str]:
        (row,) = backfill("approvals", plan_id, "--json").json["signed"]
        listed = backfill("approvals", plan_id).lines
        (line,) = (line for line in listed if "acknowledge by bob" in line)
        return row["void"], line.partition(" UTC")[2]

    counts = signed()
    policy.write_text("[[rules]]\napprovers = ['bob@shop.example']\nholds_days = 3\n")

    assert counts == ("", ": told the counter")
    assert signed() == (
        "changed since: policy",
        ": told the counter; void, changed since: policy",
    )


def test_what_is_required_of_a_plan_is_not_known_before_it_is_built(
    shop: Prepared, backfill: Backfill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert backfill("run").code == 0
    _land(shop, 2)
    (tmp_path / "allowed_signers").write_text("")
    (tmp_path / "policy.toml").write_text("[[rules]]\napprovers = ['bob@shop.example']\n")
    monkeypatch.setenv("BACKFILL_POLICY", str(tmp_path / "policy.toml"))
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}", "--json")
    plan_id = backfill("plan", *asked).json["plan_id"]

    assert _last(backfill, "approvals", plan_id)[1] == f"{plan_id}: 0 approvals."


def test_an_accepted_difference_leads_to_the_next_one_before_the_promotion(
    shop: Prepared, backfill: Backfill
):
    plan_id = _built(shop, backfill)
    backfill("acknowledge", plan_id, READER)
    backfill("results", "remove", REPORT)
    with opened_run("prod") as run:
        checks = [
            PlanCheck(SALES, name, passed=False, text="found 3 rows") for name in ("rows", "sums")
        ]
        run.store.checks.keep(plan_id, checks)

    first = _last(backfill, "accept", plan_id, SALES, "rows", "--reason", "agreed")
    second = _last(backfill, "accept", plan_id, SALES, "sums", "--reason", "agreed")

    assert first[0] == f"Next: backfill accept {plan_id} {SALES} sums --reason TEXT"
    assert second[0] == f"Next: backfill promote {plan_id}"


def test_a_plan_that_is_paused_is_resumed_before_it_is_built(shop: Prepared, backfill: Backfill):
    assert backfill("run").code == 0
    _land(shop, 2)
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}", "--json")
    plan_id = backfill("plan", *asked).json["plan_id"]
    assert backfill("pause", plan_id).code == 0

    assert _last(backfill, "approvals", plan_id)[0] == f"Next: backfill resume {plan_id}"
    backfill("resume", plan_id)
    assert _last(backfill, "approvals", plan_id)[0] == f"Next: backfill apply {plan_id}"


def test_a_proposal_that_has_expired_is_not_to_be_applied(shop: Prepared, backfill: Backfill):
    assert backfill("run").code == 0
    _land(shop, 2)
    asked = ("--restate", f"{SALES}:{FIRST}..{FIRST}", "--json")
    plan_id = backfill("plan", *asked).json["plan_id"]

    with time_passed(timedelta(days=8)):
        assert backfill("apply", plan_id, "--yes").code == 1
        assert "Next" not in backfill("approvals", plan_id).out


def test_a_plan_that_has_waited_for_too_long_can_only_be_abandoned(
    shop: Prepared, backfill: Backfill
):
    plan_id = _built(shop, backfill)

    with time_passed(timedelta(days=8)):
        shown, again = backfill("show", plan_id), backfill("promote", plan_id, "--yes")
        assert again.code == 1
        assert "was not continued before" in again.err
        assert "Waited    until " in shown.out
        assert shown.lines[-2] == f"Next: backfill abandon {plan_id}"
        assert backfill("show", plan_id, "--json").json["outwaited"]
        assert _last(backfill, "approvals", plan_id)[0] == f"Next: backfill abandon {plan_id}"
    assert backfill("show", plan_id, "--json").json["outwaited"] is None


def test_the_clock_of_show_and_envs_is_that_of_the_other_commands(
    shop: Prepared, backfill: Backfill
):
    assert backfill("run").code == 0
    _land(shop, 2)
    asked = ("dev", "--restate", f"{SALES}:{FIRST}..{FIRST}", "--json")
    assert backfill("apply", backfill("plan", *asked).json["plan_id"]).code == 0
    kept = backfill("plan", "--restate", f"{SALES}:{FIRST}..{FIRST}", "--json").json["plan_id"]

    assert "Status    proposed" in backfill("show", kept).out
    assert [row["expired"] for row in backfill("envs", "--json").json] == [False, False]

    with time_passed(timedelta(days=60)):
        assert "Status    expired" in backfill("show", kept).out
        assert [row["expired"] for row in backfill("envs", "--json").json] == [True, False]


@pytest.mark.parametrize("ruled", [False, True], ids=["no policy", "a policy"])
def test_a_built_plan_can_be_looked_at_after_its_models_have_left_the_catalog(
    shop: Prepared,
    backfill: Backfill,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ruled: bool,  # noqa: FBT001 - a case
):
    plan_id = _built(shop, backfill)
    if ruled:
        (tmp_path / "allowed_signers").write_text("")
        (tmp_path / "policy.toml").write_text("[[rules]]\napprovers = ['bob@shop.example']\n")
        monkeypatch.setenv("BACKFILL_POLICY", str(tmp_path / "policy.toml"))
    (tmp_path / "without_sales.py").write_text(
        "from backfill_assets_tests.toy import MODELS, SOURCES\n"
        "MODELS = [m for m in MODELS if m.name == 'toy.shops']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BACKFILL_CATALOG", "without_sales")

    for verb in ("show", "approvals", "checklist", "status"):
        words = (verb, plan_id) if verb != "status" else (verb,)
        ended = backfill(*words)
        assert ended.code in (0, 2, 3), (verb, ended.err)
        assert plan_id in ended.out
