"""Audit what is published, without rebuilding it: the same audits, over the ready cells at the pin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.batch.judge import judge
from backfill_assets.engine.batch.requests import input_cells
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.fingerprint import changed_logic
from backfill_assets.models.source import Source
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.places import located
from backfill_assets.state.published_audits import AuditedPublication
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.rows.inputs import Input
from backfill_assets.warehouse.rows.profile import Subject, profile
from backfill_assets.warehouse.rows.reading import published_rows
from backfill_assets.warehouse.rows.samples import failing_rows
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.model import Model


def refuse_nothing_published(run: RunContext, names: Iterable[str]) -> None:
    """Refuse to audit models of which no cell is published: no audit could fail.

    Raises:
        RequestError: an environment publishes none of the models.
    """
    view, models = run.view(), tuple(names)
    if not any(view.ready(name) for name in models):
        raise RequestError(
            found=f"no audit has run: {run.environment.name} publishes nothing of {', '.join(models)} "
            f"in {run.data_root}",
            do="fill it first: `backfill run`; or set BACKFILL_DATA_DIR to where it was filled",
        )


def audited_model(run: RunContext, name: str) -> Model:
    """Give a model with its audits as they are declared now, promoted or not, where they fit the published rows."""
    published, declared = run.graph.model(name), run.project.loaded.graph.models.get(name)
    return published if declared is None or changed_logic(published, declared) else declared


def audit_published(
    run: RunContext,
    name: str,
    cells: IntervalSet | None = None,
    audits: tuple[Audit, ...] | None = None,
) -> tuple[AuditResult, ...]:
    """Judge the published cells of one model.

    Args:
        run: the environment; nothing is written.
        name: the model.
        cells: only these; None means every ready cell.
        audits: only these of the model's; None means all.

    Returns:
        One result per audit; none at all when no cell is ready.
    """
    return _audited(run, run.graph.model(name), cells, audits)


def _audited(
    run: RunContext,
    model: Model,
    cells: IntervalSet | None = None,
    audits: tuple[Audit, ...] | None = None,
) -> tuple[AuditResult, ...]:
    name = model.name
    audited_cells = run.view().ready(name)
    if cells is not None:
        audited_cells &= cells
    if not audited_cells:
        return ()
    audited = tuple(model.cadence.cells(audited_cells))
    subject = audited_subject(run, model, audited)
    rows = published_rows(batch_session(run.spark()), model, audited, subject.target)
    # Numbers are held against what people read in these cells: but in a plan's workspace that is the same content.
    contents = run.store.views.published_contents(run.environment.name, name, audited_cells)
    audits = audits_of(model) if audits is None else audits
    results = judge(audits, profile(rows, subject), contents, model.cadence)
    return tuple(
        result if result.passed else replace(result, sample=failing_rows(rows, audit, subject))
        for audit, result in zip(audits, results, strict=True)
    )


def audit_and_keep(run: RunContext, name: str) -> tuple[AuditResult, ...]:
    """Judge every published cell of one model by its declared audits, and keep what was found in the state's history.

    Where an edit changes how rows are computed, the audits are those that the environment runs.

    Returns:
        One result per audit; none at all when no cell is ready.
    """
    state = run.view().models.get(name)
    cells = None if state is None else state.ready
    results = _audited(run, audited_model(run, name), cells)
    if state is not None and results:
        pin = state.pointer
        of = AuditedPublication(
            run.environment.name, name, pin.version, pin.delta_version, state.ready
        )
        run.store.published_audits.keep(of, results)
    return results


def audit_and_keep_each(
    run: RunContext, names: Collection[str]
) -> tuple[dict[str, tuple[AuditResult, ...]], dict[str, str]]:
    """Audit several models as `audit_and_keep` does; what can't be read of one hinders no other.

    Returns:
        The results by model; and by model why it can't be audited: its files, or those of what its audits
        compare with, are gone or damaged.
    """
    results: dict[str, tuple[AuditResult, ...]] = {}
    unreadable: dict[str, str] = {}
    with run.at_work.at(Phase.CHECKING, of=len(names)) as step:
        for name in names:
            step.next(name)
            try:
                results[name] = audit_and_keep(run, name)
            except BackfillAssetsError as error:
                if kind_of(error) is not FailureKind.INPUT:
                    raise
                unreadable[name] = str(error)
    return results, unreadable


def audited_subject(run: RunContext, model: Model, cells: Sequence[Interval]) -> Subject:
    """Give published cells as what audits measure: with their table, and what they compare with."""
    table = published_table(run, model.name)
    return Subject(model, cells, table, _inputs(run, model, IntervalSet.of(cells)), table)


def audited_on_record(run: RunContext, name: str, cells: IntervalSet) -> tuple[AuditResult, ...]:
    """Tell what the audits say of those of these cells that the environment reads.

    Its rows were audited by the batch that built them, before its commit. Where that batch ran the
    environment's own snapshot, its recorded results count; all other cells are audited now.

    Args:
        run: the environment; nothing is written.
        name: the model.
        cells: any; those that are not published have no result.
    """
    pointer = run.store.environments.pointers(run.environment.name).get(name)
    if pointer is None:
        return ()
    records = {
        record.cell: record
        for table in reversed(run.store.views.tables(pointer))
        for record in run.store.versions.ready_records(table.version, table.delta_version)
        if record.cell in cells
    }
    results: list[AuditResult] = []
    audited_batches: set[str] = set()
    for batch_id in sorted({record.batch_id for record in records.values()}):
        rows = run.store.batches.audit_results(batch_id=batch_id)
        own = [record for record in records.values() if record.batch_id == batch_id]
        if rows and all(record.fingerprint == pointer.fingerprint for record in own):
            audited_batches.add(batch_id)
            last = rows[0].audited.attempt
            results += [row.result for row in rows if row.audited.attempt == last]
    others = IntervalSet.of(
        record.cell for record in records.values() if record.batch_id not in audited_batches
    )
    return (*results, *(audit_published(run, name, others) if others else ()))


def _inputs(run: RunContext, model: Model, cells: IntervalSet) -> dict[str, Input]:
    """Give what the audits compare with, as the environment reads it now."""
    span = cells.hull()
    read = {} if span is None else input_cells(run, model, IntervalSet.of([span]))
    return {name: _input(run, name, cells_read) for name, cells_read in read.items()}


def _input(run: RunContext, name: str, cells: IntervalSet) -> Input:
    declared = run.graph.node(name)
    if isinstance(declared, Source):
        return Input(declared, table_now(located(declared.path, run.data_root)), cells)
    return Input(declared, published_table(run, name), cells)
