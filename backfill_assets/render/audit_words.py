"""Describe what changed audits found in the published cells that a plan keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.render.plan_words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backfill_assets.models.audit_result import AuditResult

_CELLS = 5


def audit_lines(audited: Mapping[str, Sequence[AuditResult]]) -> Iterator[str]:
    """Say per model how many changed audits passed, and where the others failed."""
    for model, results in audited.items():
        failed = [result for result in results if not result.passed]
        ran = counted(len(results), "changed audit")
        yield f"audited {model}: {ran} on what stays published, {len(results) - len(failed)} passed"
        for result in failed:
            listed = ", ".join(result.cells[:_CELLS]) + (
                ", ..." if len(result.cells) > _CELLS else ""
            )
            where = f" in {listed}" if listed else ""
            kind = result.severity.value
            yield f"  {result.audit} ({kind}) failed{where}: found {result.found}, allowed {result.allowed}"


def blocks(audited: Mapping[str, Sequence[AuditResult]]) -> bool:
    """Whether one of them keeps the plan from being promoted."""
    return any(result.blocks for results in audited.values() for result in results)
