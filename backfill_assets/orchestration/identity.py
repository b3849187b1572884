"""Who has launched a run, as the webserver attests it: two tags, believed only together."""

from collections.abc import Callable, Mapping

import dagster as dg

from backfill_assets.engine.project.header_identity import header_identity
from backfill_assets.engine.project.project import Project
from backfill_assets.settings import read_settings

PRINCIPAL_TAG, ATTESTATION_TAG = "backfill/principal", "backfill/attestation"


def identity_tags(principal: str, run_id: str) -> Mapping[str, str]:
    """Give the tags that say who has launched a run; empty ones for no principal, or where there is no key.

    Raises:
        IdentityKeyError: the key can't be used.
    """
    identity = header_identity(read_settings().identity_key)
    if not principal or identity is None:
        return {PRINCIPAL_TAG: "", ATTESTATION_TAG: ""}
    return {PRINCIPAL_TAG: principal, ATTESTATION_TAG: identity.attest(principal, run_id)}


def principal_of(run: dg.DagsterRun) -> str | None:
    """Name the principal who has launched a run; None where none is attested.

    Raises:
        IdentityKeyError: the key can't be used.
    """
    principal, attestation = run.tags.get(PRINCIPAL_TAG), run.tags.get(ATTESTATION_TAG, "")
    identity = header_identity(read_settings().identity_key)
    if not principal or identity is None:
        return None
    return principal if identity.is_attested(principal, run.run_id, attestation) else None


def signer_of(project: Project, principal: str | None) -> Callable[[str], str] | None:
    """Give what signs for the principal of a run; None without one, or where the policy counts SSH keys alone.

    Raises:
        PolicyError: the policy can't be used.
    """
    gate = project.gate() if principal else None
    return gate.header.signer(principal) if gate and gate.header and principal else None
