"""What tests of a project need: a project in a temporary folder, plans held against files, processes that die.

`backfill_assets.testing.plugin` is the same as fixtures of pytest; nothing else here needs pytest, and nothing
of the product needs this package.
"""

from __future__ import annotations

from backfill_assets.testing.command import Ended, UnexpectedEndError
from backfill_assets.testing.dying import DEATHS, Killed, dying_at
from backfill_assets.testing.failing import FAILURES, failing_at
from backfill_assets.testing.plan_assertions import UPDATE, assert_plan, plan_text
from backfill_assets.testing.project import (
    TemporaryProject,
    entered,
    leases_over,
    temporary_project,
    time_passed,
)
from backfill_assets.testing.spark import shared_spark

__all__ = [
    "DEATHS",
    "FAILURES",
    "UPDATE",
    "Ended",
    "Killed",
    "TemporaryProject",
    "UnexpectedEndError",
    "assert_plan",
    "dying_at",
    "entered",
    "failing_at",
    "leases_over",
    "plan_text",
    "shared_spark",
    "temporary_project",
    "time_passed",
]
