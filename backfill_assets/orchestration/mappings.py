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
from backfill_assets.models.upstream import OwnCells, Upstream

_LONGEST_HOURS = {Unit.HOUR: 1, Unit.DAY: 25, Unit.WEEK: 7 * 24 + 1, Unit.MONTH: 31 * 24 + 1}
_SHORTEST_HOURS = {Unit.HOUR: 1, Unit.DAY: 23, Unit.WEEK: 7 * 24 - 1, Unit.MONTH: 28 * 24 - 1}


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
    if isinstance(upstream.lookback, OwnCells):
        return CompiledLookback(-upstream.lookback.count, exact=True)
    if upstream.lookback == 0:
        return CompiledLookback(0, exact=True)
    if own.unit is theirs.unit:
        return CompiledLookback(-upstream.lookback, exact=True)
    hours = upstream.lookback * _LONGEST_HOURS[theirs.unit]
    return CompiledLookback(-math.ceil(hours / _SHORTEST_HOURS[own.unit]), exact=False)


def dependency(own: Cadence, upstream: Upstream, theirs: Cadence, key: dg.AssetKey) -> dg.AssetDep:
    """Declare one upstream to Dagster.

    Cells in different zones have no built-in mapping: such an upstream is a plain dependency, and
    our planner alone orders its cells.
    """
    whole = Unit.WHOLE in (own.unit, theirs.unit)
    if whole or own.tz != theirs.tz:
        return dg.AssetDep(key)
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=compile_lookback(own, upstream, theirs).start_offset,
        end_offset=0,
        allow_nonexistent_upstream_partitions=True,
    )
    return dg.AssetDep(key, partition_mapping=mapping)


def self_dependency(upstream: Upstream, key: dg.AssetKey) -> dg.AssetDep:
    """Declare that a model reads its own earlier cells."""
    lookback = upstream.lookback
    count = lookback.count if isinstance(lookback, OwnCells) else lookback
    mapping = dg.TimeWindowPartitionMapping(start_offset=-max(count, 1), end_offset=-1)
    return dg.AssetDep(key, partition_mapping=mapping)
