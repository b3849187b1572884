"""Slots: how many batches may be in flight at once, and which batches hold one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet

ALL = "all"
"""The scope of the limit over everything."""


def model_scope(model: str) -> str:
    """Name the limit of one model, over all environments, runs and processes."""
    return f"model:{model}"


def plan_scope(plan_id: str) -> str:
    """Name the limit of one plan."""
    return f"plan:{plan_id}"


def scope_words(scope: str) -> str:
    """Name the scope of a limit in words."""
    kind, _, name = scope.partition(":")
    return f"{kind} {name}" if name else "everything"


@dataclass(frozen=True, slots=True)
class Slots:
    """The declared limits of a batch; a limit that a person has set wins over them.

    Attributes:
        model: how many batches of its model may be in flight; None for any number.
        overall: how many batches altogether; None for any number.
    """

    model: int | None = None
    overall: int | None = None


@dataclass(frozen=True, slots=True)
class InFlightBatch:
    """A batch that holds a slot: opened, not ended, and heard of within the lease.

    Attributes:
        batch_id: its id.
        model: what it builds.
        version: the table that it writes.
        plan_id: the plan that it serves; None for a gap fill.
        run_id: the run that carries it.
        stretches: its own cells.
        since: when it was opened.
    """

    batch_id: str
    model: str
    version: str
    plan_id: str | None
    run_id: str
    stretches: IntervalSet
    since: datetime
