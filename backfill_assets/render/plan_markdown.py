"""Write one plan as Markdown, for a pull request, a ticket or a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backfill_assets.render.plan_words import (
    REMOVED,
    Naming,
    asked_text,
    batches_text,
    category_text,
    count_line,
    estimate_text,
    instant_text,
    nothing_text,
    strategy_texts,
    symbol,
    work_text,
)
from backfill_assets.render.stage_words import stages_by_verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.planning.plan.plan import ModelPlan, Plan


def plan_markdown(plan: Plan, naming: Naming) -> str:
    """Write a plan, whole."""
    parts = (_head(plan), _work(plan, naming), _changes(plan), _rest(plan, naming))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(plan: Plan) -> Iterator[str]:
    guard = "protected" if plan.protected else "not protected"
    yield f"## Plan `{plan.plan_id}` for `{plan.environment}` ({guard})"
    yield ""
    facts = {
        "Reason": plan.request.reason,
        "Asked by": plan.request.asked_by,
        "Asked": asked_text(plan.request),
        "Expires": instant_text(plan.expires_at),
        "History ends at": instant_text(plan.until),
        "Estimate": estimate_text(plan.estimate) if plan.estimate else "",
        "Way back": plan.rollback,
    }
    for label, text in facts.items():
        if text:
            yield f"- **{label}:** {text}"
    yield ""


def _work(plan: Plan, naming: Naming) -> Iterator[str]:
    yield "|  | model | cells | which, and why |"
    yield "|---|---|---:|---|"
    for one in plan.models:
        yield from _rows(one, naming)
    for name in plan.removed:
        yield f"| {REMOVED} | `{name}` | | removed |"
    yield ""
    yield count_line(naming, plan)
    yield ""


def _rows(one: ModelPlan, naming: Naming) -> Iterator[str]:
    if not one.work:
        yield f"| {symbol(one)} | `{one.model}` | 0 | {nothing_text(one)} |"
    for work in one.work:
        text = _escaped(work_text(naming, one.model, work, limit=20))
        count = naming.count(one.model, work.cells)
        yield f"| {symbol(one)} | `{one.model}` | {count:,} | {text} |"


def _changes(plan: Plan) -> Iterator[str]:
    for one in plan.models:
        if one.diff or one.category:
            yield f"### {symbol(one)} `{one.model}`: {category_text(one)}"
            yield ""
        if one.diff:
            fence = "`" * max(3, _longest_fence(one.diff) + 1)
            yield f"{fence}diff"
            yield from one.diff.splitlines()
            yield fence
            yield ""


def _longest_fence(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _rest(plan: Plan, naming: Naming) -> Iterator[str]:
    sections = {
        "Batches": [
            f"`{planned.model}`: {batches_text(planned)}"
            for planned in plan.models
            if planned.batches
        ],
        "Left alone": [f"`{reader.model}`: {reader.because}" for reader in plan.untouched],
        "Strategy": [
            f"`{one.model}`: {'; '.join(strategy_texts(one))}"
            for one in plan.models
            if one.strategy
        ],
        "Conflicts": [
            f"`{one.model}` {naming.ranges(one.model, one.cells)}: {one.who}"
            for one in plan.in_flight
            if one.blocks
        ],
        "In flight": [
            f"`{one.model}` {naming.ranges(one.model, one.cells)}: {one.who}"
            for one in plan.in_flight
            if not one.blocks
        ],
        "Gates": list(plan.gates),
        "Stages": [f"`{verb}`: {text}" for verb, text in stages_by_verb(plan, naming)],
        "Notes": [
            *(f"`{one.model}`: {note}" for one in plan.models for note in one.notes),
            *plan.notes,
        ],
    }
    for title, texts in sections.items():
        if texts:
            yield f"### {title}"
            yield ""
            yield from (f"- {text}" for text in texts)
            yield ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
