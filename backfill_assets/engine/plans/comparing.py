"""Comparisons of what a plan has built with what is published, each made once.

A comparison is a fact about files: it is kept with the plan under a key that names every file of the
cells that it has read. So `apply` makes it while Spark is warm, and `promote` makes again only what
reads other files by then.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.review.compared import KEPT, Measured, Shown
from backfill_assets.models.codec import dumps, loads
from backfill_assets.warehouse.compare.compare import OutsideRows, compare, rows_outside
from backfill_assets.warehouse.compare.comparison_sql import Compared
from backfill_assets.warehouse.files.layers import files_read
from backfill_assets.warehouse.rows.reading import wrong_rows
from backfill_assets.warehouse.rows.totals import totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.models.sql.query import SqlQuery
    from backfill_assets.state.store import Store
    from backfill_assets.warehouse.compare.compare import Comparison
    from backfill_assets.warehouse.compare.comparison_sql import Question
    from backfill_assets.warehouse.files.tables import Table
    from backfill_assets.warehouse.rows.reading import WrongRows
    from backfill_assets.warehouse.rows.totals import Totals


def published_and_built(model: Model, runs: Sequence[RunContext]) -> Compared:
    """Give what an environment reads of a model beside what a plan's workspace does.

    Args:
        model: as the workspace declares it.
        runs: the environment, and the workspace.
    """
    old, new = (published_table(run, model.name) for run in runs)
    return Compared(model, old, new, old_model=runs[0].graph.models.get(model.name))


def compared_once(op: Operation, both: Compared, question: Question) -> Comparison:
    """Compare two tables, or give what an earlier comparison of the same files has found, but its SQL.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    bare_question = replace(question, cells=None)
    key = _key(both.sides, bare_question, question.cells)
    return _once(op, key, lambda: compare(op.spark(), both, question).to_keep(both.model, question))


def totals_once(
    op: Operation, model: Model, table: Table, names: Sequence[str], cells: IntervalSet | None
) -> Totals:
    """Sum columns of a table, or give what was found when the same files were read before.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    key = _key([(model, table)], ("totals", tuple(names)), cells)
    return _once(op, key, lambda: totals(op.spark, model, table, names, cells))


def outside_once(op: Operation, both: Compared, where: str, cells: IntervalSet) -> OutsideRows:
    """Find what differs in rows that a condition does not choose; only that nothing does is kept.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    key = _key(both.sides, ("outside", where), cells)
    return _once(op, key, lambda: rows_outside(op.spark(), both, where, cells))


def wrong_once(
    op: Operation, query: SqlQuery, tables: Mapping[str, tuple[Model, Table]]
) -> WrongRows:
    """Run a consumer's check, or give what it has found when the same tables were read before.

    Raises:
        PinGoneError: a pinned version can't be read any more.
        CorruptTableError: a table's log is damaged.
    """
    read = tuple((name, *tables[name]) for name in sorted(tables))
    key = sha256(dumps(("check", query.sql, read)).encode()).hexdigest()
    return _once(op, key, lambda: wrong_rows(op.spark(), query, tables))


def measured_once(
    op: Operation,
    asked: object,
    tables: Sequence[tuple[Model, Table, IntervalSet]],
    ask: Callable[[], Measured],
) -> Measured:
    """Give the numbers of a consumer's evaluation, or those that it gave when the same files were read before."""
    keys = [_key([(model, table)], asked, cells) for model, table, cells in tables]
    return _once(op, sha256(dumps(keys).encode()).hexdigest(), ask)


def shown_once(
    store: Store,
    plan_id: str,
    both: Compared,
    asked: tuple[Question, object],
    ask: Callable[[], Shown],
) -> Shown:
    """Give what an earlier `diff` of the same plan and the same files has found; else ask, and keep it.

    Args:
        store: the state.
        plan_id: of which plan.
        both: the two tables.
        asked: the question, and what else the answer follows from.
        ask: compares them.
    """
    question, more = asked
    bare_question = replace(question, cells=None)
    key = _key(both.sides, ("shown", bare_question, more), question.cells)
    return _kept_once(store, plan_id, key, ask)


def _once(op: Operation, key: str, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - what is asked for
    return _kept_once(op.store, op.plan_id, key, ask)


def _kept_once(store: Store, plan_id: str, key: str, ask: Callable[[], Any]) -> Any:  # noqa: ANN401
    kept = store.plans.comparison(plan_id, key)
    if kept is not None:
        return loads(kept, KEPT)
    answer = ask()
    if not (isinstance(answer, OutsideRows) and answer.differing):
        store.plans.keep_comparison(plan_id, key, dumps(answer))
    return answer


def _key(sides: Sequence[tuple[Model, Table]], question: object, cells: IntervalSet | None) -> str:
    """Name a question, and all that its answer rests on."""
    models = [model for model, _ in sides]
    read = [_read(model, table, cells) for model, table in sides]
    text = dumps((models, question, None if cells is None else str(cells), read))
    return sha256(text.encode()).hexdigest()


def _read(model: Model, table: Table, cells: IntervalSet | None) -> object:
    """Name the files that are read; where all cells are, the versions of the tables say as much."""
    if cells is None:
        return table
    read = files_read(model, table, cells)
    return [(part.cells, sorted(file.name for file in part.files)) for part in read]
