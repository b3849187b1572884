"""Find what `backfill diff` compares: a plan and what its environment reads, or two environments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.cli.output import err, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.plans.building import built_in
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.graph import unknown_model
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets.warehouse.compare.comparison_sql import Compared
from backfill_assets.warehouse.files.layers import files_read, table_read
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.log.delta_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.cli.operating import Operating
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.environment import Pointer

_PLAN_AND_MODEL, _TWO_AND_MODEL = 2, 3


_WANTED = "PLAN [MODEL], or two environments and perhaps a MODEL"


def _not_built(plan_id: str, status: PlanStatus) -> RequestError:
    if status in {PlanStatus.PROPOSED, PlanStatus.APPLYING}:
        return RequestError(
            found=f"nothing of plan {plan_id} is built yet: there is nothing to compare",
            do=f"`backfill apply {plan_id}` builds it",
        )
    return RequestError(
        found=f"plan {plan_id} is {status.value}: its data can no longer be compared"
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """One model on both sides.

    Attributes:
        model: its name.
        old: where it is read now; None where it is not read.
        new: where it would be read; None where it is removed.
        cells: those that the plan publishes, or those of a model that only one side has; None for every cell.
        plan_id: of the plan that is compared; empty for two environments.
        is_kept: whether its tables and files are there for certain: those of a published plan are kept for a while only.
    """

    model: str
    old: Pointer | None
    new: Pointer | None
    cells: IntervalSet | None = None
    plan_id: str = ""
    is_kept: bool = True


def pairs(at: Operating, names: list[str]) -> tuple[str, str, list[Pair]]:
    """Read the names, and find both sides of every model that may differ.

    Returns:
        The names of the old and the new side, and the models.

    Raises:
        RequestError: the names are not clear.
        UnknownPlanError: the first name is neither an environment nor a plan.
        RequestError: the model is not on either side.
        RequestError: the plan has built nothing.
    """
    environments = {
        environment.name
        for environment in at.store.environments.by_name()
        if not environment.is_workspace
    }
    if names[0] in environments:
        if len(names) < _PLAN_AND_MODEL or len(names) > _TWO_AND_MODEL:
            raise RequestError(
                found=f"found {' '.join(names)}",
                expected=_WANTED,
            )
        at.store.environments.get(names[1])
        before, after, differing = names[0], names[1], list(_of_environments(at, *names[:2]))
        model = names[2] if len(names) == _TWO_AND_MODEL else None
    else:
        if len(names) > _PLAN_AND_MODEL:
            raise RequestError(
                found=f"found {' '.join(names)}, but {names[0]} is not an environment",
                expected=_WANTED,
            )
        stored = kept_plan(at.store, names[0])
        before, after = stored.environment, stored.plan_id
        differing = list(_of_plan(at, read_plan(stored.content), stored.status))
        model = names[1] if len(names) == _PLAN_AND_MODEL else None
    differing = [_bounded(at, pair) for pair in differing]
    if model is None:
        return before, after, differing
    model_names = [*at.graph.models, *(pair.model for pair in differing)]
    if model not in model_names:
        raise unknown_model(model, model_names)
    return before, after, [pair for pair in differing if pair.model == model]


def _bounded(at: Operating, pair: Pair) -> Pair:
    """Restrict a model that only one side has to the cells that it has there: few rows of these need no Spark."""
    shown = pair.new or pair.old
    if shown is None or (pair.old and pair.new) or pair.cells is not None:
        return pair
    ready = at.store.versions.ready_records
    records = (
        record for layer in shown.layers for record in ready(layer.version, layer.delta_version)
    )
    return replace(pair, cells=IntervalSet.of(record.cell for record in records) or None)


def _of_environments(at: Operating, old: str, new: str) -> Iterator[Pair]:
    """Find the models that two environments read from different places."""
    before, after = at.store.environments.pointers(old), at.store.environments.pointers(new)
    for name in sorted({*before, *after}):
        there, here = before.get(name), after.get(name)
        if _place(there) != _place(here):
            yield Pair(name, there, here)


def _place(pointer: Pointer | None) -> object:
    return pointer and pointer.layers


def _of_plan(at: Operating, plan: Plan, status: PlanStatus) -> Iterator[Pair]:
    if status in OPEN:
        yield from _of_workspace(at, plan, status)
        return
    cells = {planned.model: planned.published or None for planned in plan.models}
    promoted = at.store.history.promoting_moves(plan.plan_id)
    if not promoted:
        raise _not_built(plan.plan_id, status)
    for move in promoted:
        published = cells.get(move.model)
        yield Pair(move.model, move.old, move.new, published, plan.plan_id, is_kept=False)


def _of_workspace(at: Operating, plan: Plan, status: PlanStatus) -> Iterator[Pair]:
    """Find what a plan that is not published would change; what it has not built yet is left out."""
    workspace = workspace_name(plan.plan_id)
    if not at.store.environments.exists(workspace):
        raise _not_built(plan.plan_id, status)
    before = at.store.environments.pointers(plan.environment)
    after = at.store.environments.pointers(workspace)
    remaining = at.run(workspace).left_of(plan)
    if remaining and not built_in(at.store, plan):
        raise _not_built(plan.plan_id, status)
    for planned in plan.models:
        name = planned.model
        if _place(before.get(name)) == _place(after.get(name)):
            continue
        if remaining[name]:
            named = at.naming_of(plan).ranges(name, remaining[name])
            say(f"not built yet, and left out: {name} {named}", to=err, indent=2)
        cells = planned.published - remaining[name] if planned.published else None
        yield Pair(name, before.get(name), after[name], cells, plan.plan_id)
    for name in plan.removed:
        yield Pair(name, before.get(name), None, plan_id=plan.plan_id)


def compared(at: Operating, pair: Pair) -> Compared:
    """Give both sides of a model as tables, the newer declaration with them.

    Raises:
        RequestError: it is on neither side, or `backfill gc` has deleted a table of one.
    """
    shown = pair.new or pair.old
    if shown is None:
        raise RequestError(
            found=f"{pair.model} is on neither side",
            expected=_WANTED,
        )
    if not pair.is_kept:
        _refuse_deleted_tables(at, pair)
    old_model, model = (
        at.store.snapshots.get((side or shown).fingerprint).declared for side in (pair.old, shown)
    )
    return Compared(model, _table(at, pair.old), _table(at, pair.new), old_model)


def _refuse_deleted_tables(at: Operating, pair: Pair) -> None:
    for pointer in filter(None, (pair.old, pair.new)):
        for layer in pointer.layers:
            if not at.store.versions.is_known(layer.version):
                raise _gone(pair, f"table {layer.version} was deleted by `backfill gc`")


def refuse_gone_files(both: Compared, pair: Pair) -> None:
    """Refuse to read the rows of a model where files of one side are gone: `backfill gc` deletes old ones.

    Raises:
        RequestError: some are.
    """
    if pair.is_kept or not pair.cells:
        return
    for model, table in both.sides:
        for part in files_read(model, table, pair.cells):
            if part.missing:
                raise _gone(
                    pair,
                    f"files of {part.path} are gone: `backfill gc` has deleted them, or they are lost, and "
                    "`backfill audit` names them if they are published",
                )


def _gone(pair: Pair, what: str) -> RequestError:
    return RequestError(
        found=f"plan {pair.plan_id} can't be compared any more: {what}",
        do=f"`backfill evidence report {pair.plan_id}` has what was found when they were compared",
    )


def _table(at: Operating, pointer: Pointer | None) -> Table:
    if pointer is None:
        return Table("", ABSENT)
    return table_read(at.store.views.tables(pointer), at.store.located, pointer.certain)
