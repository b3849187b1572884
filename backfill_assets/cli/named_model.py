"""The model that a command is about, and its cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.parse_range import ReversedRangeError, parse_interval
from backfill_assets.intervals.partition_keys import PartitionKeyError
from backfill_assets.models.graph import unknown_model

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


def model_named(graph: Graph, name: str) -> Model:
    """Give the model of a name.

    Raises:
        RequestError: there is no such model; it names a similar one.
        RequestError: it is a source.
    """
    if name in graph.sources:
        raise RequestError(
            found=f"'{name}' is a source: another system writes it, and this project does not fill it",
            do="name a model",
        )
    if name not in graph.models:
        raise unknown_model(name, graph.models)
    return graph.models[name]


def published_model(run: RunContext, name: str) -> Model:
    """Give the model of a name, of what an environment publishes.

    Raises:
        RequestError: the environment publishes none of that name; of one that was declared before it names the
            command that tells what became of it.
    """
    known = {*run.graph.models, *run.graph.sources}
    if name not in known and run.store.snapshots.last_model(name) is not None:
        raise RequestError(
            found=f"environment '{run.environment.name}' does not publish model '{name}', which is not declared any more",
            do=f"`backfill history {name}` lists what became of it",
        )
    return model_named(run.graph, name)


def cells_named(cadence: Cadence, text: str) -> IntervalSet:
    """Read a partition key, or two keys or dates with `..` between them, as whole cells.

    Raises:
        PartitionKeyError: a single text is not the key of a cell.
        InstantFormatError: one of two texts is neither a key nor a date.
        ReversedRangeError: the second one is before the first.
        RequestError: one of the two lacks.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return IntervalSet.of([cadence.cell(text)])
    if not (first and last):
        lacking = "start" if last else "end" if first else "bounds"
        raise RequestError(
            found=f"the range '{text}' has no {lacking}",
            expected="two partition keys or dates with `..` between them, both included",
        )
    try:
        span = (cadence.cell(first).start, cadence.cell(last).end)
    except PartitionKeyError:
        interval = parse_interval(first, last, cadence)
        return IntervalSet.of([Interval(cadence.floor(interval.start), cadence.ceil(interval.end))])
    if span[1] <= span[0]:
        raise ReversedRangeError(first, last)
    return IntervalSet.of([Interval(*span)])
