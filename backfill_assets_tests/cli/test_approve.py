"""What `approve`, `approvals` and `promote` say about policies and keys that can't be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST, LAST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

POLICY = "[[rules]]\napprovers = ['bob@shop.example']\n"


@pytest.fixture
def plan_id(shop: Prepared, backfill: Backfill) -> str:
    """A plan that counts as built; nothing of it is."""
    shop.fill("toy.sales", FIRST, LAST)
    made = backfill("plan", "--restate", f"toy.sales:{FIRST}..{FIRST}", "--json").json["plan_id"]
    with opened_run("prod") as run:
        run.store.plans.set_plan_status(made, PlanStatus.PROPOSED, PlanStatus.BUILT)
    return made


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    monkeypatch.setenv("BACKFILL_POLICY", str(path))
    return path


def test_without_a_policy_there_is_nothing_to_approve(plan_id: str, backfill: Backfill):
    said = backfill("approve", plan_id, "--yes")

    assert said.code == 1
    assert "no policy asks for an approval in prod. BACKFILL_POLICY names the policy" in said.err
    assert backfill("approvals", plan_id).lines == [
        f"Next: backfill promote {plan_id}",
        f"{plan_id}: built, 0 signatures.",
    ]


def test_a_typo_in_the_policy_is_told_by_whatever_relies_on_it(
    plan_id: str, policy: Path, backfill: Backfill
):
    policy.write_text(POLICY.replace("approvers", "aprovers"))

    for verb in ("approve", "approvals"):
        said = backfill(verb, plan_id)
        assert said.code == 1
        assert "'approvers' was probably meant" in said.err
    (waiting,) = backfill("status", "--json").json["plans"]
    assert waiting["next"] == [f"backfill approvals {plan_id}"]


def test_status_goes_on_where_the_key_of_the_webserver_can_not_be_used(
    plan_id: str, policy: Path, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    policy.write_text(f"header = true\n{POLICY}")
    monkeypatch.setenv("BACKFILL_IDENTITY_KEY", str(policy.parent / "no.key"))

    said = backfill("approvals", plan_id)
    assert said.code == 1
    assert "no.key can't be used" in said.err

    (waiting,) = backfill("status", "--json").json["plans"]
    assert waiting["next"] == [f"backfill approvals {plan_id}"]


def test_a_missing_file_of_signers_is_told_before_anything_is_signed(
    plan_id: str, policy: Path, backfill: Backfill
):
    said = backfill("approve", plan_id, "--yes")

    assert said.code == 1
    assert f"allowed signers {policy.parent / 'allowed_signers'} can't be read" in said.err


def test_what_is_required_is_listed(plan_id: str, policy: Path, backfill: Backfill):
    (policy.parent / "allowed_signers").write_text("")
    policy.write_text(POLICY + "always = true\n")

    said = backfill("approvals", plan_id, "--json").json

    (lacking,) = said["lacking"]
    assert lacking.startswith("moves toy.sales, ")
    assert lacking.endswith(" of prod: needs 1 approval by bob@shop.example")
    assert list(said["parts"])[:2] == ["plan", "built cells"]
