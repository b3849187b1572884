"""Mappings: a lookback compiled to Dagster's built-in time-window mapping.

Offsets count in the reader's grain, in both directions. Where the reader's grain can't say the
lookback exactly, the mapping is the next larger one: Dagster then orders a little more than it must
and our planner, which is always exact, decides what is computed. Never a subclass: the daemon would
lose it.
"""

import math
from dataclasses import dataclass

import dagster as dg

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.cells import counted_in
from backfill_assets.models.upstream import Upstream

_HOURS = {Unit.HOUR: 1, Unit.DAY: 24, Unit.WEEK: 7 * 24}
_LONGEST_MONTH, _SHORTEST_MONTH = 31 * 24, 28 * 24
_CLOCK_CHANGE = 1
"""Hours by which a local day may be longer or shorter than a day."""


@dataclass(frozen=True, slots=True)
class CompiledLookback:
    """What a lookback becomes.

    Attributes:
        start_offset: earlier cells of the reader's grain, as a number not above zero.
        exact: whether Dagster's mapping then is exactly what the planner reads.
    """

    start_offset: int
    exact: bool


def compile_lookback(own: Cadence, upstream: Upstream, theirs: Cadence) -> CompiledLookback:
    """Count a lookback in the reader's cells, rounded up where it doesn't divide."""
    lookback, counted = upstream.cells_back, counted_in(own, upstream, theirs)
    if lookback == 0 or own.unit is counted.unit:
        return CompiledLookback(-lookback, exact=True)
    if own.tz == "UTC" and own.unit in _HOURS and theirs.unit in _HOURS:
        hours, remainder = divmod(lookback * _HOURS[theirs.unit], _HOURS[own.unit])
        return CompiledLookback(-hours - bool(remainder), exact=not remainder)
    hours = lookback * _longest(theirs)
    return CompiledLookback(-math.ceil(hours / _shortest(own)), exact=False)


def _longest(cadence: Cadence) -> int:
    hours = _HOURS.get(cadence.unit, _LONGEST_MONTH)
    return hours + (_CLOCK_CHANGE if _moves(cadence) else 0)


def _shortest(cadence: Cadence) -> int:
    hours = _HOURS.get(cadence.unit, _SHORTEST_MONTH)
    return hours - (_CLOCK_CHANGE if _moves(cadence) else 0)


def _moves(cadence: Cadence) -> bool:
    return cadence.tz != "UTC" and cadence.unit is not Unit.HOUR


def dependency(own: Cadence, upstream: Upstream, theirs: Cadence, key: dg.AssetKey) -> dg.AssetDep:
    """Declare one upstream to Dagster.

    A time-window mapping refuses cells in different zones, and Dagster takes one for a dependency
    without a mapping. There each cell reads all cells of the upstream: the mapping that holds those
    which the planner reads, and that Dagster keeps as one value however many they are.
    """
    if Unit.WHOLE in (own.unit, theirs.unit):
        return dg.AssetDep(key)
    if own.tz != theirs.tz:
        return dg.AssetDep(key, partition_mapping=dg.AllPartitionMapping())
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=compile_lookback(own, upstream, theirs).start_offset,
        end_offset=0,
        allow_nonexistent_upstream_partitions=True,
    )
    return dg.AssetDep(key, partition_mapping=mapping)


def self_dependency(upstream: Upstream, key: dg.AssetKey) -> dg.AssetDep:
    """Declare that a model reads its own earlier cells."""
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=-max(upstream.cells_back, 1), end_offset=-1
    )
    return dg.AssetDep(key, partition_mapping=mapping)
