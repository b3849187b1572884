"""Who may change a protected environment: one answer for the command and the launchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.person import Person
    from backfill_assets.state.store import Store


def refuse_unauthorized(
    store: Store, environment: str, who: Person, operators: Sequence[str]
) -> None:
    """Refuse a person who may not change a protected environment; one that does not exist is not protected.

    Only the name that the operating system knows counts, never a typed one.

    Args:
        store: the state.
        environment: what is to be changed.
        who: the person.
        operators: the users who may; if there are none, every person may, known or not.

    Raises:
        RequestError: the person is none of them.
    """
    environments = store.environments.by_name()
    protected = any(row.name == environment and row.protected for row in environments)
    if protected and operators and who.identity not in operators:
        do = "Ask one of them"
        if who.identity is None:
            do += " to use the command `backfill`, which knows the user of the operating system"
        raise RequestError(
            found=f"{who} may not change {environment}, which is protected; BACKFILL_OPERATORS names "
            f"who may: {', '.join(operators)}",
            do=do,
        )


def refuse_reach(store: Store, plan: Plan, who: Person, operators: Sequence[str]) -> None:
    """Refuse a person who may not change every environment, if the plan restates what all of them read.

    Raises:
        RequestError: one of them is protected, and the person is no operator.
    """
    if plan.request.restate_all_snapshots:
        for environment in store.environments.by_name():
            refuse_unauthorized(store, environment.name, who, operators)


def refuse_other_users(
    project: Project, environment: str, who: Person, operators: Sequence[str]
) -> None:
    """Refuse a person who may not change a protected environment, unless a policy names who may promote there.

    Raises:
        RequestError: the person is no operator, and no policy names who may promote.
    """
    gate = project.gate()
    if gate is None or not gate.policy.promoters(environment):
        refuse_unauthorized(project.store, environment, who, operators)
