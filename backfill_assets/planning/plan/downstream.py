"""Find the ready cells that read planned cells, and must follow if those really change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Why
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.planning.rule.reopening import reopened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.planning.change.model_change import Changes
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.model_cells import ModelCells
    from backfill_assets.planning.plan.restating import Restated
    from backfill_assets.snapshots.state_view import StateView


@dataclass(slots=True)
class Downstream:
    """Follows planned cells from model to model; call it upstream first.

    Attributes:
        planned: what the environment is to run, and what it publishes.
        changes: the change of each model.
        wrong: what was declared wrong.
        view: what the workspace finds before anything is built.
        cells: of each model; those that may have to follow are added.
        unsettled: per model, planned cells that may change by more than its own edit.
    """

    planned: PlannedGraph
    changes: Changes
    wrong: Restated
    view: StateView
    cells: Mapping[str, ModelCells]
    unsettled: CellsByModel = field(default_factory=CellsByModel)

    def follow(self, name: str) -> None:
        """Plan the ready cells that read planned ones: only if those really change."""
        model_cells, model = self.cells[name], self.planned.models[name]
        if name in self.planned.chosen:
            self._may_follow(name, model, model_cells)
        self.unsettled |= {name: self._unsettled(name, model, model_cells)}

    def _may_follow(self, name: str, model: Model, model_cells: ModelCells) -> None:
        for definition, made in self.view.definitions_of(model, model_cells.ready):
            for upstream, upstream_model in self.planned.upstreams_of(definition):
                changed = self._may_change(name, upstream.name)
                cells = self._reading(definition, upstream, upstream_model, changed) & made
                model_cells.add(
                    Why.UPSTREAM_CHANGED, cells, f"if {upstream.name} changes", certain=False
                )
        if model.in_order:
            later = onward(model_cells.cells, model_cells.life) & model_cells.ready
            model_cells.add(
                Why.UPSTREAM_CHANGED, later, "if its own earlier cells change", certain=False
            )
        if any(self._is_whole_and_moves(up.name) for up, _ in self.planned.upstream_models(name)):
            cells_in_question = self.wrong.spread[name] & model_cells.ready
            model_cells.add(
                Why.UPSTREAM_CHANGED,
                cells_in_question,
                "if what it reads as a whole changes",
                certain=False,
            )

    def _is_whole_and_moves(self, name: str) -> bool:
        whole = self.planned.models[name].cadence.unit is Unit.WHOLE
        return whole and bool(self.cells[name].cells)

    def _may_change(self, name: str, upstream: str) -> IntervalSet:
        """Give the upstream cells whose content may become another one than is published."""
        if self.changes.models[upstream].new_version and self.changes.models[name].new_version:
            return self.cells[upstream].cells
        return self.unsettled[upstream]

    def _unsettled(self, name: str, model: Model, model_cells: ModelCells) -> IntervalSet:
        """Give the planned cells that may change by more than the model's own change.

        A new table also differs from the published one where the latter has a gap, is stale or wrong,
        and where its upstreams move.
        """
        if not self.changes.models[name].new_version or not model_cells.cells:
            return model_cells.cells
        published = self.planned.published
        rule = needs_work(self.planned.graph, published, model, now=self.planned.now)
        parts = [
            model_cells.cells - published.ready(name),
            rule.stale_cells,
            published.owed[name],
            self.wrong.spread[name],
            *(
                self._reading(model, upstream, upstream_model, self.unsettled[upstream.name])
                for upstream, upstream_model in self.planned.upstream_models(name)
            ),
        ]
        cells = IntervalSet.union_all(parts) & model_cells.cells
        return onward(cells, model_cells.life) & model_cells.cells if model.in_order else cells

    def _reading(
        self, model: Model, upstream: Upstream, upstream_model: Model, changed: IntervalSet
    ) -> IntervalSet:
        ready = self.view.ready(model.name) | self.planned.published.ready(model.name)
        return reopened(model, upstream, upstream_model.cadence, changed, ready)
