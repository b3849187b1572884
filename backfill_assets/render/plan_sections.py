"""What is said of a plan, as a list of sections that every form of it prints.

Which sections there are, in what order, and when one is left out is decided here alone. A form matches
over `Section` to its end, so that one which doesn't print a section fails the type check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.plan import Change
from backfill_assets.render.plan_words import (
    LEGEND,
    REMOVED,
    asked_text,
    batches_text,
    category_text,
    estimate_text,
    nothing_text,
    strategy_texts,
    symbol,
    work_text,
)
from backfill_assets.render.stage_words import stages_by_verb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.planning.plan.plan import CellWork, InFlight, ModelPlan, Plan
    from backfill_assets.render.plan_words import Naming

_CANARIES = 6
_GONE = "removed; its table stays for `backfill gc`"
_BLOCKED = "; this plan can't be applied before the other plan has ended"


@dataclass(frozen=True, slots=True)
class Title:
    """What plan it is, for which environment, whether that is protected, and who asked for it."""

    plan_id: str
    environment: str
    guard: str
    asked_by: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about the whole plan, in one line."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """How the declaration of a model changes: what that means, and the difference as unified text."""

    sign: str
    model: str
    category: str
    diff: str
    added: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """The declarations that change."""

    models: tuple[ChangedModel, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """Some cells of a model: how many, which, and why; not certain: only if their input changes."""

    count: int
    text: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ModelWork:
    """What is done to a model.

    Attributes:
        sign: the sign of its change.
        model: its name.
        cells: the cells that are built, by reason; else that no cell is built.
        waiting: the cells that are left out; None without any.
        details: how it is built, of what, and how long that takes.
        warnings: what a reader should know.
    """

    sign: str
    model: str
    cells: tuple[Cells, ...]
    waiting: Cells | None
    details: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemovedModel:
    """A model that is no longer declared, and what becomes of it."""

    sign: str
    model: str
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """What is done, model by model, and the models that are removed."""

    models: tuple[ModelWork, ...]
    removed: tuple[RemovedModel, ...]


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Readers of changed models that the plan leaves alone: (model, reason)."""

    readers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AtWork:
    """Who else is at work on the plan's cells.

    Attributes:
        blocks: whether the plan can't be applied before they have ended.
        others: (model, cells and who).
    """

    blocks: bool
    others: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Strategies:
    """How history is changed: (strategy, risk and signal, the models that are changed so)."""

    ways: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """What the plan is expected to change: (model, rules, who decided on them)."""

    expected: tuple[tuple[str, tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one sort.

    Attributes:
        label: what one is called.
        title: what all are called.
        texts: the texts themselves.
        warn: whether they warn.
    """

    label: str
    title: str
    texts: tuple[str, ...]
    warn: bool = False


@dataclass(frozen=True, slots=True)
class Stages:
    """What each verb does with the plan: (verb, stage)."""

    stages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Signs:
    """What the signs before the models mean: (sign, meaning)."""

    signs: tuple[tuple[str, str], ...]


Section = (
    Title
    | Fact
    | Changes
    | Work
    | LeftAlone
    | AtWork
    | Strategies
    | Contract
    | Texts
    | Stages
    | Signs
)


def plan_sections(
    plan: Plan, naming: Naming, ranges: int, around: Iterable[Texts] = ()
) -> Iterator[Section]:
    """List the sections about a plan; empty sections are left out.

    Args:
        plan: the plan.
        naming: how cells are named.
        ranges: how many ranges of cells are named, before the others are counted.
        around: what the state says around the plan, beside what it was made with.
    """
    guard = "protected" if plan.protected else "not protected"
    yield Title(plan.plan_id, plan.environment, guard, plan.request.asked_by)
    yield from _fact("Reason", plan.request.reason)
    yield from _fact("Asked", asked_text(plan.request))
    until = minute_text(plan.until)
    yield Fact("Expires", f"{minute_text(plan.expires_at)}; history ends at {until}")
    if changed := tuple(_changed(plan)):
        yield Changes(changed)
    if plan.models or plan.removed:
        models = tuple(_model(planned, naming, ranges) for planned in plan.models)
        yield Work(models, tuple(RemovedModel(REMOVED, name, _GONE) for name in plan.removed))
    if plan.untouched:
        yield LeftAlone(tuple((untouched.model, untouched.because) for untouched in plan.untouched))
    yield from _at_work(plan, naming)
    yield from _fact("Canaries", _canaries(plan, naming))
    yield from _fact("Estimate", estimate_text(plan.estimate) if plan.estimate else "")
    if ways := _ways(plan):
        yield Strategies(ways)
    if expected := _expected(plan):
        yield Contract(expected)
    yield from _texts("Gate", "Gates", plan.gates)
    yield from _fact("Way back", plan.rollback)
    yield from _texts("Note", "Notes", plan.notes, warn=True)
    yield from (texts for texts in around if texts.texts)
    yield Stages(stages_by_verb(plan, naming))
    yield Signs(tuple((sign, means) for sign, _, means in LEGEND))


def _fact(label: str, text: str) -> Iterator[Fact]:
    if text:
        yield Fact(label, text)


def _canaries(plan: Plan, naming: Naming) -> str:
    """Say how many cells are built first."""
    counts = [naming.count(name, cells) for name, cells in plan.canaries.items()]
    return (
        f"{counted(sum(counts), 'cell')} of {counted(len(counts), 'model')} first; the next `apply` "
        "builds the rest"
        if counts
        else ""
    )


def _texts(
    label: str, title: str, texts: tuple[str, ...], *, warn: bool = False
) -> Iterator[Texts]:
    if texts:
        yield Texts(label, title, texts, warn)


def _changed(plan: Plan) -> Iterator[ChangedModel]:
    for planned in plan.models:
        if planned.change is not Change.UNCHANGED:
            added = planned.change is Change.ADDED
            category = category_text(planned)
            yield ChangedModel(symbol(planned), planned.model, category, planned.diff, added)


def _model(planned: ModelPlan, naming: Naming, ranges: int) -> ModelWork:
    def cells(work: CellWork) -> Cells:
        text = work_text(naming, planned.model, work, ranges)
        return Cells(naming.count(planned.model, work.cells), text, work.certain)

    return ModelWork(
        symbol(planned),
        planned.model,
        cells=tuple(map(cells, planned.work)) or (Cells(0, nothing_text(planned)),),
        waiting=_waiting(planned, naming, ranges),
        details=tuple(_details(planned, naming)),
        warnings=tuple(_warnings(planned)),
    )


def _waiting(planned: ModelPlan, naming: Naming, ranges: int) -> Cells | None:
    if not planned.waiting:
        return None
    named = naming.ranges(planned.model, planned.waiting, ranges)
    text = f"{named}  left out: what they read is neither ready nor planned"
    return Cells(naming.count(planned.model, planned.waiting), text)


def _details(planned: ModelPlan, naming: Naming) -> Iterator[str]:
    old = planned.old_version
    now = f", now {old}" if old not in {"", planned.version} else ""
    yield f"build: {planned.build.value} {planned.version}{now}"
    if kept := naming.count(planned.model, planned.kept):
        yield f"kept: {counted(kept, 'cell')}"
    if planned.batches:
        yield f"cut into: {batches_text(planned)}"
    if count := naming.count(planned.model, planned.canaries):
        named = naming.ranges(planned.model, planned.canaries, _CANARIES)
        yield f"{counted(count, 'canary', 'canaries')}: {named}"
    for read in planned.reads:
        columns = "every column" if read.columns is None else ", ".join(read.columns)
        yield f"reads: {read.upstream} {naming.ranges(read.upstream, read.cells)}, {columns}"
    if planned.estimate:
        yield f"takes: {estimate_text(planned.estimate)}"


def _warnings(planned: ModelPlan) -> Iterator[str]:
    if planned.kept_rows is not None:
        yield f"rows whose source is gone: {planned.kept_rows.value}"
    yield from planned.notes


def _at_work(plan: Plan, naming: Naming) -> Iterator[AtWork]:
    for blocks in (True, False):
        others = tuple(
            (
                overlap.model,
                f"{_overlapping(naming, overlap)}: {overlap.who}{_BLOCKED * blocks}",
            )
            for overlap in plan.in_flight
            if overlap.blocks is blocks
        )
        if others:
            yield AtWork(blocks, others)


def _overlapping(naming: Naming, overlap: InFlight) -> str:
    """Name what both would build: cells, or the same new table without a cell in common."""
    return naming.ranges(overlap.model, overlap.cells) if overlap.cells else "(its table)"


def _expected(plan: Plan) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    rules: dict[tuple[str, str], list[str]] = {}
    for each in plan.contract:
        rules.setdefault((each.model, each.decided_by), []).append(each.check)
    return tuple((model, tuple(texts), who) for (model, who), texts in rules.items())


def _ways(plan: Plan) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    how: dict[tuple[str, ...], list[str]] = {}
    for planned in plan.models:
        if planned.strategy:
            how.setdefault(strategy_texts(planned), []).append(planned.model)
    return tuple((way, tuple(rest), tuple(models)) for (way, *rest), models in how.items())
