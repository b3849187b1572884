"""Audit the audits: plant defects in a copy of published cells, and see which are noticed.

Measured and judged as a batch would be that computed these rows. Nothing is written.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from backfill_assets.engine.batch.audit_run import audited_model, audited_subject
from backfill_assets.engine.batch.judge import judge
from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.models.audit import Severity
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.planted import Noticed, defects_of
from backfill_assets.warehouse.rows.planted import planted_rows, rows_of_batch
from backfill_assets.warehouse.rows.profile import profile
from backfill_assets.warehouse.rows.reading import published_rows
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.content import CellProfile, Content
    from backfill_assets.models.model import Model
    from backfill_assets.models.planted import Planted
    from backfill_assets.warehouse.rows.profile import Subject

_Rows: TypeAlias = Any
"""A data frame of Spark's, which the warehouse alone knows."""

CELLS = 5
"""How many published cells a copy has; the defect is in the middle one."""
OUTSIDE = "rows outside of the batch's cells"
"""In the place of an audit: a batch refuses such rows by itself."""


def audit_planted(run: RunContext, name: str) -> Iterator[Noticed]:
    """Plant each defect that a model can have, one after the other; one that changes nothing is left out.

    Args:
        run: the environment whose published cells are copied.
        name: the model.

    Raises:
        RequestError: no cell with rows is published of it.
    """
    model = audited_model(run, name)
    ready = run.view().ready(name)
    contents = run.store.views.content_at_pin(run.environment.name, name, ready) if ready else {}
    newest = islice((cell for cell in sorted(contents, reverse=True) if contents[cell].rows), CELLS)
    cells = tuple(sorted(newest))
    if not cells:
        raise RequestError(
            found=f"nothing with rows of '{name}' is published in '{run.environment.name}'",
            do="fill it first: `backfill run`",
        )
    subject = audited_subject(run, model, cells)
    rows = published_rows(batch_session(run.spark()), model, cells, subject.target).cache()
    try:
        copied = {cell: contents[cell] for cell in cells}
        yield from _planted(model, rows, subject, copied, run.clock())
    finally:
        rows.unpersist()


def _planted(
    model: Model,
    rows: _Rows,
    subject: Subject,
    contents: Mapping[Interval, Content],
    now: datetime,
) -> Iterator[Noticed]:
    clean_profiles = profile(rows, subject)
    before = _failing(model, clean_profiles, contents)
    middle = subject.cells[len(subject.cells) // 2]
    for planted in defects_of(model):
        try:
            computed = planted_rows(rows, model, planted, middle)
            batch = rows_of_batch(computed, model, subject.cells, subject.target, now)
            profiles = profile(batch, subject)
        except DeclarationError:
            yield Noticed(planted, stopped_by=(OUTSIDE,))
            continue
        # Equal checksums: the defect changes nothing, such as the sign of a zero amount.
        if [each.content for each in profiles] != [each.content for each in clean_profiles]:
            yield _noticed(planted, _failing(model, profiles, contents), before)


def _noticed(
    planted: Planted, failing: Mapping[str, AuditResult], before: Mapping[str, AuditResult]
) -> Noticed:
    new = {
        audit: result.severity
        for audit, result in failing.items()
        if audit not in before or not {*result.cells} <= {*before[audit].cells}
    }

    def names(severity: Severity) -> tuple[str, ...]:
        return tuple(audit for audit, own in new.items() if own is severity)

    untold = tuple(audit for audit in before if audit not in new)
    return Noticed(planted, names(Severity.BLOCKING), names(Severity.WARNING), untold)


def _failing(
    model: Model,
    profiles: Sequence[CellProfile],
    contents: Mapping[Interval, Content],
) -> dict[str, AuditResult]:
    """Give the results that would stop a batch of these rows, or be warned of."""
    results = judge(audits_of(model), profiles, contents, model.cadence)
    return {result.audit: result for result in results if not result.passed}
