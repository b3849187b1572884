"""Published cells whose source rows are gone: building them again would replace history by nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read, cells_reading
from backfill_assets.planning.plan.restating import restated_sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.state_view import StateView


@dataclass(frozen=True, slots=True)
class LostHistory:
    """Planned cells of a model that are published, and whose rows a source has lost since.

    Attributes:
        model: whose cells they are.
        source: the source that held rows for them once.
        cells: of the model.
    """

    model: str
    source: str
    cells: IntervalSet


def lost_history(plan: Plan, graph: Graph, view: StateView) -> Iterator[LostHistory]:
    """Find published cells that a plan would build from source cells that have lost all their rows.

    A source cell counts that held rows when it was looked at, and holds none now. Cells of a source
    that the plan's own request restates are left out: the request says that they were wrong. So are
    models that keep rows whose source is gone, and cells that also read source cells with rows.

    Args:
        plan: the plan.
        graph: the models as the plan would run them.
        view: what its environment publishes, and what was seen of the sources.
    """
    named = restated_sources(plan.request, graph, plan.until)
    for planned in plan.models:
        model = graph.models.get(planned.model)
        if model is None or not planned.built_apart or not _follows_sources(model):
            continue
        published = planned.cells & view.ready(model.name)
        for upstream in model.reads:
            seen = view.sources.get(upstream.name)
            if seen is None or upstream.name not in graph.sources:
                continue
            read_as = _ReadAs(model.cadence, upstream, graph.sources[upstream.name].cadence)
            gone = seen.emptied - named[upstream.name]
            cells = read_as.only_from(gone, seen.ready, published, plan.until)
            if cells:
                yield LostHistory(model.name, upstream.name, cells)


def _follows_sources(model: Model) -> bool:
    """Whether a cell of a model becomes empty with the source cells that it reads."""
    return not model.keeps_rows and model.cadence.unit is not Unit.WHOLE


@dataclass(frozen=True, slots=True)
class _ReadAs:
    """How a model reads a source."""

    own: Cadence
    upstream: Upstream
    theirs: Cadence

    def only_from(
        self, gone: IntervalSet, held: IntervalSet, cells: IntervalSet, until: datetime
    ) -> IntervalSet:
        """Give those of the cells that read a source cell that is gone, and none that holds rows."""
        if self.theirs.unit is Unit.WHOLE:
            return IntervalSet.empty()
        reading = cells_reading(self.own, self.upstream, self.theirs, gone) & cells
        read = cells_read(self.own, self.upstream, self.theirs, reading, until=until)
        return reading - cells_reading(self.own, self.upstream, self.theirs, read & held)
