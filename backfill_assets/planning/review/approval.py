"""What a principal signs: a statement that names a plan, what is done with it, and the hash of each of its parts.

The text that is signed is canonical: one statement has one text, and a text that is not that of its
statement is refused.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FORMAT = "backfill_assets.statement 1"
SKEW = timedelta(minutes=5)
"""By how much another machine's clock may go ahead."""


class Act(StrEnum):
    """What a principal signs for."""

    APPROVE = "approve"
    PLAN = "plan"
    APPLY = "apply"
    PROMOTE = "promote"
    ROLLBACK = "rollback"
    UNDO = "undo"
    ADOPT = "adopt"
    ACKNOWLEDGE = "acknowledge"
    OBJECT = "object"


BUILD = frozenset({"plan", "built cells"})
"""The parts that make a plan the one that was built: all that an objection binds.

Were it to bind more, a change beside it, as of the policy, would take it back without an acknowledgement.
"""


class StatementError(BackfillAssetsError):
    """A text is no statement that was signed here."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"the signed statement can't be read: {found}; expected the text that "
            "`backfill approve` signed, unchanged. Sign it again"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One agreement, or one act.

    Attributes:
        act: what is agreed to, or done.
        plan_id: the plan; what is adopted, where there is no plan.
        environment: whose history it changes.
        at: when it was signed (UTC).
        expires: from when it does not count any more, whatever the policy says.
        reason: why, in words.
        parts: the SHA-256 of each bound part, by its name; none for an act that binds no plan as it is.
        nonce: the run or process that signs, so that no act is signed twice.
    """

    act: Act
    plan_id: str
    environment: str
    at: datetime
    expires: datetime
    reason: str = ""
    parts: Mapping[str, str] = field(default_factory=dict[str, str])
    nonce: str = ""


def statement_text(statement: Statement) -> str:
    """Write a statement as the text that is signed."""
    plain = {
        **asdict(statement),
        "format": FORMAT,
        "act": statement.act.value,
        "at": statement.at.isoformat(),
        "expires": statement.expires.isoformat(),
    }
    return json.dumps(plain, indent=1, sort_keys=True) + "\n"


def read_statement(text: str) -> Statement:
    """Read a statement back.

    Raises:
        StatementError: it is none, or is written in another way than ours.
    """
    try:
        plain = cast("dict[str, Any]", json.loads(text))
        statement = Statement(
            act=Act(plain["act"]),
            plan_id=str(plain["plan_id"]),
            environment=str(plain["environment"]),
            at=_instant(plain["at"]),
            expires=_instant(plain["expires"]),
            reason=str(plain["reason"]),
            parts={str(name): str(value) for name, value in plain["parts"].items()},
            nonce=str(plain["nonce"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StatementError(f"{type(error).__name__}: {error}") from error
    if statement_text(statement) != text:
        raise StatementError("it was edited")
    return statement


def _instant(text: object) -> datetime:
    at = datetime.fromisoformat(str(text))
    if at.tzinfo is None:
        raise ValueError(f"'{text}' has no offset")
    return at


def void_because(
    statement: Statement,
    *,
    plan_id: str,
    parts: Mapping[str, str],
    now: datetime,
    acts: Collection[Act] = (Act.APPROVE,),
) -> str:
    """Say why an approval, or an answer, does not count for a plan as it is now; empty where it does.

    Args:
        statement: what was signed.
        plan_id: the plan that is to be published.
        parts: the hash of each of its parts now.
        now: the instant (UTC).
        acts: what has to be signed for.
    """
    if statement.act not in acts:
        return f"it was signed to {statement.act.value}, not to {' or '.join(sorted(acts))}"
    if statement.plan_id != plan_id:
        return f"it is one of plan {statement.plan_id}"
    if statement.at > now + SKEW:
        return f"it is dated {minute_text(statement.at)}, which is to come"
    if statement.expires <= now:
        return f"it expired at {minute_text(statement.expires)}"
    signed = statement.parts
    names = BUILD if statement.act is Act.OBJECT else {**parts, **signed}
    moved = [name for name in names if signed.get(name) != parts.get(name)]
    return f"changed since: {', '.join(moved)}" if moved else ""
