"""What others do with the tables of sources: compact and clean them, overwrite a day, go back, make them anew, move them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from backfill_assets.models.source import WhenEmpty

if TYPE_CHECKING:
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.sales import Sales

_MOST_COMMITS = 4


def maintain_a_source(history: History) -> None:
    """Do something with the table of a source; its rows change only where it goes back to an earlier version."""
    sold = history.random.choice(history.sources)
    ways = ["compact", "clean", "checkpoint", "overwrite", "make anew"]
    # Deliveries that vanish are remembered, so that they can come back.
    way = history.random.choice(
        ways if sold is history.delivered else [*ways, "go back", "go back"]
    )
    table = DeltaTable(sold.path)
    history.say(f"{sold.source.name} at {table.version()}: {way}")
    match way:
        case "compact":
            table.optimize.compact()
        case "clean":
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        case "checkpoint":
            table.create_checkpoint()
        case "overwrite":
            sold.overwrite(history.random.choice(sold.days))
        case "go back":
            _go_back(history, sold, table)
        case _:
            sold.make_anew()


def _go_back(history: History, sold: Sales, table: DeltaTable) -> None:
    """Let the table be as it was a few commits ago, if its files of then are still there."""
    version = table.version() - history.random.randint(1, _MOST_COMMITS)
    if version < 0:
        return
    try:
        sold.go_back(version)
    except OSError as error:
        history.say(f"  not to {version}: {error}")
    else:
        history.say(f"  to {version}")


def declare_a_source_otherwise(history: History) -> None:
    """Move the table of a source to another place, or say otherwise what a cell without rows means."""
    sold, random = history.random.choice(history.sources), history.random
    if sold is history.delivered or random.random() < 0.5:
        sold.move_table(f"{sold.source.path}-moved")
        history.say(f"{sold.source.name} lies at {sold.source.path}")
    else:
        when = random.choice([each for each in WhenEmpty if each is not sold.source.when_empty])
        sold.source = replace(sold.source, when_empty=when)
        history.say(f"{sold.source.name} without rows: {when.value}")


def accept_cells_without_rows(history: History) -> None:
    """Let cells without sales or visits be right: else batches of hours that never had any fail for good."""
    for sold in (history.sales, history.visits):
        sold.source = replace(sold.source, when_empty=WhenEmpty.ACCEPT)
