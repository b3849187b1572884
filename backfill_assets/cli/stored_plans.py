"""Find a plan: by its id in the state, or as a file that `backfill plan --out` wrote."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError, why_unreadable
from backfill_assets.planning.plan.plan_json import (
    content_hash,
    plan_json,
    read_plan,
)
from backfill_assets.state.plans import UnknownPlanError

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store


def _foreign_plan(plan_id: str, path: str) -> RequestError:
    return RequestError(
        found=f"the plan {plan_id} in {path} was made with another state database, whose data may "
        "differ from this state's",
        do="Run `backfill plan` again, or set BACKFILL_STATE_URL to that database",
    )


def _plan_file(path: str, problem: str) -> RequestError:
    return RequestError(
        found=f"the plan file {path} can't be used: {problem}", do="give an id, or another file"
    )


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan, and its record in the state."""

    stored: StoredPlan
    plan: Plan


def kept_plan(store: Store, name: str) -> KeptPlan:
    """Find a plan by its id, the beginning of it, or the path of its file.

    Raises:
        UnknownPlanError: no plan's id begins so, and there is no such file.
        RequestError: several ids begin so.
        PlanFormatError: the file is no plan, or was edited by hand.
        RequestError: the file is a plan of another state.
    """
    if not _is_file(name):
        stored = store.plans.get(name)
        return KeptPlan(stored, read_plan(stored.content))
    plan = read_plan(_text(name))
    try:
        stored = store.plans.get(plan.plan_id)
    except UnknownPlanError:
        raise _foreign_plan(plan.plan_id, name) from None
    if stored.content_hash != content_hash(plan):
        raise _foreign_plan(plan.plan_id, name)
    return KeptPlan(stored, plan)


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith(".json") or Path(name).is_file()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _plan_file(path, why_unreadable(error)) from error


def write_plan(plan: Plan, path: str) -> None:
    """Write a plan as a file that `backfill apply` takes, readable by its owner only.

    Raises:
        RequestError: it can't be written.
    """
    try:
        # For its owner alone, whatever the umask.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(plan_json(plan) + "\n")
    except OSError as error:
        raise _plan_file(path, error.strerror or str(error)) from error
