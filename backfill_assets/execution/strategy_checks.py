"""The blocking checks that a plan's strategies add before its promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.execution.operation import Operation


def check_strategies(op: Operation) -> None:
    """Hold what is built against what each strategy promises."""
    del op
