"""Acts that a policy reserves for principals: each is signed when it happens, and kept with its signature.

Nothing that the state says of a signature is believed: what relies on one has it judged again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.ssh_signatures import SignatureError
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.planning.review.approval import (
    Act,
    Statement,
    StatementError,
    read_statement,
    statement_text,
    void_because,
)
from backfill_assets.snapshots.signed_statement import SignedStatement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.review.reviewed import Reviewed
    from backfill_assets.planning.review.policy import Policy

_LASTS = timedelta(minutes=5)

_COMMANDS = {Act.APPROVE: "approve {}", Act.PLAN: "plan {}", Act.ADOPT: "adopt"}


class UnsignedActError(BackfillAssetsError):
    """A policy asks for a signature, and the caller has no way to give one."""

    def __init__(self, act: Act, subject: str, environment: str, may: frozenset[str]) -> None:
        self.act, self.environment, self.may = act, environment, may
        command = _COMMANDS.get(act, f"{act.value} {{}}").format(subject)
        super().__init__(
            f"to {act.value} in {environment} requires a signature, and nothing was written: the policy "
            f"names who may ({', '.join(sorted(may))}), and the launchpad can't prove who you are. Run "
            f"`backfill {command}` in a shell, with an SSH key in BACKFILL_SIGNING_KEY or git's "
            "user.signingkey"
        )


class NotEntitledError(BackfillAssetsError):
    """A principal is none of those whom a policy names for an act."""

    def __init__(self, principal: str, act: Act, environment: str, may: frozenset[str]) -> None:
        self.principal, self.act, self.environment, self.may = principal, act, environment, may
        super().__init__(
            f"{principal} may not {act.value} in {environment}, nothing was written; the policy names who "
            f"may: {', '.join(sorted(may)) or 'no principal'}. Ask one of them"
        )


def who_may(policy: Policy, act: Act, environment: str) -> frozenset[str]:
    """Give who may do something in an environment; empty: no signature is asked for."""
    match act:
        case Act.PLAN | Act.APPLY:
            return policy.planners(environment)
        case Act.PROMOTE:
            return policy.promoters(environment)
        case Act.ROLLBACK | Act.UNDO | Act.ADOPT:
            return policy.restorers(environment)
        case Act.APPROVE:
            rules = policy.rules_of(environment)
            return frozenset(name for rule in rules for name in rule.may_approve)
        case Act.ACKNOWLEDGE | Act.OBJECT:
            return frozenset()  # who owns the consumer, not the policy, says who may: see `answers`


def acting(project: Project, act: Act, subject: str, environment: str) -> str | None:
    """Let a principal sign for an act, keep it, and name the principal; None where none is asked for.

    Args:
        project: whose policy, and who signs.
        act: what is done.
        subject: the plan, or what is planned or adopted.
        environment: whose history it changes.

    Raises:
        UnsignedActError: there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the policy names others.
        PolicyError: the policy can't be used.
        PolicyMissingError: the environment was under a policy before, and this process has none.
    """
    gate = gate_in(project, environment)
    may = who_may(gate.policy, act, environment) if gate else frozenset[str]()
    if gate is None or not may:
        return None
    statement = Statement(
        act=act,
        plan_id=subject,
        environment=environment,
        at=project.clock(),
        expires=project.clock() + _LASTS,
        nonce=project.run_id,
    )
    return _signed(project, gate, statement, may).principal


def sign(
    of: Reviewed,
    act: Act,
    expires: datetime,
    parts: Mapping[str, str],
    reason: str = "",
    may: frozenset[str] | None = None,
) -> SignedStatement:
    """Let a principal sign for a plan as it is built, verify the signature, and keep both.

    Args:
        of: the plan, and who signs.
        act: what is agreed to, or done.
        expires: from when it does not count any more.
        parts: what it binds; what changes of them voids it.
        reason: why, in words.
        may: who may; None: those whom the policy names.

    Raises:
        UnsignedActError: there is no way to sign here.
        SignatureError: the signature is not that of an allowed signer.
        NotEntitledError: the principal may not do it.
    """
    environment = of.plan.environment
    statement = Statement(
        act=act,
        plan_id=of.plan.plan_id,
        environment=environment,
        at=of.clock(),
        expires=expires,
        reason=reason,
        parts=parts,
        nonce=of.run_id,
    )
    allowed = who_may(of.gate.policy, act, environment) if may is None else may
    return _signed(of.project, of.gate, statement, allowed)


@dataclass(frozen=True, slots=True)
class Judged:
    """A signed statement about a plan, and whether it counts for the plan as it is now.

    Attributes:
        signed: what was signed, and by whom, as far as it is proven.
        void: why it does not count, in words; empty: it does.
        reason: what its principal gave as the reason.
        besides: what was signed beside the parts of the plan.
    """

    signed: SignedStatement
    void: str
    reason: str = ""
    besides: str = ""


def verdicts(judged: Iterable[Judged]) -> dict[str, str]:
    """Say of each statement, by its SHA-256, why it does not count; empty where it does."""
    return {each.signed.sha256: each.void for each in judged}


def verified_statements(of: Reviewed, *acts: Act, besides: str | None = None) -> list[Judged]:
    """Verify every statement that was signed for some acts, and hold it against the plan as it is now.

    Args:
        of: the plan.
        acts: what has to be signed for.
        besides: the name of what has to be signed beside the parts of the plan.
    """
    rows = [row for row in of.store.approvals.of_plan(of.plan.plan_id) if row.act in acts]
    parts = bound_parts(of) if rows else {}
    return [_judged(of, row, parts, acts, besides) for row in rows]


def _judged(
    of: Reviewed,
    row: SignedStatement,
    parts: Mapping[str, str],
    acts: Collection[Act],
    besides: str | None,
) -> Judged:
    try:
        principal = of.gate.signers.principal(row.text, row.signature)
        statement = read_statement(row.text)
    except (SignatureError, StatementError) as error:
        return Judged(row, error.found)
    proven = replace(
        row,
        act=statement.act.value,
        principal=principal,
        at=statement.at,
        expires=statement.expires,
    )
    also = "" if besides is None else statement.parts.get(besides, "")
    now = parts if besides is None else {**parts, besides: also}
    void = void_because(statement, plan_id=of.plan.plan_id, parts=now, now=of.clock(), acts=acts)
    return Judged(proven, void, statement.reason, also)


def _signed(
    project: Project, gate: Gate, statement: Statement, may: frozenset[str]
) -> SignedStatement:
    if project.sign is None:
        raise UnsignedActError(statement.act, statement.plan_id, statement.environment, may)
    text = statement_text(statement)
    signature = project.sign(text)
    principal = gate.signers.principal(text, signature)
    if principal not in may:
        raise NotEntitledError(principal, statement.act, statement.environment, may)
    made = SignedStatement(
        plan_id=statement.plan_id,
        act=statement.act.value,
        principal=principal,
        text=text,
        signature=signature,
        at=statement.at,
        expires=statement.expires,
    )
    project.store.approvals.keep(made)
    return made
