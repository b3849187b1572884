"""Write one plan as text for the person who decides on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Change
from backfill_assets.render.plan_words import (
    LEGEND,
    REMOVED,
    Naming,
    asked_text,
    batches_text,
    category_text,
    counted,
    estimate_text,
    instant_text,
    nothing_text,
    strategy_texts,
    symbol,
    work_text,
)
from backfill_assets.render.stage_words import stages_by_verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.planning.plan.plan import ModelPlan, Plan

_CHANGED, _DIFFS, _DIFF_LINES = 6, 3, 12
_MODELS, _PIECES, _OTHERS, _STRATEGIES = 7, 2, 3, 2
_FILES = ("--- ", "+++ ")
"""Of a unified diff: the two lines that name what was compared."""
_INDENT = 4
_ASIDE = 8
_LABEL = 10


class Tone(StrEnum):
    """The role of a line, by which it is coloured."""

    PLAIN = "plain"
    HEAD = "head"
    PLUS = "plus"
    MINUS = "minus"
    QUIET = "quiet"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text.

    Attributes:
        text: itself, its first indent included.
        tone: its role.
        indent: how far the lines after a break are indented.
    """

    text: str
    tone: Tone = Tone.PLAIN
    indent: int = _INDENT


def plan_text(plan: Plan, naming: Naming, *, whole: bool = False) -> tuple[Line, ...]:
    """Write a plan without the lines on the next commands.

    Args:
        plan: the plan.
        naming: how cells are named.
        whole: everything; else about what fits a screen.
    """
    parts = (
        _head(plan),
        _diffs(plan, whole=whole),
        _models(plan, naming, whole=whole),
        _untouched(plan, whole=whole),
        _in_flight(plan, naming, whole=whole),
        _tail(plan, whole=whole),
        _stages(plan, naming) if whole else (),
        _legend() if whole else (),
    )
    return tuple(line for part in parts for line in part)


def _labelled(label: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
    return Line(f"{label:<{_LABEL}}{text}", tone, _LABEL)


def _head(plan: Plan) -> Iterator[Line]:
    guard = "protected" if plan.protected else "not protected"
    by = f", asked for by {plan.request.asked_by}" if plan.request.asked_by else ""
    yield Line(f"Plan {plan.plan_id} for {plan.environment} ({guard}){by}", Tone.HEAD)
    if plan.request.reason:
        yield _labelled("Reason", plan.request.reason)
    asked = asked_text(plan.request)
    if asked:
        yield _labelled("Asked", asked)
    until = instant_text(plan.until)
    yield _labelled("Expires", f"{instant_text(plan.expires_at)}; history ends at {until}")


def _diffs(plan: Plan, *, whole: bool) -> Iterator[Line]:
    changed = [planned for planned in plan.models if planned.change is not Change.UNCHANGED]
    shown = changed if whole else changed[:_CHANGED]
    long = sum(1 for one in shown if one.diff and one.change is not Change.ADDED)
    room = _DIFF_LINES // max(min(long, _DIFFS), 1)
    for at, one in enumerate(shown):
        yield Line(f"{symbol(one)} {one.model}: {category_text(one)}", Tone.HEAD)
        lines = [line for line in one.diff.splitlines() if not line.startswith(_FILES)]
        if whole or one.change is not Change.ADDED:
            yield from _diff(lines, len(lines) if whole else room * (at < _DIFFS))
    yield from _more(len(changed) - len(shown), "changed model")


def _diff(lines: list[str], room: int) -> Iterator[Line]:
    for line in lines[:room]:
        yield Line(f"    {line}", _tone_of_diff(line), _INDENT * 2)
    yield from _more(len(lines) - room, "line")


def _tone_of_diff(line: str) -> Tone:
    if line.startswith("+"):
        return Tone.PLUS
    return Tone.MINUS if line.startswith("-") else Tone.QUIET


def _models(plan: Plan, naming: Naming, *, whole: bool) -> Iterator[Line]:
    if plan.models or plan.removed:
        yield Line("Work", Tone.HEAD)
    shown = plan.models if whole else plan.models[:_MODELS]
    width = max((len(one.model) for one in shown), default=0)
    for one in shown:
        yield from _model(one, naming, width, whole=whole)
    yield from _more(len(plan.models) - len(shown), "model")
    for name in plan.removed:
        yield Line(f"  {REMOVED} {name}: removed; its table stays for `backfill gc`", Tone.MINUS)


def _model(one: ModelPlan, naming: Naming, width: int, *, whole: bool) -> Iterator[Line]:
    before = f"  {symbol(one)} {one.model:<{width}}  "
    if not one.work:
        yield Line(f"{before}{'0':>6}  {nothing_text(one)}", indent=len(before))
    pieces = one.work if whole else one.work[:_PIECES]
    for at, work in enumerate(pieces):
        count = naming.count(one.model, work.cells)
        start = before if at == 0 else " " * len(before)
        text = work_text(naming, one.model, work, limit=50 if whole else 3)
        yield Line(
            f"{start}{count:>6,}  {text}",
            Tone.PLAIN if work.certain else Tone.QUIET,
            len(before) + 8,
        )
    hidden = sum(naming.count(one.model, work.cells) for work in one.work[len(pieces) :])
    if hidden:
        reasons = counted(len(one.work) - len(pieces), "other reason")
        yield Line(f"{' ' * len(before)}{hidden:>6,}  for {reasons}", Tone.QUIET)
    if one.waiting:
        waits = naming.count(one.model, one.waiting)
        ranges = naming.ranges(one.model, one.waiting, limit=50 if whole else 3)
        yield Line(
            f"{' ' * len(before)}{waits:>6,}  {ranges}  left out: what they read is neither ready nor planned",
            Tone.WARNING,
            len(before) + 8,
        )
    if whole:
        yield from _details(one, naming, _ASIDE)
    if one.kept_rows is not None:
        text = f"rows whose source is gone: {one.kept_rows.value}"
        yield Line(f"{' ' * _ASIDE}{text}", Tone.WARNING, _ASIDE)
    for note in one.notes:
        yield Line(f"{' ' * _ASIDE}{note}", Tone.WARNING, _ASIDE)


def _details(one: ModelPlan, naming: Naming, indent: int) -> Iterator[Line]:
    kept = naming.count(one.model, one.kept)
    said = [
        f"build: {one.build.value} {one.version}"
        + (f", now {one.old_version}" if one.old_version not in {"", one.version} else ""),
        f"kept: {counted(kept, 'cell')}" if kept else "",
        f"cut into: {batches_text(one)}" if one.batches else "",
        *(
            f"reads: {read.upstream} {naming.ranges(read.upstream, read.cells)}, "
            f"{'every column' if read.columns is None else ', '.join(read.columns)}"
            for read in one.reads
        ),
        f"takes: {estimate_text(one.estimate)}" if one.estimate else "",
    ]
    return (Line(f"{' ' * indent}{text}", Tone.QUIET, indent + _INDENT) for text in said if text)


def _untouched(plan: Plan, *, whole: bool) -> Iterator[Line]:
    if not plan.untouched:
        return
    yield Line("Left alone", Tone.HEAD)
    shown = plan.untouched if whole else plan.untouched[:_OTHERS]
    width = max(len(one.model) for one in shown)
    for one in shown:
        yield Line(f"    {one.model:<{width}}  {one.because}", indent=width + 6)
    yield from _more(len(plan.untouched) - len(shown), "reader")


def _in_flight(plan: Plan, naming: Naming, *, whole: bool) -> Iterator[Line]:
    shown = plan.in_flight if whole else plan.in_flight[:_OTHERS]
    for one in shown:
        ranges = naming.ranges(one.model, one.cells)
        label, tone = ("Conflict", Tone.MINUS) if one.blocks else ("In flight", Tone.WARNING)
        rest = "; this plan can't be applied before that one has ended" if one.blocks else ""
        yield _labelled(label, f"{one.model} {ranges}: {one.who}{rest}", tone)
    yield from _more(
        len(plan.in_flight) - len(shown), "other at work there", "others at work there"
    )


def _tail(plan: Plan, *, whole: bool) -> Iterator[Line]:
    if plan.estimate:
        yield _labelled("Estimate", estimate_text(plan.estimate))
    yield from _strategies(plan, whole=whole)
    for label, texts in (
        ("Gate", plan.gates),
        ("Way back", (plan.rollback,) if plan.rollback else ()),
    ):
        for text in texts:
            yield _labelled(label, text)
    for note in plan.notes:
        yield _labelled("Note", note, Tone.WARNING)


def _strategies(plan: Plan, *, whole: bool) -> Iterator[Line]:
    how: dict[tuple[str, ...], list[str]] = {}
    for one in plan.models:
        if one.strategy:
            how.setdefault(strategy_texts(one), []).append(one.model)
    for (strategy, *rest), models in list(how.items())[: len(how) if whole else _STRATEGIES]:
        listed = models if whole else models[:_OTHERS]
        more = f" and {len(models) - len(listed)} more" if len(models) > len(listed) else ""
        yield _labelled("Strategy", f"{strategy}: {', '.join(listed)}{more}")
        yield from (_labelled("", text, Tone.QUIET) for text in rest)
    if not whole:
        yield from _more(len(how) - _STRATEGIES, "strategy", "strategies")


def _stages(plan: Plan, naming: Naming) -> Iterator[Line]:
    before = ""
    for verb, text in stages_by_verb(plan, naming):
        yield _labelled("" if verb == before else verb.capitalize(), text, Tone.QUIET)
        before = verb


def _legend() -> Sequence[Line]:
    return (_labelled("Signs", ", ".join(f"{sign} {means}" for sign, _, means in LEGEND)),)


def _more(hidden: int, one: str, many: str | None = None) -> Iterator[Line]:
    if hidden > 0:
        yield Line(f"    and {counted(hidden, one, many)} more: -v shows them", Tone.QUIET)
