"""The checklist of a plan: what must be known before it computes, and what must be done before it counts.

Each item is computed where the state and the declarations say it, and else stands as a person has
declared it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.intervals.text import counted
from backfill_assets.models.kind import (
    AbsentMeansDeleted,
    Deletes,
    KeepsDeleted,
    SoftDelete,
    Tombstone,
)
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.review.source_columns import SourceColumns
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.consumer import Consumer
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source, TimeColumns
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets.planning.review.source_history import LostHistory

    Ranges = Callable[[str, IntervalSet], str]

_SHOWN = 12
"""Digits of a fingerprint that are shown."""


class Standing(StrEnum):
    """Where an item stands."""

    MET = "met"
    """Computed, and as it must be."""
    NOT_MET = "not met"
    """Computed and not as it must be, or nothing declares it."""
    DECLARED = "declared"
    """A person has said it; nothing can compute whether it is right."""


class ChecklistPart(StrEnum):
    """When an item has to be settled."""

    INVENTORY = "before it computes"
    RESULT = "before it is published"
    AFTERWARDS = "afterwards"


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a checklist.

    Attributes:
        part: when it has to be settled.
        name: of the item, in a few words.
        standing: met, not met, or declared.
        texts: what was found, in words with its numbers.
        todo: what to do where it is not met; empty otherwise.
        stops: whether nothing is computed for the plan before it is met.
    """

    part: ChecklistPart
    name: str
    standing: Standing
    texts: tuple[str, ...]
    todo: str = ""
    stops: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistFacts:
    """What the state says of a plan.

    Attributes:
        status: of the plan.
        lost: published cells whose source rows are gone.
        empty: by source, cells that the plan reads and that hold no row; of a source that was never
            looked at None.
        columns: by source, how far the columns that the plan reads are filled; None where that is not known.
        left: by model, planned cells that are not built yet, in words.
        audits: the results of the plan's own batches, by model.
        published: the environment that a plan was published in, and when, in words; empty before.
        needs_inventory: whether the policy lets nothing be computed before every item of the inventory is met.
        building: the command that goes on with the plan; empty where none does: it has ended, or its time is over.
    """

    status: PlanStatus
    building: str = ""
    lost: Sequence[LostHistory] = ()
    empty: Mapping[str, IntervalSet | None] = field(default_factory=dict[str, "IntervalSet | None"])
    columns: Mapping[str, SourceColumns | None] = field(
        default_factory=dict[str, "SourceColumns | None"]
    )
    left: Mapping[str, str] = field(default_factory=dict[str, str])
    audits: Mapping[str, Sequence[AuditResult]] = field(
        default_factory=dict[str, "Sequence[AuditResult]"]
    )
    published: str = ""
    needs_inventory: bool = False


def checklist(plan: Plan, graph: Graph, facts: ChecklistFacts, ranges: Ranges) -> tuple[Item, ...]:
    """Settle every item of a plan.

    Args:
        plan: the plan.
        graph: the declarations that it runs.
        facts: what the state says.
        ranges: how the cells of a model or source are named.
    """
    return (
        *inventory(plan, graph, facts, ranges),
        *_results(facts),
        *_afterwards(plan, facts),
    )


def inventory(plan: Plan, graph: Graph, facts: ChecklistFacts, ranges: Ranges) -> tuple[Item, ...]:
    """Settle what must be known before a plan computes; see `checklist`."""
    items = _inventory(plan, graph, facts, ranges)
    if facts.needs_inventory:
        items = (replace(item, stops=item.standing is Standing.NOT_MET) for item in items)
    return tuple(items)


def source_history(lost: Sequence[LostHistory], ranges: Ranges) -> tuple[Item, ...]:
    """Give the item that stops a plan: it would replace published rows by nothing; none where nothing is lost."""
    texts = tuple(
        f"{emptied.source} has lost all rows that {emptied.model} "
        f"{ranges(emptied.model, emptied.cells)} was built from"
        for emptied in lost
    )
    todo = (
        "land them again; or say that they were wrong with `backfill plan --restate SOURCE:A..B "
        "--reason TEXT`; or keep these cells with `--cutoff DATE --reason TEXT`"
    )
    item = Item(
        ChecklistPart.INVENTORY, "source history", Standing.NOT_MET, texts, todo, stops=True
    )
    return (item,) if texts else ()


def _inventory(plan: Plan, graph: Graph, facts: ChecklistFacts, ranges: Ranges) -> Iterator[Item]:
    models = [graph.models[name] for name in _built(plan) if name in graph.models]
    sources = _sources(models, graph)
    guard = "protected" if plan.protected else "not protected"
    target = f"{plan.environment} ({guard}): {_and(planned.model for planned in plan.models)}"
    removed = (f"removed: {_and(plan.removed)}",) if plan.removed else ()
    yield _met("target", target, *removed)
    yield _met("window", *(_window(planned, ranges) for planned in plan.models if planned.cells))
    yield _met(
        "grain and key", *(f"{model.name}: {model.grain}; {_and(model.key)}" for model in models)
    )
    yield from _source_items(sources, facts, ranges)
    yield _met("transformation", *map(_code, plan.models))
    yield _met("readers", *_readers(plan))
    yield _consumers(plan, graph)
    yield _owners(models, sources)
    yield _asked(plan)
    yield _acceptance(models)
    yield _times(models, sources)
    yield _declared("deletes", _by_value((_deletes(model), model.name) for model in models))
    yield _declared("late rows", _by_value((_late(model), model.name) for model in models))
    yield _met("way back", plan.rollback or "nothing is published that could be taken back")


def _built(plan: Plan) -> list[str]:
    return [planned.model for planned in plan.models if planned.build is not Build.POINTER]


def _sources(models: Iterable[Model], graph: Graph) -> list[Source]:
    names = dict.fromkeys(
        upstream.name
        for model in models
        for upstream in model.reads
        if upstream.name in graph.sources
    )
    return [graph.sources[name] for name in names]


def _window(planned: ModelPlan, ranges: Ranges) -> str:
    return f"{planned.model}: {ranges(planned.model, planned.cells)}"


def _source_items(
    sources: Sequence[Source], facts: ChecklistFacts, ranges: Ranges
) -> Iterator[Item]:
    yield from source_history(facts.lost, ranges)
    texts: list[str] = []
    for source in sources:
        empty = facts.empty.get(source.name)
        if empty is None:
            reason = "was never looked at" if source.observed else "is declared as not observed"
            texts.append(f"{source.name}: {reason}, so it is not known which cells hold rows")
        elif empty:
            texts.append(
                f"{source.name}: no row in {ranges(source.name, empty)}; declared as "
                f"when_empty={source.when_empty.value}"
            )
        else:
            texts.append(f"{source.name}: rows in every cell that is read")
    complete = all(text.endswith("that is read") for text in texts)
    holes = [hole for source in sources for hole in _holes(source, facts, ranges)]
    broken = any(hole.breaks for hole in holes)
    declared = Standing.MET if complete and not holes else Standing.DECLARED
    yield Item(
        ChecklistPart.INVENTORY,
        "sources",
        Standing.NOT_MET if broken else declared,
        (*texts, *(hole.text for hole in holes)) or ("none is read",),
        "land these columns, or declare what the source gives" if broken else "",
    )


@dataclass(frozen=True, slots=True)
class _Hole:
    """A column of a source that is not filled, or not known to be; `breaks` where a declaration forbids it."""

    text: str
    breaks: bool


def _holes(source: Source, facts: ChecklistFacts, ranges: Ranges) -> Iterator[_Hole]:
    """Name the columns of a source that are not there, hold no value in a cell, or can't be told."""
    columns = facts.columns.get(source.name, SourceColumns())
    if columns is None:
        yield _Hole(f"{source.name}: its log does not tell which columns hold values", breaks=False)
        return
    for column, difference in columns.differing.items():
        yield _Hole(f"{source.name}.{column}: {difference}", breaks=True)
    forbidding = {column.name for column in source.schema if not column.nullable}
    for column, cells in columns.without.items():
        declared = "not nullable" if column in forbidding else "nullable"
        text = f"{source.name}.{column}: no value in {ranges(source.name, cells)}; declared as {declared}"
        yield _Hole(text, breaks=column in forbidding)
    if columns.untold:
        text = f"{source.name}: its files do not tell in which cells {_and(columns.untold)} hold values"
        yield _Hole(text, breaks=False)


def _code(planned: ModelPlan) -> str:
    new, old = planned.fingerprint[:_SHOWN], planned.old_fingerprint[:_SHOWN]
    return f"{planned.model}: {old} -> {new}" if old not in {"", new} else f"{planned.model}: {new}"


def _readers(plan: Plan) -> tuple[str, ...]:
    texts = tuple(f"{reader.model} stays: {reader.because}" for reader in plan.untouched)
    return texts or ("every reader of what changes is in the plan",)


def _consumers(plan: Plan, graph: Graph) -> Item:
    changed = {planned.model for planned in plan.models}
    reading = [
        f"{consumer.name} ({consumer.kind}, {consumer.owner}) reads "
        f"{_and(read.model for read in consumer.reads if read.model in changed)}"
        f"; {_reviewed(consumer, plan.created_at)}"
        for consumer in graph.consumers.values()
        if any(read.model in changed for read in consumer.reads)
    ]
    if reading:
        return _declared("consumers", reading)
    return _missing(
        "consumers",
        "no declared consumer reads what the plan changes",
        "declare who reads it in CONSUMERS of the catalog",
    )


def _reviewed(consumer: Consumer, at: datetime) -> str:
    """Say when a person last confirmed a consumer's declaration, and how long ago that is."""
    if not consumer.reviewed:
        return "never reviewed"
    days = (at.date() - date.fromisoformat(consumer.reviewed)).days
    return f"reviewed {consumer.reviewed}, {days} day{'' if days == 1 else 's'} before the plan"


def _owners(models: Iterable[Model], sources: Iterable[Source]) -> Item:
    without = [source.name for source in sources if not source.owner]
    if without:
        return _missing("owners", f"no owner of {_and(without)}", "declare `owner=` there")
    owned = [*((model.owner, model.name) for model in models)]
    owned += [(source.owner, source.name) for source in sources]
    return _declared("owners", _by_value(owned))


def _asked(plan: Plan) -> Item:
    by, reason = plan.request.asked_by or "not known", plan.request.reason
    if not reason and not plan.fills_only:
        return _missing(
            "asked by and why", f"{by}; no reason", "make the plan again with `--reason TEXT`"
        )
    return _declared("asked by and why", [f"{by}: {reason or 'a gap'}"])


def _acceptance(models: Sequence[Model]) -> Item:
    texts = [f"{model.name}: {counted(len(model.audits), 'declared audit')}" for model in models]
    without = [model.name for model in models if not model.audits]
    if without:
        text = f"no audit is declared for {_and(without)}: only its key and columns are tested"
        return _missing("acceptance criteria", text, "declare `audits=` there")
    return _declared("acceptance criteria", texts or ["nothing is built"])


def _times(models: Iterable[Model], sources: Iterable[Source]) -> Item:
    texts = [
        f"{node.name}: {_time_words(node.times, node.time_column)}" for node in (*models, *sources)
    ]
    return _declared("which time means what", texts)


def _time_words(times: TimeColumns, cells_by: str | None) -> str:
    named = {
        "event": times.event, "ingestion": times.ingested, "update": times.updated,
        "effective": times.effective, "creation": times.created,
    }  # fmt: skip
    words = [f"{column} is {meaning} time" for meaning, column in named.items() if column]
    if cells_by and cells_by not in named.values():
        words.insert(0, f"{cells_by} names the cell")
    return ", ".join(words) or "read as a whole"


def _deletes(model: Model) -> str:
    policy: Deletes = model.delete_policy
    match policy:
        case KeepsDeleted():
            return "a key that is gone stays"
        case AbsentMeansDeleted():
            return "a key that is gone is deleted"
        case SoftDelete(column):
            return f"a key that is gone stays, with {column} set"
        case Tombstone(column):
            return f"a row whose {column} is set deletes its key"


def _late(model: Model) -> str:
    if not model.late_window:
        return "late rows need a plan"
    cells = f"{model.late_window} cell{'' if model.late_window == 1 else 's'}"
    return f"late rows of the last {cells} are taken without a plan"


def _results(facts: ChecklistFacts) -> Iterator[Item]:
    built = _built_item(facts)
    yield built
    results = [(model, result) for model, own in facts.audits.items() for result in own]
    failed = [(model, result) for model, result in results if not result.passed]
    if not results and built.standing is Standing.MET:
        yield _result("audits", Standing.MET, ("none had to run: no batch of the plan wrote rows",))
    elif not results:
        yield _result("audits", Standing.NOT_MET, ("none has run",), facts.building)
    else:
        texts = [f"{len(results) - len(failed):,} of {len(results):,} passed"]
        texts += [f"{model} {result.audit}: {result.found}" for model, result in failed]
        blocked = any(result.blocks for _, result in failed)
        then = f", then {facts.building}" if facts.building else ""
        todo = f"backfill batches --failed{then}" if blocked else ""
        yield _result("audits", Standing.NOT_MET if blocked else Standing.MET, tuple(texts), todo)


def _built_item(facts: ChecklistFacts) -> Item:
    if facts.status is PlanStatus.PROPOSED:
        return _result("built", Standing.NOT_MET, ("nothing is built yet",), facts.building)
    if facts.left:
        texts = tuple(f"left of {model}: {cells}" for model, cells in facts.left.items())
        return _result("built", Standing.NOT_MET, texts, facts.building)
    is_kept = facts.status is not PlanStatus.ABANDONED
    standing = Standing.MET if is_kept else Standing.NOT_MET
    return _result("built", standing, (f"the plan is {facts.status.value}",))


def _afterwards(plan: Plan, facts: ChecklistFacts) -> Iterator[Item]:
    if facts.status is PlanStatus.PROMOTED:
        text = facts.published or f"in {plan.environment}"
        yield Item(ChecklistPart.AFTERWARDS, "published", Standing.MET, (text,))
    else:
        can_be = facts.status is PlanStatus.BUILT and facts.building
        todo = f"backfill promote {plan.plan_id}" if can_be else ""
        yield Item(
            ChecklistPart.AFTERWARDS,
            "published",
            Standing.NOT_MET,
            (f"it is {facts.status.value}",),
            todo,
        )


def _met(name: str, *texts: str) -> Item:
    return Item(ChecklistPart.INVENTORY, name, Standing.MET, texts or ("none",))


def _declared(name: str, texts: Sequence[str]) -> Item:
    return Item(ChecklistPart.INVENTORY, name, Standing.DECLARED, tuple(texts) or ("none",))


def _missing(name: str, text: str, todo: str) -> Item:
    return Item(ChecklistPart.INVENTORY, name, Standing.NOT_MET, (text,), todo)


def _result(name: str, standing: Standing, texts: tuple[str, ...], todo: str = "") -> Item:
    return Item(ChecklistPart.RESULT, name, standing, texts, todo)


def _by_value(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Say each value once, with all that have it."""
    names: dict[str, list[str]] = {}
    for value, name in pairs:
        names.setdefault(value, []).append(name)
    return [f"{value}: {_and(having)}" for value, having in names.items()]


def _and(names: Iterable[str]) -> str:
    return ", ".join(names)
