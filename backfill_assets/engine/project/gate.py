"""The gate of a project: its policy, and how a signature proves a principal; and which environments are under it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.engine.project.header_identity import BothSigners, header_identity
from backfill_assets.engine.project.ssh_signatures import AllowedSigners
from backfill_assets.errors import BackfillAssetsError, why_unreadable
from backfill_assets.intervals.instants import minute_text
from backfill_assets.planning.review.policy import PolicyError, policy_hash, read_policy

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.engine.project.header_identity import HeaderIdentity
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.ssh_signatures import Verifier
    from backfill_assets.planning.review.policy import Policy
    from backfill_assets.settings import Settings

USUAL = "backfill_policy.toml"
"""The policy of a folder whose settings name none."""


class PolicyMissingError(BackfillAssetsError):
    """An environment is under a policy, and this process has none for it."""

    def __init__(self, environment: str, since: datetime) -> None:
        self.environment, self.since = environment, since
        super().__init__(
            f"{environment} is under a policy since {minute_text(since)}, and this process has no policy "
            "for it; nothing was written. Set BACKFILL_POLICY to the policy here too; a policy that "
            f"names {environment} without a rule ends the requirement"
        )


@dataclass(frozen=True, slots=True)
class Gate:
    """What stands between a built plan and an environment that a policy names.

    Attributes:
        policy: who must approve what.
        digest: the SHA-256 of its file.
        path: of that file.
        signers: tells whose signature a text has.
        header: signs for principals whom the webserver has attested; None where the policy does not let them count.
    """

    policy: Policy
    digest: str
    path: str
    signers: Verifier
    header: HeaderIdentity | None = None


def gate_of(settings: Settings) -> Gate | None:
    """Read the policy that the settings name; None where there is none.

    Raises:
        PolicyError: it can't be read, or can't be what it says.
        IdentityKeyError: it lets principals of a header count, and the key for them can't be used.
    """
    path = Path(settings.policy or USUAL)
    if not settings.policy and not path.exists():
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(str(path), why_unreadable(error)) from error
    policy = read_policy(text, str(path))
    signers = AllowedSigners(path.parent / policy.allowed_signers)
    if not policy.header:
        return Gate(policy, policy_hash(text), str(path), signers)
    header = header_identity(settings.identity_key)
    both = BothSigners(signers, header, policy.principals())
    return Gate(policy, policy_hash(text), str(path), both, header)


def gate_in(project: Project, environment: str) -> Gate | None:
    """Give the policy that an environment is under; None where it is under none.

    Raises:
        PolicyMissingError: it was under one before, and this process has none that names it.
        PolicyError: the policy can't be used.
    """
    gate = project.gate()
    if gate is not None and gate.policy.names(environment):
        return gate
    since = project.store.approvals.governed_since(environment)
    if since is not None:
        raise PolicyMissingError(environment, since)
    return None
