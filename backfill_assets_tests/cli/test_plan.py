from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from backfill_assets.cli import plan_view
from backfill_assets_tests.toy import FIRST, LAST

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def test_a_plan_ends_with_2_when_there_is_something_to_do(backfill: Backfill):
    ended = backfill("plan", "--select", "toy.sales")

    assert ended.code == 2
    assert ended.lines[0].startswith("Plan p")
    assert ended.lines[-3] == "Nothing has been written."
    assert ended.lines[-2].startswith("Next: backfill apply p")
    assert ended.lines[-1] == (
        "prod: 1 model, 7 cells certain, 0 more if their input changes, 2 batches. "
        "Until then: 56 cells missing, 0 stale."
    )


def test_a_plan_ends_with_0_when_there_is_nothing_to_do(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", FIRST, LAST)

    ended = backfill("plan", "--select", "toy.sales")

    assert ended.code == 0
    assert ended.out == "prod: nothing to do: it runs what is loaded, and nothing is owed.\n"


def test_an_empty_plan_is_not_kept(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", FIRST, LAST)
    backfill("plan", "--select", "toy.sales")

    assert "there is none yet" in backfill("show", "p").err


def test_one_plan_is_text_json_and_markdown(backfill: Backfill):
    made = backfill("plan", "--select", "toy.sales", "--json").json

    assert made["models"][0]["model"] == "toy.sales"
    assert backfill("show", made["plan_id"], "--json").json["plan"] == made
    shown = backfill("show", made["plan_id"]).out
    assert shown.startswith(f"Plan {made['plan_id']} for prod (protected)")
    assert "Status    proposed" in shown
    marked = backfill("show", made["plan_id"], "--markdown").out
    assert marked.startswith(f"## Plan `{made['plan_id']}` for `prod`")


def test_a_restatement_is_planned_for_what_was_published(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", FIRST, LAST)

    ended = backfill(
        *("plan", "--select", "toy.sales", "--restate", "toy.sales:2024-01-29..2024-01-30"),
        *("--reason", "counted twice"),
    )

    assert ended.code == 2
    assert "Reason    counted twice" in ended.lines
    assert "Asked     restate toy.sales 2024-01-29..2024-01-30; only toy.sales" in ended.lines
    assert any("2024-01-29..2024-01-30 (2)  restated" in line for line in ended.lines)


def test_a_new_environment_is_planned_for_without_being_made(backfill: Backfill):
    ended = backfill("plan", "dev_refunds", "--select", "toy.sales")

    assert ended.lines[0].startswith("Plan p")
    assert " for dev_refunds (not protected)" in ended.lines[0]
    assert ended.lines[-4] == (
        "dev_refunds does not exist yet: applying makes it, and it follows prod."
    )
    assert [row["name"] for row in backfill("envs", "--json").json] == ["prod"]


def test_why_a_cell_is_not_in_a_plan_is_answered_without_making_one(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", FIRST, LAST)

    ended = backfill("why-not", "toy.sales", "2024-01-30")

    assert ended.code == 0
    assert "not planned: the plan does nothing with the model: its logic is what" in ended.lines[0]
    assert "there is none yet" in backfill("show", "p").err


def test_why_a_cell_is_not_in_a_plan_that_was_made(backfill: Backfill):
    made = backfill("plan", "--select", "toy.sales", "--start", "2024-02-01", "--json").json

    ended = backfill("why-not", "toy.sales", "2024-01-31..2024-02-01", "--plan", made["plan_id"])

    assert ended.lines == [
        "toy.sales 2024-02-01: planned: it is in the plan: new snapshot",
        "toy.sales 2024-01-31: not planned: before 2024-02-01, where the requested range starts",
        f"plan {made['plan_id']}: 2 reasons, 1 of them why cells are left out.",
    ]


@pytest.mark.parametrize("name", ["Dev", "plan:p1", "dev-refunds", ""])
def test_a_name_that_no_environment_can_have_is_refused(backfill: Backfill, name: str):
    ended = backfill("plan", name)

    assert (ended.code, ended.out) == (1, "")
    assert (
        f"{name!r} is not a valid name of an environment; a name has up to 40 lower-case"
        in ended.err
    )


WRONG = {
    ("--select", "toy.sale"): "did you mean 'toy.sales'?",
    ("--select", "tag:nope=*"): "selects no model",
    ("--restate", "toy.sale"): "there is no model or source 'toy.sale'",
    ("--restate", "toy.sales:soon"): "'soon' is neither a date nor an instant",
    ("--start", "2030-01-01"): "lies in the future",
    (
        "--select",
        "toy.sales",
        "--start",
        "2023-01-01",
        "--end",
        "2023-01-31",
    ): "lies wholly outside the model's life",
    ("--cutoff", "2024-01-30"): "say why with --reason",
    ("--where", "amount > 0"): "add --restate MODEL",
    ("--effective-from", "2024-01-30"): "add --forward-only",
    ("--category", "toy.sales=magic"): "expected MODEL=ONE of breaking",
    ("--strategy", "toy.sales"): "expected MODEL=ONE of full-rebuild",
    ("--zzzz",): "No such option: --zzzz (see `backfill plan --help`)",
}


@pytest.mark.parametrize(("asked", "said"), WRONG.items())
def test_what_cannot_be_planned_is_one_line_and_ends_with_1(
    backfill: Backfill, asked: tuple[str, ...], said: str
):
    ended = backfill("plan", *asked)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert said in ended.err
    assert "there is none yet" in backfill("show", "p").err


@pytest.mark.parametrize(("no_color", "coloured"), [(True, False), (False, True)])
def test_a_terminal_is_coloured_unless_somebody_does_not_want_it(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, *, no_color: bool, coloured: bool
):
    written = io.StringIO()
    console = Console(
        file=written, force_terminal=True, color_system="standard", no_color=no_color, width=100
    )
    monkeypatch.setattr(plan_view, "out", console)

    backfill("plan", "--select", "toy.sales")

    assert ("\x1b[1;3" in written.getvalue() or "\x1b[33m" in written.getvalue()) == coloured


def test_the_file_of_a_plan_is_the_plan(backfill: Backfill, tmp_path: Path):
    file = tmp_path / "plan.json"

    made = backfill("plan", "--select", "toy.sales", "--out", str(file), "--json").json

    assert json.loads(file.read_text()) == made


def test_a_plan_whose_file_cannot_be_written_is_kept_under_its_id(
    backfill: Backfill, tmp_path: Path
):
    ended = backfill("plan", "--out", str(tmp_path / "nowhere" / "plan.json"))

    assert ended.code == 1
    assert "plan.json can't be written: No such file or directory. Plan p" in ended.err
    plan_id = ended.err.partition("Plan ")[2].split()[0]
    assert backfill("show", plan_id).code == 0


def test_a_plan_that_goes_further_back_than_anybody_reads_proposes_the_smaller_window(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")

    shown = backfill("plan", "--select", "toy.sales_of_three_days").out

    assert (
        "no declared consumer reads cells before 2024-02-02: with --start 2024-02-02 2 of 7 cells are built"
        in shown
    )
