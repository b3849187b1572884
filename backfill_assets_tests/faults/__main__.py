"""`python -m backfill_assets_tests.faults [--kills N]`: what `make faults` runs; see docs/faults.md."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets_tests.faults.bases import Bases
from backfill_assets_tests.faults.campaign import Campaign, live
from backfill_assets_tests.faults.cases import life_of_faults, short_life, slow_life, storm_case
from backfill_assets_tests.faults.chorus import chorus
from backfill_assets_tests.faults.engine import start_engine
from backfill_assets_tests.faults.queue_life import queue_life
from backfill_assets_tests.faults.servers import on_connect, on_postgres
from backfill_assets_tests.faults.trials import Bench
from backfill_assets_tests.protocol.report import explore_protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.faults.trials import Outcome


def main() -> int:
    """Run the short form, or the long one until so many processes were killed."""
    asked = _arguments().parse_args()
    protocol = explore_protocol(Campaign.say)
    scratch = asked.results.resolve() if asked.results else Path(tempfile.mkdtemp(prefix="faults-"))
    scratch.mkdir(parents=True, exist_ok=True)
    spark, engine = start_engine(scratch / "spark")
    campaign = Campaign(scratch / "results.jsonl")
    bench = Bench(Bases(scratch / "bases", engine), spark, scratch / "trials")
    if asked.kills:
        live(bench, campaign, kills=asked.kills, seed=asked.seed)
        for name, made in long_lives(bench).items():
            campaign.once(name, made)
    else:
        campaign.once("life short", lambda: short_life(bench))
        campaign.once("storm of two times 20 commits", lambda: storm_case(bench, 20))
    code = campaign.close(protocol)
    spark.stop()
    if not asked.results and code == 0:
        shutil.rmtree(scratch)
    return code


def long_lives(bench: Bench) -> dict[str, Callable[[], Outcome]]:
    """Give what is tried once: faults that kill nobody, servers, and Dagster's services."""
    return {
        "life of faults": lambda: life_of_faults(bench),
        "life slow": lambda: slow_life(bench),
        "storm of two times 300 commits": lambda: storm_case(bench, 300),
        "life PostgreSQL 1": lambda: on_postgres(bench, "1"),
        "life Connect 1": lambda: on_connect(bench, "1"),
        "all at once 1": lambda: chorus(bench, "1"),
        "queue 1": lambda: queue_life(bench, "1", kills=10),
    }


def _arguments() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="faults", description=__doc__)
    found.add_argument("--kills", type=int, default=0, help="The long form: until so many.")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--results", type=Path, help="A folder; a run that was stopped goes on.")
    return found


if __name__ == "__main__":
    sys.exit(main())
