"""The request that a person makes for a plan."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backfill_assets.planning.plan.json_forms import Cells


class Category(StrEnum):
    """The effect of a model's change on the history that is published."""

    BREAKING = "breaking"
    NON_BREAKING = "non-breaking"
    FORWARD_ONLY = "forward-only"
    METADATA = "metadata"


class Strategy(StrEnum):
    """How a model's history is changed; each has its main risk and its validation signal."""

    FULL_REBUILD = "full rebuild"
    PARTITION_REPAIR = "partition repair"
    COLUMN_ENRICHMENT = "column enrichment"
    DUAL_RUN = "dual run"


class KeptRows(StrEnum):
    """What a new table does with rows that only history has: their source is gone."""

    CARRY = "carry"
    """They are taken over as they are published; a column that they lack is NULL."""
    DROP = "drop"
    """A cell holds exactly what the new logic computes of it."""


@dataclass(frozen=True, slots=True)
class Restatement:
    """A model or source that was wrong.

    Attributes:
        name: of the model or source; ``*`` alone is not one.
        start: first instant or local date, as written; None: from the beginning.
        end: last local date (included) or instant (excluded), as written; None: to the end.
    """

    name: str
    start: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a person asks of a plan; the defaults ask for all changes of the loaded models.

    Attributes:
        environment: whose history it is about.
        asked_by: who.
        reason: why, in words.
        restate: what was wrong, and over which stretch.
        restate_all_snapshots: mark it owed in every version, not just in this environment's.
        start: of the requested range, as written; None: each model's own start.
        end: of the requested range, as written; None: now.
        end_bounded: nothing past the end, whatever whole cells would add.
        ignore_cron: up to now, whatever the cron says.
        select: models: names, globs, ``+model``, ``model+``, ``tag:key=value``, ``owner:name``.
        skip_upstream: only what is selected, not what it needs from upstream.
        forward_only: changes apply from now on; no history is computed.
        effective_from: a local date: forward-only from there, what came before stays.
        empty: record the cells as ready without computing them.
        where: a SQL condition on the restated model's own columns: no other row may differ.
        cutoff: a local date: older cells keep the old definition (`reason` must say why).
        lift_cutoffs: models whose cutoff ends: their older cells get the definition that runs now.
        dual_run_days: for how many days both histories of a dual run are filled, and compared each day,
            before the plan may be promoted; 0: they are compared once.
        pause_schedules: while the plan stands, the sensor and the schedules leave the models alone that it
            changes.
        canary: build a few telling cells first, and wait for the next `apply`.
        categories: (model, category) where a person decided.
        strategies: (model, strategy) where a person decided.
        spark: (name, value) of Spark settings that the plan's batches run with, over their models'.
        launch: of runs that were launched by hand over published cells, the id that they share.
        kept_rows: of models that keep rows whose source is gone: what a new table that is not merely
            wider does with them; None without a choice.
        expect: (model, rule) of what its author expects to change, as written.
        late: (model, cells) of an automatic plan: stale cells inside of late windows, and nothing
            else, are built again.
    """

    environment: str
    asked_by: str = ""
    reason: str = ""
    restate: tuple[Restatement, ...] = ()
    restate_all_snapshots: bool = False
    start: str | None = None
    end: str | None = None
    end_bounded: bool = False
    ignore_cron: bool = False
    select: tuple[str, ...] = ()
    skip_upstream: bool = False
    forward_only: bool = False
    effective_from: str | None = None
    empty: bool = False
    where: str | None = None
    cutoff: str | None = None
    dual_run_days: int = 0
    pause_schedules: bool = False
    canary: bool = False
    categories: tuple[tuple[str, Category], ...] = ()
    strategies: tuple[tuple[str, Strategy], ...] = ()
    spark: tuple[tuple[str, str], ...] = ()
    lift_cutoffs: tuple[str, ...] = ()
    launch: str = ""
    kept_rows: KeptRows | None = None
    late: tuple[tuple[str, Cells], ...] = ()
    expect: tuple[tuple[str, str], ...] = ()
