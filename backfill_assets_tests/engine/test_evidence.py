"""Every plan leaves a folder that proves what happened; without it nothing is published."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.plans import plan_verbs, publishing
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.engine.plans.promotion import publish_built
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review import evidence, parts
from backfill_assets.engine.review.evidence import (
    EvidenceNotWrittenError,
    facts_of,
    write_again,
    write_owed_evidence,
)
from backfill_assets.engine.review.lineage import lineage_events
from backfill_assets.engine.review.parts import made_parts
from backfill_assets.errors import RequestError
from backfill_assets.evidence.manifest import (
    EXPECTED,
    EXPIRED,
    MANIFEST,
    REFUSED,
    SEAL,
    UNFINISHED,
    WATCHED,
)
from backfill_assets.evidence.summary import summary
from backfill_assets.evidence.verify import Trouble, verify
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.render.report.content import Report
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.files.text_folder import TextFolder
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.dying import MortalStore, before_call, doomed, mortal
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    WHERE,
    a_correction,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import World, row
from backfill_assets_tests.state.building import open_promotions

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.intervals import IntervalSet
    from backfill_assets.planning.plan.plan import Plan

SCHEMAS = Path(__file__).parents[1] / "vectors" / "openlineage"
REPORT = Consumer(
    name="weekly report",
    kind="dashboard",
    owner="team:finance",
    reads=[Reading(COSTS, columns=("total",), days_back=30)],
)
READ = build_graph([visits(), costs()], [a_source()], [REPORT])


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def folder_of(world: World, plan: Plan | None = None) -> Path:
    folder = Path(world.root) / "evidence"
    return folder if plan is None else folder / plan.plan_id


def part(world: World, plan: Plan, name: str) -> Any:  # noqa: ANN401
    text = (folder_of(world, plan) / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def corrected(world: World, plans: Plans) -> Plan:
    """A published plan that corrects the 8th."""
    world.land(a_source(), *ROWS)
    world.fill(READ)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    return plans.published(READ, restate=(Restatement(VISITS),), reason="clicks came twice")


def test_a_promoted_plan_leaves_every_part_and_all_is_as_it_was_written(world: World, plans: Plans):
    plan = corrected(world, plans)

    found = verify(folder_of(world))

    assert found.findings == ()
    assert {file.name for file in folder_of(world, plan).iterdir()} == {*EXPECTED, MANIFEST, SEAL}
    assert part(world, plan, MANIFEST)["lacks"] == {}
    assert part(world, plan, MANIFEST)["ended"] == "promoted"
    assert part(world, plan, "plan.json") == json.loads(world.store.plans.get(plan.plan_id).content)


def test_what_was_expected_of_evidence_is_among_its_parts():
    assert {*EXPECTED} <= {*(name for name, _ in parts.PARTS), parts.REPORT}


def test_the_folder_says_what_changed_who_reads_it_and_how_to_go_back(world: World, plans: Plans):
    plan = corrected(world, plans)

    (publication,) = part(world, plan, "outputs.json")["publications"]
    models = {model["model"]: model for model in publication["models"]}
    assert models[VISITS]["differ"] == ["2024-01-08"]
    assert models[VISITS]["differing_columns"] == {"cost": ["2024-01-08"]}
    assert models[VISITS]["published_cells"] == 4
    (reader,) = part(world, plan, "consumers.json")["consumers"]
    assert (reader["consumer"], reader["columns"]) == ("weekly report", ["total"])
    assert reader["cells"] == ["2024-01-08"]
    assert f"    backfill rollback {plan.plan_id}\n" in part(world, plan, "way_back.md")
    assert "Until 2024-02-10 00:00 UTC" in part(world, plan, "way_back.md")
    assert verify(folder_of(world, plan)).findings == ()


def test_what_was_expected_stands_beside_what_was_found(world: World, plans: Plans):
    plan = corrected(world, plans)

    rules = part(world, plan, "contract.json")["rules"]

    said = {(rule["model"], rule["rule"]): rule["found"] for rule in rules}
    expected = "only cells 2024-01-07..2024-01-10 (4) differ"
    assert said[VISITS, expected] == "found 1 cell that differs"
    assert all(rule["passed"] for rule in rules)


def test_the_differences_are_kept_cell_by_cell_and_column_by_column(world: World, plans: Plans):
    plan = corrected(world, plans)

    visits_, *_ = part(world, plan, "diff.json")["models"]

    assert visits_["model"] == VISITS
    at = visits_["cells"].index("2024-01-08")
    assert visits_["rows_changed"][at] == 1
    assert [*visits_["columns"]] == ["cost"]
    cost = visits_["columns"]["cost"]
    assert (cost["changed"][at], cost["old_sum"][at], cost["new_sum"][at]) == (1, "8.00", "99.00")
    assert (visits_["differing"], visits_["differing_columns"]) == (["2024-01-08"], ["cost"])


def test_cells_that_readers_have_lost_are_none_that_were_published(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    short = Daily(start="2024-01-07", end="2024-01-08")
    plan = plans.published(a_graph(visits(cadence=short), costs(cadence=short)))

    (publication,) = part(world, plan, "outputs.json")["publications"]
    of = next(each for each in publication["models"] if each["model"] == VISITS)
    assert (of["published"], of["published_cells"]) == (["2024-01-07..2024-01-08"], 2)
    assert (of["differ"], of["differing_cells"]) == (["2024-01-08"], 1)
    assert (of["gone"], of["other_rows"]) == (["2024-01-09..2024-01-10"], [])
    assert (
        f"Changed   {VISITS}: 2024-01-08 (1 of 2 cells differ in cost); no longer published: "
        "2024-01-09..2024-01-10"
    ) in summary(folder_of(world, plan))
    note = part(world, plan, "release_note.md")
    assert "  - different: 2024-01-08, in cost\n" in note
    assert "  - built and published again: 2024-01-07..2024-01-08 (2)\n" in note
    assert "  - no longer published: 2024-01-09..2024-01-10 (2)\n" in note


def test_of_a_plan_that_is_built_the_cells_that_differ_are_known_also_of_a_table_that_is_kept(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    sql = f"SELECT ds, id, CAST(cost + 1 AS DECIMAL(18,2)) AS cost FROM web.events {WHERE}"  # noqa: S608
    changed_cost = a_graph(a_model(sql=sql, cadence=CADENCE), costs())
    first = plans.make(changed_cost)
    plans.apply(changed_cost, first)
    abandon_plan(plans.project(changed_cost), first)
    again = plans.make(changed_cost)
    plans.apply(changed_cost, again)
    write_again(InProject(project=plans.project(changed_cost)), again.plan_id)

    kept, *_ = part(world, again, "diff.json")["models"]
    assert again.model(VISITS) is not None
    assert not again.models[0].cells, "its table is there already"
    assert (kept["model"], kept["differing_cells"]) == (VISITS, 4)
    assert kept["differing_columns"] == ["cost"]


def test_ten_lines_answer_what_is_asked_of_a_plan_later(world: World, plans: Plans):
    plan = corrected(world, plans)

    lines = summary(folder_of(world, plan))

    told = "\n".join(lines)
    assert told.count("\n") < 10
    assert "clicks came twice" in told.splitlines()[0]
    assert f"Changed   {VISITS}: 2024-01-08 (1 of 4 cells differ in cost)" in lines
    assert "weekly report (team:finance) on web.costs" in told
    assert "5 of 5 results passed" in told
    assert "Accepted  by ana on 2024-01-11 00:00 UTC" in told
    assert (
        f"backfill rollback {plan.plan_id} or backfill undo {plan.plan_id}, until 2024-02-10"
        in told
    )
    assert "Evidence  as it was written" in told


def test_all_inputs_of_every_batch_are_pinned(world: World, plans: Plans):
    plan = corrected(world, plans)

    read = part(world, plan, "inputs.json")

    by_model = {batch["model"]: batch["inputs"] for batch in read["batches"]}
    assert [pin["upstream"] for pin in by_model[VISITS]] == ["web.events"]
    assert {pin["upstream"] for pin in by_model[COSTS]} == {VISITS}
    assert read["source_delta_versions"] == {"web.events": [1]}


def test_strategy_checks_and_audits_are_told_with_their_numbers(world: World, plans: Plans):
    plan = corrected(world, plans)

    told = part(world, plan, "audits.json")

    assert all(found["passed"] and found["committed"] for found in told["batches"])
    assert {check["check"] for check in told["checks"] if check["decided_by"] == "strategy"} == {
        "counts fit",
        "neighbours equal",
    }


def test_each_manifest_names_the_one_before(world: World, plans: Plans):
    first = corrected(world, plans)
    second = plans.published(MORE)
    third = plans.make(OLD)
    abandon_plan(plans.project(OLD), third)

    chain = [part(world, plan, MANIFEST) for plan in (first, second, third)]

    assert [manifest["place"] for manifest in chain] == [1, 2, 3]
    assert [manifest["previous"]["plan_id"] for manifest in chain[1:]] == [
        first.plan_id,
        second.plan_id,
    ]
    assert chain[2]["ended"] == "abandoned"
    assert verify(folder_of(world)).findings == ()


@pytest.mark.parametrize("take_back", [rollback_plan, undo_plan])
def test_a_plan_that_is_taken_back_keeps_the_manifest_of_its_promotion(
    world: World, plans: Plans, take_back: Callable[..., Outcome]
):
    plan = corrected(world, plans)
    promoted = (folder_of(world, plan) / MANIFEST).read_bytes()

    take_back(plans.project(READ), plan)

    assert (folder_of(world, plan) / "manifest-1.json").read_bytes() == promoted
    assert part(world, plan, MANIFEST)["ended"] in ("rolled back", "undone")
    kinds = [found["kind"] for found in part(world, plan, "outputs.json")["publications"]]
    assert kinds == ["promote", "rollback" if take_back is rollback_plan else "undo"]
    assert verify(folder_of(world)).findings == ()


def test_a_plan_whose_batches_fail_leaves_evidence_of_why(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    strict = a_graph(visits(audits=[accepted_range("cost", None, 8)]), costs())
    plan = plans.make(strict, restate=(Restatement(VISITS),))

    assert plans.apply(strict, plan).left

    manifest = part(world, plan, MANIFEST)
    assert manifest["ended"] == "stopped"
    assert "web.visits" in manifest["why"]
    failed = [found for found in part(world, plan, "audits.json")["batches"] if not found["passed"]]
    assert failed
    assert not any(found["committed"] for found in failed)
    told = "\n".join(summary(folder_of(world, plan)))
    assert (
        "0 of 0 results passed; failed, and nothing was committed: accepted_range_cost of web"
        in told
    )
    assert [batch["status"] for batch in part(world, plan, "timeline.json")["batches"]] == [
        "failed"
    ]
    assert "Nothing of this plan is published: it is stopped" in part(
        world, plan, "release_note.md"
    )


def test_models_that_readers_have_no_more_are_told_by_the_summary_and_the_report(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    left = a_graph(OLD.models[VISITS])
    plan = plans.published(left)
    assert plan.removed == (COSTS,)

    gone = f"{COSTS}: removed; readers have it no more"
    assert f"Changed   {gone}" in summary(folder_of(world, plan))
    evidence, _ = made_parts(facts_of(InProject(project=plans.project(left)), plan.plan_id))
    assert [*Report(evidence).changed] == [gone]


def test_cells_of_a_model_that_is_declared_no_more_at_the_promotion_are_named_as_they_were(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(COSTS, "2024-01-07", "2024-01-08"),))
    assert not plans.apply(OLD, plan).left

    plans.promote(a_graph(OLD.models[VISITS]), plan)

    (built,) = part(world, plan, "outputs.json")["built"]
    assert (built["model"], built["cells"]) == (COSTS, ["2024-01-07..2024-01-08"])


def test_what_is_told_of_a_plan_that_was_stopped_and_went_on_is_how_it_stands(
    world: World, plans: Plans
):
    strict = a_graph(visits(audits=[accepted_range("cost", None, 50)]), costs())
    world.begin(strict, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(strict, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    run = InProject(project=plans.project(strict))
    assert plans.apply(strict, plan).left
    assert facts_of(run, plan.plan_id).ended == "stopped"

    world.clock.now += timedelta(minutes=1)
    world.land(a_source(), *changed(row(8, 1, 49.0)))
    assert not plans.apply(strict, plan).left

    facts = facts_of(run, plan.plan_id)
    assert facts.ended == "built"
    assert Report(made_parts(facts)[0]).verdict.startswith("Built, not published")
    write_again(run, plan.plan_id)
    assert part(world, plan, MANIFEST)["ended"] == "built"


def test_a_promotion_that_is_refused_leaves_evidence_of_why(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)

    def refused(*_: object) -> None:
        raise RequestError(found="the books are closed")

    monkeypatch.setattr("backfill_assets.engine.plans.stage_run.publish_built", refused)
    with pytest.raises(RequestError, match="books"):
        plans.promote(MORE, plan)

    assert part(world, plan, MANIFEST)["ended"] == "refused"
    assert part(world, plan, MANIFEST)["why"] == "the books are closed"
    assert publish_built is not refused


def test_evidence_that_cannot_be_written_keeps_a_plan_from_being_published(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    before = world.store.environments.pointers(PROD), world.rows(VISITS)
    folder_of(world).write_text("a file lies where the folder should be", encoding="utf-8")

    with pytest.raises(EvidenceNotWrittenError, match=rf"Nothing was published.*{plan.plan_id}"):
        plans.promote(MORE, plan)

    assert (world.store.environments.pointers(PROD), world.rows(VISITS)) == before
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.BUILT
    assert open_promotions(world.store) == []
    folder_of(world).unlink()
    plans.promote(MORE, plan)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert verify(folder_of(world)).findings == ()


def test_a_disk_that_is_full_at_the_copies_of_a_restatement_changes_nothing(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    plan = a_correction(world, plans)
    before = world.rows(VISITS), world.head(VISITS)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("backfill_assets.warehouse.files.text_folder.TextFolder.write", full)
        with pytest.raises(EvidenceNotWrittenError, match="No space left on device"):
            plans.promote(OLD, plan)

    assert (world.rows(VISITS), world.head(VISITS)) == before
    plans.promote(OLD, plan)
    assert world.rows(VISITS) != before[0]


def test_going_back_is_possible_without_room_for_evidence_which_is_written_later(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    plan = corrected(world, plans)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("backfill_assets.warehouse.files.text_folder.TextFolder.write", full)
        rollback_plan(plans.project(READ), plan)
    assert [record.ended for record in world.store.evidence.owed()] == ["rolled back"]

    write_again(InProject(project=plans.project(READ)), plan.plan_id)

    assert world.store.evidence.owed() == []
    assert part(world, plan, MANIFEST)["ended"] == "rolled back"
    assert verify(folder_of(world)).findings == ()


def before_the_pointers(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store.publications, "publish", store.die)


def after_the_pointers(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_verbs, "write_owed_evidence", store.die)


def before_the_chain(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store.evidence, "keep", store.die)


def after_the_chain(store: MortalStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store.evidence, "mark_written", store.die)


@pytest.mark.parametrize(
    "death", [before_the_pointers, after_the_pointers, before_the_chain, after_the_chain]
)
def test_evidence_of_a_promotion_that_dies_is_completed_by_the_next_operation(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, death: Callable[..., None]
):
    plan = a_correction(world, plans)
    with doomed(world, death, monkeypatch) as process:
        Plans(process).promote(OLD, plan)
    incomplete = verify(folder_of(world, plan)).findings
    world.clock.pass_lease()
    world.land(a_source(), *changed(row(8, 1, 99.0), row(9, 1, 5.0)))
    world.fill(OLD)

    other = plans.make(OLD, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),))
    plans.apply(OLD, other)

    assert {found.trouble for found in incomplete} <= {Trouble.INCOMPLETE, Trouble.CHANGED}
    assert incomplete or death is after_the_chain
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED
    assert part(world, plan, MANIFEST)["ended"] == "promoted"
    assert verify(folder_of(world)).findings == ()


@pytest.mark.parametrize("asleep_at", ["keep", "seal_of"])
def test_a_process_that_sleeps_for_longer_than_its_lease_breaks_no_folder_and_no_chain(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch, asleep_at: str
):
    """While it sleeps, another process completes what it was at, goes on with the plan, and with a second one."""
    plan, other = corrected(world, plans), plans.make(MORE)

    def meanwhile() -> None:
        world.clock.pass_lease()
        awake = Plans(replace(world, store=mortal(world)))
        write_owed_evidence(InProject(project=awake.project(READ)))
        write_again(InProject(project=awake.project(READ)), other.plan_id)
        world.clock.now += timedelta(seconds=1)
        evidence.record_end(
            InProject(project=awake.project(READ)), plan.plan_id, WATCHED, "a cell lacks"
        )

    place = world.store.evidence if asleep_at == "keep" else evidence
    before_call(place, asleep_at, meanwhile, monkeypatch)
    rollback_plan(plans.project(READ), plan)

    assert part(world, plan, MANIFEST)["ended"] == WATCHED
    assert world.store.evidence.owed() == []
    assert verify(folder_of(world)).findings == ()


def test_a_later_end_of_a_plan_waits_until_the_one_before_it_can_be_written(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    plan = corrected(world, plans)
    real, full = TextFolder.write, iter([OSError(28, "No space left on device")])

    def write(folder: TextFolder, texts: dict[str, bytes]) -> None:
        for error in full:
            raise error
        real(folder, texts)

    monkeypatch.setattr(TextFolder, "write", write)
    run = InProject(project=plans.project(READ))
    for ended in (WATCHED, REFUSED):
        world.store.evidence.owe(plan.plan_id, ended)

    write_owed_evidence(run)
    assert [record.ended for record in world.store.evidence.owed()] == [WATCHED, REFUSED]

    write_owed_evidence(run)
    assert part(world, plan, MANIFEST)["ended"] == REFUSED
    assert verify(folder_of(world)).findings == ()


def test_before_pointers_move_the_folder_says_that_they_are_about_to(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    seen: list[tuple[str, bool]] = []
    real = publishing.describe_moves

    def look(*given: Any) -> None:  # noqa: ANN401
        at = world.pointer(VISITS).version
        seen.append((part(world, plan, MANIFEST)["ended"], at == plan.models[0].old_version))
        real(*given)

    monkeypatch.setattr(publishing, "describe_moves", look)
    plans.promote(MORE, plan)

    assert seen == [(UNFINISHED, True)]


def test_written_again_evidence_is_the_same_byte_for_byte(world: World, plans: Plans):
    plan = corrected(world, plans)
    written = {file.name: file.read_bytes() for file in folder_of(world, plan).iterdir()}
    for name in ("plan.md", MANIFEST, "audits.json"):
        (folder_of(world, plan) / name).unlink()
    (folder_of(world, plan) / "timeline.json").write_text("edited", encoding="utf-8")
    (folder_of(world, plan) / "added").write_text("", encoding="utf-8")
    world.clock.pass_lease()

    # By declarations that know no consumer: what was noted at the plan's end counts.
    write_again(InProject(project=plans.project(OLD)), plan.plan_id)

    assert {file.name: file.read_bytes() for file in folder_of(world, plan).iterdir()} == written
    assert len(world.store.evidence.of_plan(plan.plan_id)) == 1


def test_a_plan_that_has_not_ended_leaves_evidence_on_request(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)

    write_again(InProject(project=plans.project(OLD)), plan.plan_id)

    assert part(world, plan, MANIFEST)["ended"] == "proposed"
    assert verify(folder_of(world)).findings == ()


def test_evidence_that_lacks_a_part_says_so_and_stops_no_promotion(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    def broken(_: object) -> str:
        raise ValueError("no words")

    world.begin(OLD, *ROWS)
    others = tuple(of for of in parts.PARTS if of[0] != "plan.md")
    monkeypatch.setattr(parts, "PARTS", (("plan.md", broken), *others))

    plan = plans.published(MORE)

    (found,) = verify(folder_of(world, plan)).findings
    assert (found.trouble, found.text) == (Trouble.INCOMPLETE, "ValueError: no words")


def test_a_plan_that_late_data_made_leaves_evidence_too(world: World, plans: Plans):
    graph = build_graph([visits(late_window=4), costs(late_window=4)], [a_source()], [REPORT])
    world.land(a_source(), *ROWS)
    refresh_late(world.open(graph))  # the first look
    world.fill(graph)
    world.land(a_source(), *ROWS, row(8, 2, 3.0))

    done = refresh_late(world.open(graph))

    lines = summary(folder_of(world) / str(done.plan_id))
    assert "Accepted  by late data on 2024-01-11 00:00 UTC" in "\n".join(lines)
    assert f"Changed   {VISITS}: 2024-01-08 (1 of 1 cells differ)" in lines
    assert verify(folder_of(world)).findings == ()


def test_evidence_is_for_its_owner_alone(world: World, plans: Plans):
    plan = corrected(world, plans)

    modes = {file.stat().st_mode & 0o777 for file in folder_of(world, plan).iterdir()}

    assert modes == {0o600}


def test_lineage_events_are_valid_and_each_run_starts_and_ends_once(world: World, plans: Plans):
    plan = corrected(world, plans)
    rollback_plan(plans.project(READ), plan)
    lines = part(world, plan, "openlineage.ndjson").splitlines()
    events = [json.loads(line) for line in lines]

    for event in events:
        assert [error.message for error in _VALIDATOR.iter_errors(event)] == []
        for facet in _facets(event):
            assert [error.message for error in _facet_errors(facet)] == []

    by_run: dict[str, list[str]] = {}
    for event in events:
        by_run.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert [*by_run.values()] == [["START", "COMPLETE"]] * 5  # plan, two models, two publications
    built = next(event for event in events if event["job"]["name"] == COSTS)
    assert [read["name"] for read in built["inputs"]] == [VISITS]
    assert [field["name"] for field in built["outputs"][0]["facets"]["schema"]["fields"]] == [
        "ds",
        "total",
    ]


def test_lineage_tells_what_failed_and_what_was_given_up(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    strict = a_graph(visits(audits=[accepted_range("cost", None, 8)]), costs())
    plan = plans.make(strict, restate=(Restatement(VISITS),))
    plans.apply(strict, plan)

    def ends() -> list[str]:
        lines = part(world, plan, "openlineage.ndjson").splitlines()
        return [json.loads(line)["eventType"] for line in lines]

    assert ends() == ["START", "FAIL", "START", "FAIL"]
    abandon_plan(plans.project(strict), plan)
    assert ends() == ["START", "ABORT", "START", "FAIL"]


def test_lineage_calls_no_model_failed_whose_failed_cells_were_built_by_other_batches():
    at = datetime(2024, 1, 11, tzinfo=UTC)

    def batch(cells: IntervalSet, delta_version: int | None = None) -> Any:  # noqa: ANN401
        status = "failed" if delta_version is None else "committed"
        of = {"model": VISITS, "inputs": (), "error": "the disk is full", "status": status}
        of["has_failed"] = status == "failed"
        times = {"started_at": at, "finished_at": at}
        return SimpleNamespace(stretches=cells, delta_version=delta_version, **of, **times)

    def outcome(*batches: Any) -> str:  # noqa: ANN401
        facts: Any = SimpleNamespace(
            plan_id="p1",
            ended="promoted",
            at=at,
            batches=batches,
            moves=(),
            promoted=(),
            stored=SimpleNamespace(created_at=at, environment=PROD, cells={}),
            noted=SimpleNamespace(schemas={}),
        )
        return [*lineage_events(facts)][-1]["eventType"]

    assert outcome(batch(days(7, 8)), batch(days(7), 1)) == "FAIL"
    assert outcome(batch(days(7, 8)), batch(days(7), 1), batch(days(8, 9), 2)) == "COMPLETE"


def _schema(name: str) -> Any:  # noqa: ANN401
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


_STORE = Registry().with_resources(
    [(found["$id"], Resource.from_contents(found)) for found in map(_schema, (
        "OpenLineage", "ParentRunFacet", "SchemaDatasetFacet", "DatasetVersionDatasetFacet",
        "JobTypeJobFacet", "ErrorMessageRunFacet",
    ))]
)  # fmt: skip
_VALIDATOR = Draft202012Validator(
    _schema("OpenLineage"),
    registry=_STORE,
    format_checker=Draft202012Validator.FORMAT_CHECKER,
)


def _facets(event: Any) -> list[Any]:  # noqa: ANN401
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    return [facet for holder in holders for facet in holder["facets"].values()]


def _facet_errors(facet: Any) -> Any:  # noqa: ANN401
    """Hold a facet against the very schema that it names."""
    return Draft202012Validator({"$ref": facet["_schemaURL"]}, registry=_STORE).iter_errors(facet)


def test_no_operation_waits_for_evidence_that_nothing_owes(
    world: World, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    corrected(world, plans)

    def never(*_: object) -> None:
        raise AssertionError("nothing is owed")

    monkeypatch.setattr(evidence, "_write_owed", never)
    plans.apply(MORE, plans.make(MORE))


def test_a_plan_whose_time_is_over_leaves_its_evidence_once(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    run = InProject(project=plans.project(OLD))

    evidence.leave_expired(run)
    assert not folder_of(world, plan).exists()
    world.clock.now = plan.expires_at + timedelta(seconds=1)
    evidence.leave_expired(run)
    evidence.leave_expired(run)

    (record,) = world.store.evidence.of_plan(plan.plan_id)
    assert record.ended == "expired"
    lineage = part(world, plan, "openlineage.ndjson").splitlines()
    assert [json.loads(line)["eventType"] for line in lineage] == ["START", "ABORT"]
    assert verify(folder_of(world)).findings == ()


def test_a_proposal_expires_whatever_was_said_of_it_meanwhile(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    world.clock.now = plan.expires_at - timedelta(days=1)
    world.store.queue.control_plan(plan.plan_id, Control.PAUSED, "ana@work")

    world.clock.now = plan.expires_at + timedelta(seconds=1)
    evidence.leave_expired(InProject(project=plans.project(OLD)))

    assert [each.ended for each in world.store.evidence.of_plan(plan.plan_id)] == [EXPIRED]
