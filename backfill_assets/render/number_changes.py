"""Write why a number changed, for people and as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.instants import minute_text
from backfill_assets.planning.plan.plan_json import PlanFormatError, read_plan
from backfill_assets.planning.review.number_changes import CauseKind
from backfill_assets.render.plan_words import asked_text
from backfill_assets.snapshots.batch import EMPTY, GAP, PLANNED
from backfill_assets.state.plans import UnknownPlanError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from backfill_assets.planning.review.number_changes import Cause, Happened, HistoryStep, Part
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.state.store import StateReader

_SHOWN = 8
_MOVES = {"promote": "promotion", "rollback": "rollback", "undo": "undo"}
_WORDS = {
    CauseKind.FIRST: "published for the first time",
    CauseKind.REMOVED: "not published any more",
    CauseKind.ROLLBACK: "what was published before is read again",
    CauseKind.UNDO: "what was published before is read again in these cells",
    CauseKind.LOGIC: "the logic of {subject} changed",
    CauseKind.LATE: "rows of {subject} changed{cells}",
    CauseKind.READ_LATER: "{subject} was read at a newer version; it is not observed, so what "
    "changed in it is not recorded",
    CauseKind.UPSTREAM_FILLED: "cells of {subject} were filled{cells}",
    CauseKind.UPSTREAM_REMOVED: "cells of {subject} went{cells}",
    CauseKind.EARLIER_CELLS: "its own earlier cells changed{cells}",
    CauseKind.EMPTIED: "recorded as empty, not computed",
    CauseKind.ADOPTED: "adopted from a table of another system",
    CauseKind.COMPUTED: "computed by {subject} for the first time",
    CauseKind.MOVED: "a merge of other cells moved rows here or away",
    CauseKind.SAME: "the recorded logic and inputs are the same: a volatile query, other libraries, "
    "or a source that changed unseen",
    CauseKind.UNKNOWN: "what changed in {subject} is not known",
}


def plans_told(store: StateReader, steps: tuple[HistoryStep, ...]) -> dict[str, str]:
    """Say of each plan that the steps name why it was made, and what it was asked."""
    named = dict.fromkeys(step.plan_id for step in steps if step.plan_id)
    return {plan_id: _plan_told(store, plan_id) for plan_id in named}


def _plan_told(store: StateReader, plan_id: str) -> str:
    try:
        stored = store.plans.get(plan_id)
        request_text = asked_text(read_plan(stored.content).request)
    except UnknownPlanError:
        return "which is no longer in the state"
    except PlanFormatError:
        return ""
    return "; ".join(text for text in (stored.reason, request_text) if text)


def step_text(step: HistoryStep, told: Mapping[str, str]) -> str:
    """Name a step: when, what, by whom and why."""
    by = f" by {step.who}" if step.who else ""
    return f"{minute_text(step.at)}, {_what(step, told)}{by}"


def _what(step: HistoryStep, plan_texts: Mapping[str, str]) -> str:
    plan = ""
    if step.plan_id:
        why = plan_texts.get(step.plan_id) or step.why
        plan = f" of plan {step.plan_id}" + (f" ({why})" if why else "")
    if step.batch_id:
        words = {GAP: ", gap fill", EMPTY: ", recorded as empty", PLANNED: ""}
        return f"batch {step.batch_id[:_SHOWN]}{plan}{words.get(step.why, f', {step.why}')}"
    if step.what in _MOVES:
        return f"{_MOVES[step.what]}{plan}"
    return "a change of the pointer that no batch and no plan recorded"


def cause_text(cause: Cause, naming: Naming) -> str:
    """Write one cause."""
    cells = f" in {naming.ranges(cause.subject, cause.cells)}" if cause.cells else ""
    text = _WORDS[cause.kind].format(subject=cause.subject, cells=cells)
    return f"{text} ({cause.note})" if cause.note else text


def causes_text(happened: Happened, naming: Naming) -> str:
    """Write the causes of a step; say of several causes that they can't be told apart."""
    texts = [cause_text(cause, naming) for cause in happened.causes]
    if len(texts) <= 1:
        return "".join(texts)
    return f"together, not told apart: {'; '.join(texts)}"


def part_texts(
    part: Part, steps: tuple[HistoryStep, ...], told: Mapping[str, str], naming: Naming, where: str
) -> tuple[str, ...]:
    """Write a part: a line per step, its causes behind it; `where` names its cells, if not all."""
    return tuple(
        f"{step_text(steps[each.step], told)}{where and f' in {where}'}: {causes_text(each, naming)}"
        for each in part.happened
    )


def number_text(number: Decimal | None, *, signed: bool = False) -> str:
    """Write a number exactly, or that it can't be read."""
    if number is None:
        return "can't be read"
    sign = "+" if signed and number > 0 else ""
    return f"{sign}{number:,f}"


def part_json(
    part: Part, steps: tuple[HistoryStep, ...], told: Mapping[str, str], naming: Naming, model: str
) -> dict[str, Any]:
    """Give a part as JSON values; numbers are text, since they are exact."""
    return {
        "difference": exact(part.difference),
        "before": exact(part.before),
        "after": exact(part.after),
        "cells": naming.all_ranges(model, part.cells),
        "steps": [_step_json(each, steps[each.step], told, naming) for each in part.happened],
    }


def _step_json(
    happened: Happened, step: HistoryStep, plan_texts: Mapping[str, str], naming: Naming
) -> dict[str, Any]:
    return {
        "at": step.at,
        "what": step.what,
        "plan_id": step.plan_id,
        "plan": plan_texts.get(step.plan_id) if step.plan_id else None,
        "batch_id": step.batch_id,
        "who": step.who,
        "why": step.why,
        "causes": [
            {
                "kind": cause.kind.value,
                "subject": cause.subject,
                "cells": naming.all_ranges(cause.subject, cause.cells),
                "note": cause.note,
            }
            for cause in happened.causes
        ],
    }


def exact(number: Decimal | None) -> str | None:
    """Write a number as JSON carries it without rounding."""
    return None if number is None else f"{number:f}"
