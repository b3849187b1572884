"""Report changed cells to Dagster; a failed report never fails the command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from backfill_assets.cli.output import err, say
from backfill_assets.cli.progress import AT_WORK
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.intervals.text import counted
from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from backfill_assets.cli.operating import Operating


def tell_quietly(at: Operating, environment: str) -> None:
    """Report changed cells to the instance that DAGSTER_HOME names, if it names one.

    Dagster's assets show what prod publishes: other environments are not reported to it.
    """
    if "DAGSTER_HOME" not in os.environ or environment != PROD:
        return
    try:
        from backfill_assets.cli.verbs.report import tell_dagster  # noqa: PLC0415 - Dagster is slow to start

        with AT_WORK.at(Phase.RECORDING, "in Dagster"):
            cell_count = tell_dagster(at.run(environment))
    except Exception as error:  # noqa: BLE001 - the command has done its work; Dagster can be told later
        say(f"Dagster was not told: {error}; `backfill report` does it", to=err, style="yellow")
    else:
        say(f"told Dagster of {counted(cell_count, 'cell')}", to=err)
