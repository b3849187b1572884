"""Land every source's sample data as Delta tables below the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.pipelines.commerce import landing as commerce
from backfill_assets.pipelines.marketing import landing as marketing
from backfill_assets.pipelines.web import landing as web

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.pipelines.landed_table import LandedTable

EVENTS = 1_000_000
"""Ad events, unless told otherwise."""


def landings(*, events: int = EVENTS) -> Mapping[str, LandedTable]:
    """Give the landing of each source by its name.

    Args:
        events: how many ad events the marketing source holds.
    """
    tables = (*commerce.landings(), *marketing.landings(rows=events), *web.landings())
    return {table.source.name: table for table in tables}


LANDINGS = landings()
"""Per source name, `(spark, data_root) -> whether anything was written`, at the usual size."""


def land_all(
    spark: SparkSession,
    data_root: str | Path,
    *,
    events: int = EVENTS,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[str, ...]:
    """Land every source that is not landed yet.

    Args:
        spark: a session with Delta, its zone UTC.
        data_root: the data folder, or a URI.
        events: how many ad events.
        progress: told after each source: its name, how many are done, how many there are.

    Returns:
        The names of the sources that were written.

    Raises:
        ForeignTableError: a table lies there that we did not land.
    """
    tables = landings(events=events)
    written: list[str] = []
    for done, (name, land) in enumerate(tables.items(), start=1):
        if land(spark, data_root):
            written.append(name)
        if progress is not None:
            progress(name, done, len(tables))
    return tuple(written)
