"""The release note of a plan, from its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.review.way_back import way_back
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted
from backfill_assets.models.audit import Severity
from backfill_assets.planning.plan.plan import Change, Why
from backfill_assets.planning.plan.request import Category, KeptRows
from backfill_assets.planning.review.release_note import Cause, ConsumerNote, ModelNote, ReleaseNote
from backfill_assets.planning.review.straddling import Straddling, straddling
from backfill_assets.planning.review.touched import ROWS
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.plan.plan import CellWork, ModelPlan
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.state.audits import AuditRow

_LIMIT = 6


def release_note(facts: Facts) -> ReleaseNote:
    """Make the release note of a plan, published or not."""
    plan, back = facts.plan, way_back(facts)
    moved = {move.model: move for move in facts.promoted}
    last = facts.taken_back[-1] if facts.taken_back else None
    return ReleaseNote(
        plan_id=facts.plan_id,
        environment=facts.stored.environment,
        reason=facts.stored.reason.rstrip(". "),
        asked_by=facts.stored.created_by,
        ended=facts.ended,
        active=_published(facts.promoted[0]) if facts.promoted else "",
        over=_published(last) if last else "",
        models=tuple(
            _model(facts, planned, moved.get(planned.model))
            for planned in plan.models
            if planned.cells or (planned.model in moved and moved[planned.model].cells)
        ),
        removed=plan.removed,
        left_alone=tuple((reader.model, reader.because) for reader in plan.untouched),
        consumers=tuple(
            ConsumerNote(
                reader.consumer,
                reader.owner,
                reader.model,
                reader.columns,
                facts.naming.ranges(reader.model, reader.cells, _LIMIT),
            )
            for reader in facts.touched()
        ),
        tests=(*_tests(facts),),
        known=(*_known(facts),),
        back=back.commands,
        until=minute_text(back.until) if back.until else "",
    )


def _published(move: PointerMove) -> str:
    return f"{minute_text(move.at)}{f', by {move.who}' if move.who else ''}"


def _model(facts: Facts, planned: ModelPlan, move: PointerMove | None) -> ModelNote:
    cause, because = _cause(planned), _because(planned)
    if move is None:
        return ModelNote(model=planned.model, because=because, cause=cause)
    columns, gone = facts.columns(move) or {}, facts.gone(move)
    return ModelNote(
        model=planned.model,
        because=because,
        cause=cause,
        published=_ranges(facts, move.model, move.cells - gone),
        differ=_ranges(facts, move.model, move.changed - gone),
        gone=_ranges(facts, move.model, gone),
        columns=tuple(name for name in columns if name != ROWS),
        rows_differ=bool(columns.get(ROWS, gone) - gone),
        boundary=_boundary(facts, planned, move, cause),
    )


def _ranges(facts: Facts, model: str, cells: IntervalSet) -> str:
    return facts.naming.ranges(model, cells, _LIMIT) if cells else ""


def _cause(planned: ModelPlan) -> Cause:
    """Say what a change means for answers that were given before."""
    if planned.change is Change.UNCHANGED or planned.category is Category.METADATA:
        return Cause.CORRECTED
    built_for = {work.why for work in planned.work}
    if planned.change is Change.ADDED:
        return Cause.ADDED
    if planned.category is Category.NON_BREAKING:
        return Cause.ADDED if built_for <= {Why.NEW_SNAPSHOT, Why.GAP} else Cause.CORRECTED
    return Cause.REDEFINED


def _because(planned: ModelPlan) -> str:
    """Say why a model's numbers differ."""
    if planned.change is Change.ADDED:
        return "a new model"
    reasons = [_reason(work) for work in planned.work if work.why is not Why.NEW_SNAPSHOT]
    if planned.change is not Change.UNCHANGED:
        category = planned.category.value if planned.category else planned.change.value
        reason = f": {planned.category_reason}" if planned.category_reason else ""
        reasons.insert(0, f"its definition changed ({category}{reason})")
    return "; ".join(dict.fromkeys(reasons)) or "as before"


def _reason(work: CellWork) -> str:
    """Say why cells were built; what made it certain is over by then."""
    because = "" if work.because.startswith("if ") else work.because
    word = _WORDS[work.why]
    return because if work.why.value in because else f"{word}: {because}" if because else word


_WORDS = {
    Why.NEW_SNAPSHOT: "built anew",
    Why.RESTATED: "restated",
    Why.OWED: "owed since it was declared wrong",
    Why.UPSTREAM_CHANGED: "what it reads has changed",
    Why.LATE_DATA: "rows came late",
    Why.GAP: "filled: it was missing",
}


def _boundary(facts: Facts, planned: ModelPlan, move: PointerMove, cause: Cause) -> Straddling:
    """Find the comparisons that straddle: of the new definition with the old, or of corrected cells with others."""
    cadence = facts.noted.cadences.get(planned.model)
    if cadence is None or cadence.unit is Unit.WHOLE or not move.changed:
        return Straddling()
    new = move.changed if cause is Cause.CORRECTED else move.cells
    history = planned.kept | planned.cells | move.cells
    return straddling(new, history - new, cadence.tz)


def _tests(facts: Facts) -> Iterator[tuple[str, str]]:
    """Say what was tested, each after its model; none for what is about the whole plan."""
    done = {row.batch_id for row in facts.committed}
    results = [row for row in facts.audits if row.audited.batch_id in done]
    passed = sum(row.result.passed for row in results)
    if results:
        of = counted(len(results), "audit result")
        batches = counted(len(done), "batch", "batches")
        yield "", f"{passed:,} of {of} passed, in {batches}, before each commit"
    failed = sum(row.has_failed for row in facts.batches)
    if failed:
        yield "", f"{counted(failed, 'attempt')} failed; nothing of those is published"
    for event in facts.events:
        if event.event == PlanEventKind.AUDITED:
            word, model = "passed" if event.detail["passed"] else "failed", event.detail["model"]
            yield model, f"changed audits {word} on kept cells of {model}"
    for check in facts.checks:
        stands = "passed" if check.passed else "accepted" if check.accepted else "failed"
        yield check.model, f"{check.model}, {check.check}: {stands} ({check.text})"


def _known(facts: Facts) -> Iterator[tuple[str, str]]:
    """Name what differs, or is not as it should be, and was published all the same, each after its model."""
    for accepted in facts.accepted:
        found = f"{accepted.model}, {accepted.check}: {accepted.text}"
        yield accepted.model, f"{found}; accepted by {accepted.who}: {accepted.reason}"
    done = {row.batch_id for row in facts.committed}
    for row in facts.audits:
        if row.audited.batch_id in done and not row.result.passed:
            yield row.audited.model, _warning(row)
    for planned in facts.plan.models:
        for text in dict.fromkeys(_left(facts, planned)):  # a note may say the same of a cutoff
            yield planned.model, f"{planned.model}: {text}"


def _left(facts: Facts, planned: ModelPlan) -> Iterator[str]:
    """Name what a plan leaves of a model as it was, and what it says of it."""
    if planned.kept_before is not None:
        yield planned.kept_before.words(planned.model)
    if planned.waiting:
        cells = facts.naming.ranges(planned.model, planned.waiting, _LIMIT)
        yield f"left out, since what they read is not ready: {cells}"
    if planned.kept_rows is not None:
        word = "taken over" if planned.kept_rows is KeptRows.CARRY else "gone on purpose"
        yield f"rows that only history has are {word}"
    yield from planned.notes


def _warning(row: AuditRow) -> str:
    result = row.result
    word = "warning" if result.severity is Severity.WARNING else "audit"
    where = f" in {', '.join(result.cells[:_LIMIT])}" if result.cells else ""
    return f"{row.audited.model}: {word} {result.audit}: found {result.found}, allowed {result.allowed}{where}"
