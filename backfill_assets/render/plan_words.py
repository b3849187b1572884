"""The words for the parts of a plan, the same in every form in which it is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from backfill_assets.intervals.text import counted, ranges_list, ranges_text
from backfill_assets.planning.plan.batch_size import SizedBy
from backfill_assets.planning.plan.plan import Build, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import CellWork, Estimate, ModelPlan, Plan
    from backfill_assets.planning.plan.request import PlanRequest, Restatement

ADDED, MODIFIED, INDIRECT, AGAIN, POINTER, FILL, REMOVED = "+~≈↻○·-"
LEGEND = (
    (ADDED, "+", "added"),
    (MODIFIED, "~", "modified"),
    (INDIRECT, "i", "indirectly modified"),
    (AGAIN, "r", "restated, owed or overtaken"),
    (POINTER, "o", "pointer only"),
    (FILL, ".", "gap fill"),
    (REMOVED, "-", "removed"),
)
"""Every symbol, what stands for it where only ASCII can be written, and what it means."""
_MINUTE, _HOUR = 60, 3600


def _unknown(_name: str) -> None:
    """Know the cadence of no model that is declared no more."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How the cells of models are counted and named.

    Attributes:
        cadences: by model and source; a model that is declared no more has none.
        past: gives the cadence that such a model had; where it has none, cells are named by their instants.
    """

    cadences: Mapping[str, Cadence]
    past: Callable[[str], Cadence | None] = _unknown

    def of_models(self, models: Mapping[str, Model]) -> Naming:
        """Name the cells of these models by their own cadences."""
        cadences = {name: model.cadence for name, model in models.items()}
        return replace(self, cadences={**self.cadences, **cadences})

    def count(self, model: str, cells: IntervalSet) -> int:
        """How many cells."""
        cadence = self._cadence(model)
        return cadence.count(cells) if cadence else len(cells)

    def ranges(self, model: str, cells: IntervalSet, limit: int = 3) -> str:
        """Name them as ranges of partition keys."""
        cadence = self._cadence(model)
        return ranges_text(cadence, cells, limit) if cadence else str(cells)

    def in_full(self, model: str, cells: IntervalSet) -> str:
        """Name them as ranges of partition keys, none left out."""
        return self.ranges(model, cells, limit=len(cells))

    def by_model(self, cells: CellsByModel) -> dict[str, str]:
        """Name the cells of each model as ranges of partition keys, none left out."""
        return {name: self.in_full(name, own) for name, own in cells.items()}

    def listed(self, cells: CellsByModel) -> dict[str, list[str]]:
        """Name every range of partition keys by model, none left out."""
        return {name: self.all_ranges(name, own) for name, own in cells.items()}

    def all_ranges(self, model: str, cells: IntervalSet) -> list[str]:
        """Name every range of partition keys, none left out."""
        cadence = self._cadence(model)
        return ranges_list(cadence, cells) if cadence else [str(interval) for interval in cells]

    def _cadence(self, model: str) -> Cadence | None:
        return self.cadences.get(model) or self.past(model)


def naming_of(graph: Graph, past: Callable[[str], Cadence | None] = _unknown) -> Naming:
    """Name cells by the cadences of the loaded models and sources, and of what these were before.

    Args:
        graph: the loaded models and sources.
        past: gives the cadence of a model that is declared no more.
    """
    cadences = {name: model.cadence for name, model in graph.models.items()}
    sources = {name: source.cadence for name, source in graph.sources.items()}
    return Naming(cadences | sources, cache(past))


def ranges_by_model(graph: Graph, cells: CellsByModel) -> dict[str, str]:
    """Name the first ranges of each model's cells, for an event or an error."""
    naming = naming_of(graph)
    return {name: naming.ranges(name, own, limit=5) for name, own in cells.items()}


def symbol(planned: ModelPlan) -> str:
    """Give the sign that stands before a model."""
    if planned.build is Build.POINTER:
        return POINTER
    if planned.build is Build.GAP_FILL and planned.change is Change.UNCHANGED:
        return FILL
    return {
        Change.ADDED: ADDED,
        Change.MODIFIED: MODIFIED,
        Change.INDIRECT: INDIRECT,
        Change.UNCHANGED: AGAIN,
    }[planned.change]


def plain_symbols(text: str) -> str:
    """Write a text's symbols with signs that every terminal has."""
    return text.translate({ord(sign): plain for sign, plain, _ in LEGEND})


def work_text(naming: Naming, model: str, work: CellWork, limit: int) -> str:
    """Say which cells need work and why; certain ones are listed apart from the others."""
    return f"{naming.ranges(model, work.cells, limit)}  {reason_text(work)}"


def reason_text(work: CellWork) -> str:
    """Say why cells need work, and whether that is certain."""
    why, because = work.why.value, work.because
    reason = because if why in because else f"{why}: {because}" if because else why
    if work.certain:
        return reason
    if because.startswith("if "):
        return f"{why}: only {because}"
    return f"{reason}, if its input changes"


_SIZED = {
    SizedBy.DECLARED: "batch_size",
    SizedBy.IN_ORDER: "it reads its own earlier cells",
    SizedBy.BYTES: "batch_size is not declared",
    SizedBy.NOTHING: "batch_size is not declared, and no bytes of its inputs are recorded",
}


def batches_text(planned: ModelPlan) -> str:
    """Say in how many batches a model is built, and what decides how large they are."""
    batches, size = counted(len(planned.batches), "batch", "batches"), planned.batch_size
    if size is None:
        return batches
    if size.cells is None:
        return f"{batches}, consecutive cells together ({_SIZED[size.by]})"
    of = f"{batches} of up to {counted(size.cells, 'cell')}"
    if size.bytes_per_cell:
        cells = max((batch.cells for batch in planned.batches), default=size.cells)
        of += (
            f", about {bytes_text(min(cells, size.cells) * size.bytes_per_cell)} of its inputs each"
        )
    return f"{of} ({_SIZED[size.by]})"


def nothing_text(planned: ModelPlan) -> str:
    """Describe a plan's effect on a model of which no cell is computed."""
    what = "the table goes on" if planned.build is Build.IN_PLACE else planned.build.value
    return f"nothing is computed: {what}"


def category_text(planned: ModelPlan) -> str:
    """Write the category of a model's change, its reason, and who decided it."""
    category = planned.category.value if planned.category else planned.change.value
    reason = f": {planned.category_reason}" if planned.category_reason else ""
    return f"{category}{reason} (decided by {planned.decided_by})"


def strategy_texts(planned: ModelPlan) -> tuple[str, ...]:
    """Write a strategy, its main risk and its validation signal."""
    if planned.strategy is None:
        return ()
    notes = (("risk", planned.risk), ("watched", planned.signal))
    return (planned.strategy.value, *(f"{label}: {text}" for label, text in notes if text))


def estimate_text(estimate: Estimate) -> str:
    """Write an estimate, P50 and P90, and its basis."""
    middle, most = estimate.seconds
    cheap, dear = estimate.cost
    cost = f"; cost {cheap:,.2f}, at most {dear:,.2f} {estimate.currency}".rstrip() if dear else ""
    return (
        f"{seconds_text(middle)} (P50), {seconds_text(most)} (P90){parts_text(estimate)}{cost}; "
        f"reads {bytes_text(estimate.bytes_read)}; rests on {estimate.rests_on}"
    )


def parts_text(estimate: Estimate) -> str:
    """Write the parts of an estimate; empty for an estimate of batches alone."""
    if not estimate.start and not estimate.promotion:
        return ""
    return (
        f": start {seconds_text(estimate.start)}, batches {seconds_text(estimate.batches)}, "
        f"promotion {seconds_text(estimate.promotion)}"
    )


def seconds_text(seconds: float) -> str:
    """Write a duration in words: ``45 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s" if whole else "under 1 s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"


def bytes_text(size: float) -> str:
    """Write a number of bytes as people read it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 - the unit's own step
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def asked_text(request: PlanRequest) -> str:
    """Write the request's options beyond the changes of the loaded models; empty without any."""
    first, last = request.start or "the start", request.end or "now"
    span = f"from {first} to {last}" if request.start or request.end else ""
    forward = (
        f"forward-only from {request.effective_from}"
        if request.effective_from
        else "forward-only" * request.forward_only
    )
    parts = (
        *(f"restate {_restated(restatement)}" for restatement in request.restate),
        "in all snapshots" * request.restate_all_snapshots,
        span,
        "end bounded" * request.end_bounded,
        "cron ignored" * request.ignore_cron,
        *_chosen(request),
        forward,
        "recorded as empty, not computed" * request.empty,
        f"only rows where {request.where}" if request.where else "",
        f"nothing before {request.cutoff}" if request.cutoff else "",
        *(f"the cutoff of {model} ends" for model in request.lift_cutoffs),
        f"dual run of {counted(request.dual_run_days, 'day')}" if request.dual_run_days else "",
        "schedules of its models paused" * request.pause_schedules,
        "canaries first" * request.canary,
        f"published cells launched in {request.launch}" if request.launch else "",
        f"kept rows: {request.kept_rows.value}" if request.kept_rows else "",
        *(f"{model} is {category.value}" for model, category in request.categories),
        *(f"{model} by {strategy.value}" for model, strategy in request.strategies),
        *(f"Spark's {key} = {value}" for key, value in request.spark),
    )
    return "; ".join(part for part in parts if part)


def _chosen(request: PlanRequest) -> tuple[str, ...]:
    """Say of which models cells are built; late data chooses cells, and allows all models for them."""
    if request.late:
        return (f"late cells of {', '.join(name for name, _ in request.late)}",)
    only = f"only {', '.join(request.select)}" if request.select else ""
    return only, "without upstream" * request.skip_upstream


def _restated(restatement: Restatement) -> str:
    if restatement.start is None and restatement.end is None:
        return restatement.name
    if restatement.start == restatement.end:
        return f"{restatement.name} {restatement.start}"
    return f"{restatement.name} {restatement.start or 'the start'}..{restatement.end or 'now'}"


def count_line(naming: Naming, plan: Plan) -> str:
    """Write the totals of a plan in one line."""
    certain = sum(naming.count(planned.model, planned.certain) for planned in plan.models)
    most = sum(naming.count(planned.model, planned.cells) for planned in plan.models)
    batches = sum(len(planned.batches) for planned in plan.models)
    parts = [
        counted(len(plan.models), "model"),
        f"{counted(certain, 'cell')} certain",
        f"{most - certain:,} more if their input changes",
        counted(batches, "batch", "batches"),
        f"{len(plan.removed):,} removed" if plan.removed else "",
        f"{len(plan.untouched):,} left alone" if plan.untouched else "",
    ]
    return f"{plan.environment}: {', '.join(part for part in parts if part)}."
