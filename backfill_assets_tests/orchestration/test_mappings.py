"""Dagster's mapping of a lookback holds every cell that the planner reads, and no other where exact."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, cast

import dagster as dg
import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import (
    Cadence,
    Daily,
    Hourly,
    IntervalSet,
    Monthly,
    Unit,
    Weekly,
    Whole,
)
from backfill_assets.models.cells import cells_read
from backfill_assets.models.upstream import OwnCells, Upstream, own_cells
from backfill_assets.orchestration.mappings import (
    compile_lookback,
    dependency,
    self_dependency,
)
from backfill_assets.orchestration.partitions import (
    partitions_of,
)
from backfill_assets_tests.intervals.test_dagster_keys import ZONES

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., Cadence]
Lookback = int | OwnCells

MAKERS = (Hourly, Daily, Weekly, Monthly)
KEY = dg.AssetKey(["toy", "upstream"])
NOW = datetime(2024, 12, 20, 13, tzinfo=UTC)

lookbacks = st.one_of(st.integers(0, 40), st.integers(0, 3).map(own_cells))
starts = st.sampled_from(["2023-12-20", "2024-01-01", "2024-01-17"])
moments = st.integers(0, 315 * 24).map(
    lambda hours: datetime(2024, 1, 10, tzinfo=UTC) + timedelta(hours=hours)
)


def mapped(own: Cadence, upstream: Upstream, theirs: Cadence, key: str) -> set[str]:
    """What Dagster says that one partition reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        mapping = dependency(own, upstream, theirs, KEY).partition_mapping
    assert type(mapping) is dg.TimeWindowPartitionMapping  # the daemon loses a subclass
    return _keys(mapping, own, theirs, key)


def _keys(
    mapping: dg.TimeWindowPartitionMapping, own: Cadence, theirs: Cadence, key: str
) -> set[str]:
    mine, others = partitions_of(own), partitions_of(theirs)
    assert mine is not None
    assert others is not None
    result = mapping.get_upstream_mapped_partitions_result_for_partitions(
        mine.subset_with_partition_keys([key]), mine, others, current_time=NOW
    )
    assert not result.required_but_nonexistent_subset
    return set(result.partitions_subset.get_partition_keys())


def read(own: Cadence, upstream: Upstream, theirs: Cadence, key: str) -> set[str]:
    """What the planner says that one cell reads, of what exists now."""
    cells = cells_read(own, upstream, theirs, IntervalSet.of([own.cell(key)]), until=NOW)
    return {theirs.key(cell) for cell in theirs.cells(cells) if cell.end <= NOW}


@given(
    own=st.sampled_from(MAKERS),
    theirs=st.sampled_from(MAKERS),
    lookback=lookbacks,
    zone=st.sampled_from(ZONES),
    begin=starts,
    moment=moments,
)
def test_dagster_maps_to_every_cell_that_is_read_and_to_those_only_where_exact(
    own: Make, theirs: Make, lookback: Lookback, zone: str, begin: str, moment: datetime
):
    reader, source = own(start="2024-01-01", tz=zone), theirs(start=begin, tz=zone)
    upstream = Upstream("toy.upstream", lookback=lookback)
    [cell] = reader.cells(_at(moment))
    key = reader.key(cell)

    ours, dagsters = read(reader, upstream, source, key), mapped(reader, upstream, source, key)

    assert ours <= dagsters
    if compile_lookback(reader, upstream, source).exact:
        assert ours == dagsters


def _at(moment: datetime) -> IntervalSet:
    second = int(moment.timestamp())
    return IntervalSet.of_pairs([(second, second + 1)])


@pytest.mark.parametrize(
    ("own", "lookback", "theirs", "offset"),
    [
        (Daily, 6, Daily, -6),
        (Daily, 48, Hourly, -2),
        (Daily, 3, Hourly, -1),
        (Hourly, 1, Daily, -24),
        (Monthly, own_cells(1), Daily, -1),
        (Weekly, 14, Daily, -2),
        (Daily, 1, Monthly, -31),
    ],
)
def test_a_lookback_counts_in_cells_of_its_reader(
    own: Make, lookback: Lookback, theirs: Make, offset: int
):
    compiled = compile_lookback(own(), Upstream("toy.upstream", lookback=lookback), theirs())

    assert compiled.start_offset == offset
    assert compiled.exact == ((own, lookback) not in {(Daily, 3), (Daily, 1)})


def test_the_last_day_of_a_long_month_reads_the_month_before_where_clocks_change():
    days, months = (make(start="2024-01-01", tz="Europe/Berlin") for make in (Daily, Monthly))
    compiled = compile_lookback(days, Upstream("toy.upstream", lookback=1), months)
    assert compiled.start_offset <= -31


def test_a_cell_reads_all_cells_of_an_upstream_in_another_zone():
    """A superset: so in one backfill of both the reader waits for each targeted cell of its upstream."""
    dep = dependency(Daily(tz="Europe/Berlin"), Upstream("toy.upstream"), Daily(), KEY)

    assert dep.partition_mapping == dg.AllPartitionMapping()


STARTS = {Hourly: "2024-03-31", Daily: "2024-03-25", Weekly: "2024-03-04", Monthly: "2024-02-01"}
CADENCES = {
    f"{make.__name__}_{zone}": make(start=start, end="2024-03-31", tz=f"Europe/{zone}")
    for make, start in STARTS.items()
    for zone in ("Berlin", "London")
} | {"Whole": Whole()}


@pytest.mark.parametrize("own", CADENCES)
def test_dagster_loads_and_runs_a_reader_of_every_cadence_and_zone(own: str, tmp_path: Path):
    """Its upstreams are materialized: before a step runs, Dagster asks its mappings for their cells."""
    cadence, reads = CADENCES[own], Upstream("toy.upstream", lookback=2)
    upstreams = [_asset(name, theirs) for name, theirs in CADENCES.items()]
    readers = [
        _asset(f"reads_{name}", cadence, dependency(cadence, reads, theirs, _key(name)))
        for name, theirs in CADENCES.items()
    ]
    if cadence.unit is not Unit.WHOLE:
        readers.append(_asset("itself", cadence, self_dependency(reads, _key("itself"))))
    every = [*upstreams, *readers]
    dg.Definitions.validate_loadable(dg.Definitions(assets=every))

    with dg.DagsterInstance.ephemeral(str(tmp_path)) as instance:
        for name, theirs in CADENCES.items():
            newest = dg.AssetMaterialization(_key(name), partition=_ends(theirs)[1])
            instance.report_runless_asset_event(newest)
        first, last = _ends(cadence)
        begin, end = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
        run = dg.materialize(
            every,
            selection=readers,
            tags={begin: first, end: last} if first and last else {},
            instance=instance,
            raise_on_error=False,
        )

    assert run.success, [event.message for event in run.all_events if event.is_failure]


def _asset(name: str, cadence: Cadence, *deps: dg.AssetDep) -> dg.AssetsDefinition:
    @dg.asset(
        key=_key(name),
        deps=deps,
        partitions_def=partitions_of(cadence),
        backfill_policy=dg.BackfillPolicy.single_run(),
        dagster_type=cast("dg.DagsterType", dg.Nothing),
    )
    def nothing() -> None: ...

    return nothing


def _key(name: str) -> dg.AssetKey:
    return dg.AssetKey(["toy", name])


def _ends(cadence: Cadence) -> tuple[str | None, str | None]:
    """The first and the last partition; none of an unpartitioned asset."""
    partitions = partitions_of(cadence)
    if partitions is None:
        return None, None
    return partitions.get_first_partition_key(), partitions.get_last_partition_key()


def test_a_model_reads_earlier_cells_of_itself_and_never_the_same_one():
    days = Daily(start="2024-01-01")

    mapping = self_dependency(Upstream("toy.upstream", lookback=2), KEY).partition_mapping

    assert isinstance(mapping, dg.TimeWindowPartitionMapping)
    assert _keys(mapping, days, days, "2024-01-10") == {"2024-01-08", "2024-01-09"}


@given(
    make=st.sampled_from(MAKERS),
    zone=st.sampled_from(ZONES),
    start=st.dates(date(2023, 11, 1), date(2024, 4, 15)),
    days=st.one_of(st.none(), st.integers(1, 60)),
    moment=moments,
)
def test_the_partitions_of_a_life_are_its_cells_however_it_starts_and_ends(
    make: Make, zone: str, start: date, days: int | None, moment: datetime
):
    end = None if days is None else (start + timedelta(days=days)).isoformat()
    cadence = make(start=start.isoformat(), end=end, tz=zone)
    partitions = partitions_of(cadence)
    assert partitions is not None

    theirs = partitions.get_partition_keys(current_time=moment)

    limit = min(moment, cadence.end or moment)
    ours = [
        cadence.key(cell)
        for cell in cadence.cells(_between(cadence.start or moment, limit))
        if cell.end <= limit
    ]
    assert theirs == ours


def _between(start: datetime, end: datetime) -> IntervalSet:
    if end <= start:
        return IntervalSet.empty()
    return IntervalSet.of_pairs([(int(start.timestamp()), int(end.timestamp()))])


def test_five_minutes_have_no_partitions_and_the_message_names_what_has():
    with pytest.raises(DeclarationError, match="Hourly, Daily, Weekly, Monthly or Whole"):
        partitions_of(Cadence(Unit.MINUTE5, start=NOW))
