"""`backfill evidence`: written, verified, summed up, and told as a release note."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.evidence.manifest import EXPECTED
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.toy import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


@pytest.fixture
def plan_id(shop: Prepared, backfill: Backfill) -> str:
    """A plan that was abandoned."""
    shop.fill("toy.sales", FIRST, FIRST)
    asked = f"toy.sales:{FIRST}..{FIRST}"
    made = backfill("plan", "--restate", asked, "--reason", "wrong prices", "--json")
    return made.json["plan_id"]


def test_an_abandoned_plan_names_the_folder_of_its_evidence(
    shop: Prepared, backfill: Backfill, plan_id: str
):
    said = backfill("abandon", plan_id)

    folder = shop.data / "evidence" / plan_id
    assert f"Evidence: {folder}" in said.lines
    verified = backfill("evidence", "verify", str(folder.parent))
    assert verified.code == 0, verified.out
    assert verified.lines[-1].startswith(
        f"0 findings in {len(EXPECTED) + 2} files of 1 plan; last manifest "
    )


def test_a_changed_file_ends_with_1_and_is_named(shop: Prepared, backfill: Backfill, plan_id: str):
    backfill("abandon", plan_id)
    folder = shop.data / "evidence" / plan_id
    (folder / "audits.json").write_text("{}", encoding="utf-8")

    said = backfill("evidence", "verify", str(folder))
    told = backfill("evidence", "verify", str(folder), "--json")

    assert said.code == told.code == 1
    assert "changed  audits.json: found 2 bytes" in said.out
    assert [found["path"] for found in told.json["findings"]] == ["audits.json"]
    assert backfill("evidence", "write", plan_id).code == 0
    assert backfill("evidence", "verify", str(folder)).code == 0


@pytest.mark.parametrize("by", ["id", "folder"])
def test_it_is_summed_up_in_ten_lines(shop: Prepared, backfill: Backfill, plan_id: str, by: str):
    backfill("abandon", plan_id, "--reason", "agreed otherwise")
    folder = str(shop.data / "evidence" / plan_id)

    said = backfill("evidence", "show", plan_id if by == "id" else folder)

    assert said.code == 0, said.err
    assert len(said.lines) <= 10
    assert said.lines[0].startswith(f"Plan {plan_id} for prod: wrong prices. Abandoned on ")
    assert "Changed   nothing that readers read" in said.lines
    assert "Accepted  by none; asked for by ada" in said.lines


def test_a_note_can_be_read_before_a_plan_has_ended(backfill: Backfill, plan_id: str):
    said = backfill("evidence", "note", plan_id)

    assert said.code == 0, said.err
    assert "Nothing of this plan is published: it is proposed. Reason: wrong prices." in said.out
    assert "**toy.sales**" in said.out


def test_an_unknown_consumer_is_a_clear_error(backfill: Backfill, plan_id: str):
    said = backfill("evidence", "note", plan_id, "--consumer", "other report")

    assert said.code == 1
    assert "changes nothing that consumer 'other report' is declared to read" in " ".join(
        said.err.split()
    )


def test_a_folder_that_is_none_is_a_clear_error(backfill: Backfill, tmp_path: Path):
    for verb in ("verify", "show"):
        said = backfill("evidence", verb, str(tmp_path / "nowhere"))
        assert said.code == 1
        assert said.err.startswith("error: ")
    empty = backfill("evidence", "show", str(tmp_path))
    assert "holds no evidence of a plan that can be read" in " ".join(empty.err.split())


def test_a_plan_without_evidence_says_when_it_is_written(backfill: Backfill, plan_id: str):
    said = backfill("evidence", "show", plan_id)

    assert (said.code, said.out) == (1, "")
    words = " ".join(said.err.split())
    assert f"no evidence of plan {plan_id} is written yet; the plan is proposed" in words
    assert f"`backfill evidence write {plan_id}`" in words


def test_evidence_that_can_not_be_written_is_a_clear_error(
    shop: Prepared, backfill: Backfill, plan_id: str
):
    (shop.data / "evidence").write_text("in the way", encoding="utf-8")

    said = backfill("evidence", "write", plan_id)

    assert said.code == 1
    assert "can't be written to" in " ".join(said.err.split())


def test_a_plan_that_can_not_be_read_is_given_up_and_its_evidence_says_what_it_lacks(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", FIRST, FIRST)
    shop.propose_unreadable("p0ld")

    assert backfill("abandon", "p0ld").code == 0

    said = backfill("evidence", "verify", str(shop.data / "evidence" / "p0ld"))
    assert said.code == 1
    assert "INCOMPLETE  ./plan.md: PlanFormatError" in said.out
    assert "changed" not in said.out


def test_a_report_is_written_before_a_plan_has_ended_and_from_the_folder_alone_afterwards(
    shop: Prepared, backfill: Backfill, plan_id: str, tmp_path: Path
):
    page, later = tmp_path / "open.html", tmp_path / "later.html"

    said = backfill("evidence", "report", plan_id, "--out", str(page))
    backfill("abandon", plan_id)
    told = backfill(
        "evidence", "report", str(shop.data / "evidence" / plan_id), "--out", str(later), "--json"
    )

    assert said.lines[-2:] == [f"{plan_id}: Not built yet.", f"Report: {page}"]
    assert f"Plan {plan_id} for prod" in page.read_text(encoding="utf-8")
    assert told.json["verdict"] == "Abandoned; nothing was published."
    assert later.read_text(encoding="utf-8") == (
        shop.data / "evidence" / plan_id / "report.html"
    ).read_text(encoding="utf-8")


def test_the_report_of_a_pull_request_is_markdown(backfill: Backfill, plan_id: str):
    said = backfill("evidence", "report", plan_id, "--markdown")

    assert said.lines[0] == f"## Plan {plan_id} for prod"


def test_a_report_that_cannot_be_written_says_so(backfill: Backfill, plan_id: str, tmp_path: Path):
    said = backfill("evidence", "report", plan_id, "--out", str(tmp_path / "none" / "report.html"))

    assert said.code == 1
    assert "can't be written: No such file or directory" in said.err


def test_a_folder_without_evidence_has_no_report(backfill: Backfill, tmp_path: Path):
    said = backfill("evidence", "report", str(tmp_path))

    assert said.code == 1
    assert "timeline.json is missing" in said.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("timeline.json", b"[]"),
        ("timeline.json", b"{"),
        ("diff.json", b"\xff"),
        ("diff.json", b'{"models": [{"model": "toy.sales"}]}'),
        ("manifest.json", b'"x"'),
    ],
)
def test_a_folder_with_a_damaged_part_is_a_clear_error(
    shop: Prepared, backfill: Backfill, plan_id: str, name: str, content: bytes
):
    backfill("abandon", plan_id)
    folder = shop.data / "evidence" / plan_id
    (folder / name).write_bytes(content)

    verb = "show" if name != "diff.json" else "report"
    for asked in ([verb, str(folder)], [verb, str(folder), "--json"]):
        said = backfill("evidence", *asked)

        assert (said.code, said.out) == (1, "")
        assert f"error: {folder} holds no evidence of a plan that can be read (" in said.err
        assert "`backfill evidence verify FOLDER` names each damaged file" in said.err
    assert backfill("evidence", "verify", str(folder)).code == 1


def test_a_plan_that_was_taken_back_is_not_abandoned_and_is_told_so(
    backfill: Backfill, plan_id: str
):
    with opened_run("prod") as run:
        plans = run.store.plans
        plans.set_plan_status(plan_id, PlanStatus.PROPOSED, PlanStatus.PROMOTED)
        plans.set_plan_status(plan_id, PlanStatus.PROMOTED, PlanStatus.ROLLED_BACK)

    said = backfill("abandon", plan_id)

    assert said.code == 1
    assert "is rolled back and can't be abandoned any more. What it has published is" in said.err
