"""Find a plan: by its id in the state, or as a file that `backfill plan --out` wrote."""

from __future__ import annotations

import os
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


def plan_named(store: Store, name: str) -> Plan:
    """Find a plan as `kept_plan` does, and read it.

    Raises:
        PlanFormatError: another release wrote it; and as `kept_plan` says.
    """
    return read_plan(kept_plan(store, name).content)


def kept_plan(store: Store, name: str) -> StoredPlan:
    """Find a plan by its id, the beginning of it, or the path of its file: every verb finds plans so.

    Raises:
        UnknownPlanError: no plan's id begins so, and there is no such file.
        RequestError: several ids begin so.
        PlanFormatError: the file is no plan, or was edited by hand.
        RequestError: the file is a plan of another state.
    """
    if not is_plan_file(name):
        return store.plans.get(name)
    plan = read_plan(_text(name))
    try:
        stored = store.plans.get(plan.plan_id)
    except UnknownPlanError:
        raise _foreign_plan(plan.plan_id, name) from None
    if stored.content_hash != content_hash(plan):
        raise _foreign_plan(plan.plan_id, name)
    return stored


def is_plan_file(name: str) -> bool:
    """Whether a text names a plan by its file."""
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
        raise RequestError(
            found=f"{path} can't be written: {error.strerror or error}. Plan {plan.plan_id} is made and kept",
            do=f"use its id, as in `backfill show {plan.plan_id}`, or plan again with another file",
        ) from error
