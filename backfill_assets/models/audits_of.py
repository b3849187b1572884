"""List every audit of a model: those that it declares and those that its key and columns imply."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from backfill_assets.models.audit import Audit, References, RowRule, Severity, Unique, not_null
from backfill_assets.models.model_rules import GRAIN_AUDIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.column import Column
    from backfill_assets.models.model import Model


def audits_of(model: Model) -> tuple[Audit, ...]:
    """Give every audit of a model once by name: grain, declared ones, key and columns.

    A declared audit takes the place of a derived one with its name, so a model can turn a rule of
    its schema into a warning.
    """
    audits: dict[str, Audit] = {audit.name: audit for audit in model.all_audits}
    for audit in _derived(model):
        audits.setdefault(audit.name, audit)
    return tuple(audits.values())


def _derived(model: Model) -> Iterator[Audit]:
    for column in model.schema:
        if column.name in model.key or not column.nullable:
            yield not_null(column.name)
        yield from _rules(column)


def _rules(column: Column) -> Iterator[Audit]:
    seen = Counter[str]()
    for check, predicate in column.checks:
        seen[check] += 1
        again = f"_{seen[check]}" if seen[check] > 1 else ""  # of one name each, none hides another
        severity = Severity.WARNING if check in column.warns else Severity.BLOCKING
        yield RowRule(f"{check}_{column.name}{again}", predicate, severity=severity)
    if column.unique:
        name = f"unique_{column.name}"
        yield Unique(f"{name}_2" if name == GRAIN_AUDIT else name, (column.name,))


def looked_up(model: Model) -> frozenset[str]:
    """Name the upstreams in all of whose cells an audit of a model looks values up."""
    return frozenset(audit.upstream for audit in model.all_audits if isinstance(audit, References))
