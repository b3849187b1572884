"""Make a plan from what is loaded and what is there, for an environment that may be a new one."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.cli.looking import say_looked
from backfill_assets.cli.project import now
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.execution.estimating import Estimator
from backfill_assets.execution.observing import observe_sources
from backfill_assets.execution.operators import refuse_reach
from backfill_assets.execution.plan_state import plan_state, save_plan
from backfill_assets.planning.build_plan import build_plan
from backfill_assets.planning.plan_json import identified
from backfill_assets.snapshots.environment import PROD, Environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from backfill_assets.cli.operating import Operating
    from backfill_assets.execution.observing import Looked
    from backfill_assets.planning.plan import Plan
    from backfill_assets.planning.plan_state import PlanState
    from backfill_assets.planning.request import PlanRequest

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class EnvironmentNameError(BackfillAssetsError):
    """A new environment can't have this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"no environment can be called {name!r}; a name is up to 40 small letters, digits and "
            "underscores, and begins with a letter, as dev_refunds does"
        )


def looked(at: Operating) -> tuple[Looked, ...]:
    """Look at the sources, as planning rests on them; Spark is started only where it is the last way."""
    sources, data = at.loaded.graph.sources, at.settings.data_root
    looks = observe_sources(at.store, sources.values(), data, None)
    left = [sources[one.source] for one in looks if not one.judged and one.counts]
    again = observe_sources(at.store, left, data, at.spark)
    found = (*(one for one in looks if one.judged or not one.counts), *again)
    say_looked(found)
    return found


def made(at: Operating, request: PlanRequest, *, kept: bool = True) -> Plan:
    """Look at the sources, make a plan, and keep it unless there is nothing to do.

    Raises:
        EnvironmentNameError: the environment is a new one that can't be called so.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    looked(at)
    return planned(at, request, kept=kept)


def planned(
    at: Operating,
    request: PlanRequest,
    *,
    kept: bool = True,
    clock: Callable[[], datetime] = now,
) -> Plan:
    """Make a plan from what was looked at, and keep it unless there is nothing to do.

    Args:
        at: what the verb works with.
        request: what is asked.
        kept: whether it is stored under its id.
        clock: gives the instant that history ends at (UTC).

    Raises:
        EnvironmentNameError: the environment is a new one that can't be called so.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    graph = at.loaded.graph
    state = _state(at, request.environment, clock())
    built = build_plan(request, graph, state, clock(), at.loaded)
    if clock is not now:  # it is made now, whatever instant it is about
        made_at = now()
        lasts = built.expires_at - built.created_at
        built = identified(replace(built, created_at=made_at, expires_at=made_at + lasts))
    plan = Estimator(at.store, graph, at.settings).estimated(built)
    if kept and not plan.is_empty:
        save_plan(at.store, plan)
    return plan


def prepare(at: Operating, plan: Plan) -> None:
    """Refuse a plan whose reach this person may not change; make the environment that it begins.

    Raises:
        NotAnOperatorError: it restates what others read, too, and the settings name who may.
    """
    refuse_reach(at.store, plan, at.who, at.settings.operators)
    new = new_environment(at, plan.environment)
    if new is not None:
        at.store.save_environment(new)


def new_environment(at: Operating, name: str) -> Environment | None:
    """Describe an environment that is to follow prod; None when it is there already.

    Raises:
        EnvironmentNameError: it can't be called so.
    """
    if any(one.name == name for one in at.store.environments()):
        return None
    if not _NAME.fullmatch(name):
        raise EnvironmentNameError(name)
    expires = now() + timedelta(days=at.settings.environment_days)
    return Environment(name, protected=False, follows=PROD, expires_at=expires)


def _state(at: Operating, environment: str, instant: datetime) -> PlanState:
    """Draw the picture that planning works on; a new environment reads all that prod reads."""
    new = new_environment(at, environment)
    state = plan_state(
        at.store,
        at.loaded.graph,
        PROD if new else environment,
        data_root=at.settings.data_root,
        now=instant,
        known=at.loaded,
        plan_days=at.settings.plan_days,
    )
    return state if new is None else replace(state, view=replace(state.view, environment=new))
