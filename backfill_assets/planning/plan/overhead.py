"""Estimate what a plan takes beside its batches: its start, and its promotion.

    start      the command itself, Spark, the look at the sources, and the first batch of a process,
               which is slower than others
    promotion  comparing and checking after the last batch, then copying files and moving the pointers,
               for which no Spark is started

Both are learned from recorded operations. While there are none, the constants below count: the measured
CPU seconds of a start of Spark, a first and a later batch, shared by two idle cores. The ratio of the
recorded starts of Spark to the constant tells how much slower or faster this machine is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Strategy
from backfill_assets.snapshots.timing import APPLY, PROMOTE, RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backfill_assets.planning.plan.plan import Plan

Pair = tuple[float, float]
"""Seconds: the median, and what nine of ten cases stay below."""

MEDIAN, HIGH = 0.5, 0.9
DOUBT = 3.0
"""How far off a guess without history may be."""

_COMMAND = 1.0  # imports, opening the state, ending
_SPARK = 4.0
_COLD = 6.0  # seconds of the first batch of a process beyond those of later ones
_LOOK = 0.25
_CHECKS = 0.25
_POINTERS = 0.25
_ROWS = 1.0  # to compare the rows of one model
_ROWS_PER_CELL = 0.01
_FILES_PER_CELL = 0.005  # to copy them


@dataclass(frozen=True, slots=True)
class OperationFact:
    """The time that an operation took beside its batches.

    Attributes:
        verb: ``run``, ``apply`` or ``promote``.
        starting: seconds until Spark had started; 0 where it was not started.
        looking: seconds in which sources were looked at.
        rest: seconds of all other steps but batches: checks, comparing, publishing, recording.
        cells: that its plan named.
        by_rows: whether rows were compared, or files copied; otherwise pointers were moved.
    """

    verb: str
    starting: float = 0.0
    looking: float = 0.0
    rest: float = 0.0
    cells: int = 0
    by_rows: bool = False


@dataclass(frozen=True, slots=True)
class Overhead:
    """The time of a plan beside its batches, each part as (P50, P90) in seconds.

    Attributes:
        start: until its batches are under way.
        promotion: after its last batch, until it is published.
    """

    start: Pair
    promotion: Pair


def overhead(plan: Plan, facts: Sequence[OperationFact]) -> Overhead:
    """Estimate the time of a plan beside its batches.

    Args:
        plan: the plan.
        facts: the times of earlier plans.
    """
    slow = slowness(facts)
    command = _guessed(_COMMAND * slow)
    looks = [fact.looking for fact in facts if fact.verb in (RUN, APPLY)]
    looking = _learned(looks, _LOOK * slow)
    start = _sum(command, looking, *_computing(plan, facts, slow))
    compared, copied = _guesses(plan)
    checks = _rest(plan, facts, APPLY, (_CHECKS + compared) * slow)
    if not any(planned.build is not Build.GAP_FILL for planned in plan.models):
        return Overhead(start, checks)
    published = _rest(plan, facts, PROMOTE, (_POINTERS + copied) * slow)
    # An unprotected environment is promoted by the command that built.
    again = command if plan.protected else (0.0, 0.0)
    return Overhead(start, _sum(checks, again, published))


def _computing(plan: Plan, facts: Sequence[OperationFact], slow: float) -> tuple[Pair, ...]:
    """Estimate Spark's start and first batch; recording cells as empty needs neither."""
    if plan.request.empty or not any(planned.batches for planned in plan.models):
        return ()
    return _spark(facts), _guessed(_COLD * slow)


def by_rows(plan: Plan) -> bool:
    """Whether rows are compared, or files copied, before a plan is published."""
    return plan.request.where is not None or any(
        planned.batches
        and (planned.build is Build.IN_PLACE or planned.strategy is Strategy.COLUMN_ENRICHMENT)
        for planned in plan.models
    )


def planned_cells(plan: Plan) -> int:
    """Count the cells that a plan names, of all models."""
    return sum(batch.cells for planned in plan.models for batch in planned.batches)


def slowness(facts: Iterable[OperationFact]) -> float:
    """Estimate how much slower than the constants' machine this one is, by Spark's recorded starts."""
    took = sorted(fact.starting for fact in facts if fact.starting > 0)
    return quantile(took, MEDIAN) / _SPARK if took else 1.0


def cold_seconds(facts: Iterable[OperationFact]) -> float:
    """Estimate the seconds of a process's first batch beyond those of later ones."""
    return _COLD * slowness(facts)


def quantile(ordered: Sequence[float], part: float) -> float:
    """Give the smallest number that so large a part of ordered ones does not exceed."""
    return ordered[ceil(part * len(ordered)) - 1]


def _guesses(plan: Plan) -> tuple[float, float]:
    """Guess the seconds to compare the rows of a plan, and to copy its files."""
    if not by_rows(plan):
        return 0.0, 0.0
    cells, compares = planned_cells(plan), plan.request.where is not None
    models = sum(
        planned.strategy is Strategy.COLUMN_ENRICHMENT or compares for planned in plan.models
    )
    compared = _ROWS * models + _ROWS_PER_CELL * cells if models else 0.0
    return compared, _FILES_PER_CELL * cells


def _rest(plan: Plan, facts: Iterable[OperationFact], verb: str, guess: float) -> Pair:
    """Estimate the time of a verb beside starting, looking and building, from similar plans."""
    rows, cells = by_rows(plan), planned_cells(plan)
    similar_facts = [fact for fact in facts if (fact.verb, fact.by_rows) == (verb, rows)]
    if not similar_facts:
        return _guessed(guess)
    return _quantiles([_scaled(fact.rest, fact.cells, cells) for fact in similar_facts])


def _scaled(seconds: float, recorded_cells: int, new_cells: int) -> float:
    """Scale a time to another number of cells: half of it does not depend on that number."""
    return seconds / 2 + seconds / 2 * (new_cells / recorded_cells if recorded_cells else 1.0)


def _spark(facts: Iterable[OperationFact]) -> Pair:
    return _learned([fact.starting for fact in facts if fact.starting > 0], _SPARK)


def _learned(seconds: Sequence[float], otherwise: float) -> Pair:
    return _quantiles(seconds) if seconds else _guessed(otherwise)


def _quantiles(seconds: Iterable[float]) -> Pair:
    ordered = sorted(seconds)
    return quantile(ordered, MEDIAN), quantile(ordered, HIGH)


def _guessed(seconds: float) -> Pair:
    return seconds, seconds * DOUBT


def _sum(*pairs: Pair) -> Pair:
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
