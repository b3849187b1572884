"""A plan: the immutable intention to change an environment's history.

It holds everything that a person reads before confirming it, and everything that applying it needs. Its
cells are an upper bound: each piece of work is certain, or done only if its input really changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.batch_size import BatchSize
from backfill_assets.planning.plan.json_forms import Cells, Instant, Span, in_form_of
from backfill_assets.planning.plan.request import Category, KeptRows, PlanRequest, Strategy
from backfill_assets.planning.review.contract import Expectation
from backfill_assets.snapshots.cutoff import Cutoff

FORMAT_VERSION = 1


class Why(StrEnum):
    """The reason for work on cells: the branch of the one rule that fired."""

    NEW_SNAPSHOT = "new snapshot"
    RESTATED = "restated"
    OWED = "owed"
    UPSTREAM_CHANGED = "upstream changed"
    LATE_DATA = "late data"
    GAP = "gap"


class Build(StrEnum):
    """Where a model's cells are built."""

    NEW_VERSION = "new version"
    """A table of its own, which the pointer moves to."""
    IN_PLACE = "in place"
    """The workspace's table over the published one; what really differs is copied in at promotion."""
    POINTER = "pointer only"
    """Nothing is computed; the environment runs another snapshot of the same table from then on."""
    GAP_FILL = "gap fill"
    """Cells that were never published: filled in the environment's own table before the rest."""


class Change(StrEnum):
    """How a model differs from what its environment runs."""

    ADDED = "added"
    MODIFIED = "modified"
    INDIRECT = "indirectly modified"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class CellWork:
    """Cells of one model that need work for one reason.

    Attributes:
        why: the branch of the rule.
        cells: whole cells.
        certain: False: only if what they read really changes.
        because: in words: the upstream that changes, who restated it, which plan owes it.
    """

    why: Why
    cells: Cells
    certain: bool = True
    because: str = ""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Consecutive cells that are computed, audited and committed together.

    Attributes:
        interval: its cells.
        cells: how many.
        certain: whether it is built whatever its input turns out to be.
        waits_for: (model, number) of the plan's batches that build what it reads, or that must come
            first in a model that runs in order or with limited concurrency.
    """

    interval: Span
    cells: int
    certain: bool = True
    waits_for: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """What the planned cells of a model read of one upstream.

    Attributes:
        upstream: model or source.
        columns: those it reads (lineage); None for all.
        cells: whole upstream cells that were published when the plan was made.
        version: of the upstream's table in the environment; empty for a source.
        delta_version: its pin; -1 for none.
    """

    upstream: str
    columns: tuple[str, ...] | None
    cells: Cells
    version: str = ""
    delta_version: int = -1


@dataclass(frozen=True, slots=True)
class Estimate:
    """What something will take.

    Attributes:
        seconds: wall time (P50, P90).
        cost: (P50, P90); zeros where nothing is charged.
        bytes_read: about how much.
        rests_on: in words: ``41 recorded batches``, or ``source bytes alone, no history``.
        start: seconds (P50) until the batches are under way: the command, Spark, the look at the
            sources, and the first batch of a process, which is slower; 0 of one model alone.
        batches: seconds (P50) of the batches.
        promotion: seconds (P50) after the last batch, until it is published: checks, comparing,
            copying, recording; 0 of one model alone.
        currency: of the cost; empty where nothing is charged.
    """

    seconds: tuple[float, float]
    cost: tuple[float, float]
    bytes_read: int
    rests_on: str
    start: float = 0.0
    batches: float = 0.0
    promotion: float = 0.0
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """What a plan does to one model.

    Attributes:
        model: its name.
        change: how it differs from what the environment runs.
        category: what the change means; None for an unchanged model.
        category_reason: why that category, in words.
        decided_by: ``planner``, or the person who overrode it.
        diff: the declaration as unified text; empty where nothing is different.
        build: where its cells are built.
        strategy: how; None where nothing is computed.
        risk: the strategy's main risk, in words.
        signal: its validation signal, in words.
        fingerprint: the snapshot that the environment runs afterwards.
        version: the table that it reads afterwards.
        old_fingerprint: the snapshot it runs now; empty for an added model.
        old_version: the table it reads now; empty for an added model.
        old_delta_version: its pin; -1 for none.
        loaded: the fingerprint of the loaded declaration when the plan was made: the code that its
            batches must still find.
        work: cells by reason.
        kept: required cells that stay as they are.
        waiting: required cells left out, since something that they read is neither ready nor
            planned, or another environment fills them.
        batches: the work in units.
        batch_size: how many cells a batch has at most, and why; applying the plan keeps to it. None
            where nothing is built, or in a plan of an older release.
        reads: what the planned cells read.
        estimate: what the model's work will take.
        canaries: those of its cells that are built, audited and compared before the others.
        kept_before: the cutoff that is in force for the model once the plan is promoted.
        kept_rows: what becomes of rows that only history has, in a new table of a model that keeps such
            rows; None where the question does not arise.
        notes: what a reader should know: clipped ranges, a partial cell left out, a smaller window.
    """

    model: str
    change: Change
    category: Category | None
    category_reason: str = ""
    decided_by: str = "planner"
    diff: str = ""
    build: Build
    strategy: Strategy | None = None
    risk: str = ""
    signal: str = ""
    fingerprint: str
    version: str
    old_fingerprint: str = ""
    old_version: str = ""
    old_delta_version: int = -1
    loaded: str = ""
    work: tuple[CellWork, ...] = ()
    kept: Cells = field(default_factory=IntervalSet.empty)
    waiting: Cells = field(default_factory=IntervalSet.empty)
    batches: Annotated[
        Sequence[PlannedBatch], in_form_of(tuple[PlannedBatch, ...], tuple, tuple)
    ] = ()
    batch_size: BatchSize | None = None
    reads: tuple[PlannedRead, ...] = ()
    estimate: Estimate | None = None
    canaries: Cells = field(default_factory=IntervalSet.empty)
    kept_before: Cutoff | None = None
    kept_rows: KeptRows | None = None
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> IntervalSet:
        """Every planned cell: the upper bound."""
        return IntervalSet.union_all(part.cells for part in self.work)

    @property
    def certain(self) -> IntervalSet:
        """The planned cells that are built whatever their input turns out to be."""
        return IntervalSet.union_all(part.cells for part in self.work if part.certain)

    @property
    def built_apart(self) -> bool:
        """Whether its cells are built in the plan's workspace."""
        return self.build in (Build.NEW_VERSION, Build.IN_PLACE)

    @property
    def published(self) -> IntervalSet:
        """The cells that its promotion publishes: the planned ones, and of a new table those that it holds already."""
        return self.cells | self.kept if self.build is Build.NEW_VERSION else self.cells

    @property
    def moves(self) -> bool:
        """Whether the plan's promotion moves its pointer; filled gaps are published without."""
        return self.build is not Build.GAP_FILL


@dataclass(frozen=True, slots=True)
class Untouched:
    """A model that reads something which the plan changes, and is left alone.

    Attributes:
        model: its name.
        because: ``reads none of: conversion_value, ...``
    """

    model: str
    because: str


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another plan or a run at work on the same cells.

    Attributes:
        model: the model.
        cells: the overlap.
        who: the plan or run.
        blocks: whether the plan can't be applied before the other has ended.
    """

    model: str
    cells: Cells
    who: str
    blocks: bool

    @property
    def plan_id(self) -> str:
        """The plan that has to end first; empty where nothing has to."""
        return self.who.removeprefix("plan ").partition(" ")[0] if self.blocks else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The intention to change an environment's history, with all that follows from it.

    Attributes:
        plan_id: short, derived from the content.
        request: what was asked.
        environment: whose history changes.
        protected: whether the environment needs an explicit promotion.
        created_at: when it was made (UTC).
        expires_at: after that it can't be applied any more.
        until: where history ends for it (UTC).
        seen: the state's counter when it was made: later changes of what it reads or rewrites make
            it stale.
        models: what it does, upstream first.
        removed: models that the environment runs and that are not declared any more.
        untouched: readers of changed models that it leaves alone, with the reason.
        in_flight: other plans and runs that are at work on the same cells.
        estimate: what all of it will take; None before it was estimated.
        gates: what must happen between building and promotion, in words.
        rollback: how to go back, in words.
        notes: what concerns no single model.
        contract: what the plan is expected to change, model by model; judged before its promotion.
        format_version: of the JSON form.
    """

    plan_id: str
    request: PlanRequest
    environment: str
    protected: bool
    created_at: Instant
    expires_at: Instant
    until: Instant
    seen: int
    models: tuple[ModelPlan, ...]
    removed: tuple[str, ...] = ()
    untouched: tuple[Untouched, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    estimate: Estimate | None = None
    gates: tuple[str, ...] = ()
    rollback: str = ""
    notes: tuple[str, ...] = ()
    contract: tuple[Expectation, ...] = ()
    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no work."""
        return not self.models and not self.removed

    @property
    def fills_only(self) -> bool:
        """Whether the plan only fills gaps: it needs no workspace and no promotion."""
        return not self.removed and not any(model.moves for model in self.models)

    @property
    def model_count(self) -> int:
        """How many models it is about, those that it removes among them."""
        return len(self.models) + len(self.removed)

    @property
    def canaries(self) -> CellsByModel:
        """The cells that are built, audited and compared before the others, by model."""
        return CellsByModel({planned.model: planned.canaries for planned in self.models})

    @property
    def batch_cells(self) -> dict[str, int]:
        """How many cells a batch has at most, by model; none where the plan sets no limit."""
        sizes = {
            planned.model: planned.batch_size.cells for planned in self.models if planned.batch_size
        }
        return {name: cells for name, cells in sizes.items() if cells is not None}

    def model(self, name: str) -> ModelPlan | None:
        """What it does to a model; None for one that it leaves alone."""
        return next((planned for planned in self.models if planned.model == name), None)
