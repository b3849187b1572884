"""Who may change a protected environment: one answer for the command and the launchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.planning.plan import Plan
    from backfill_assets.state.store import Store


class NotAnOperatorError(BackfillAssetsError):
    """Somebody who may not wants to change a protected environment."""

    def __init__(self, who: str, environment: str, operators: Sequence[str]) -> None:
        self.who, self.environment = who, environment
        super().__init__(
            f"{who} may not change {environment}, which is protected; BACKFILL_OPERATORS names who "
            f"may: {', '.join(operators)}. Ask one of them"
        )


def refuse_strangers(store: Store, environment: str, who: str, operators: Sequence[str]) -> None:
    """Refuse those who may not change a protected environment; one that is not there is not.

    Args:
        store: the state.
        environment: what somebody wants to change.
        who: the person.
        operators: who may; empty for everybody.

    Raises:
        NotAnOperatorError: the person is none of them.
    """
    known = {one.name: one for one in store.environments()}
    protected = environment in known and known[environment].protected
    if protected and operators and who not in operators:
        raise NotAnOperatorError(who, environment, operators)


def refuse_reach(store: Store, plan: Plan, who: str, operators: Sequence[str]) -> None:
    """Refuse those who may not change all that a plan restates, if it restates what others read.

    Raises:
        NotAnOperatorError: some of it is protected, and the person is no operator.
    """
    if plan.request.restate_all_snapshots:
        for one in store.environments():
            refuse_strangers(store, one.name, who, operators)
