"""Twelve models of forty days that all hold the number of their generation, which BENCH_GENERATION says."""

from __future__ import annotations

import os

from backfill_assets import (
    Column,
    Daily,
    IncrementalByTimeRange,
    Model,
    Source,
    SqlQuery,
    TimeColumns,
)

MODELS_AT_ONCE = 12
_LIFE = Daily(start="2024-01-01", end="2024-02-09")
_GENERATION = os.environ.get("BENCH_GENERATION", "1")  # noqa: TID251 - the edit between two plans
_DAY, _SEEN = Column("ds", "date"), Column("generation", "bigint")

landed = Source(
    name="bench.landed",
    path="sources/bench/landed",
    cadence=_LIFE,
    columns=[_DAY, Column("id", "bigint")],
    times=TimeColumns(event="ds"),
)


def _model(number: int) -> Model:
    return Model(
        name=f"bench.m{number:02d}",
        query=SqlQuery(
            f"SELECT ds, CAST({_GENERATION} AS BIGINT) AS generation FROM bench.landed "  # noqa: S608
            "WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds"
        ),
        kind=IncrementalByTimeRange(time_column="ds"),
        cadence=_LIFE,
        upstreams=["bench.landed"],
        grain="one row per day",
        unique_key=["ds"],
        columns=[_DAY, _SEEN],
        owner="team:bench",
    )


MODELS, SOURCES = tuple(_model(number) for number in range(MODELS_AT_ONCE)), (landed,)
