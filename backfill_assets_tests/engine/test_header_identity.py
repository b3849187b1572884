"""A principal by the header of a proxy: attested for one run, signing what a policy lets it, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backfill_assets.engine.project.gate import gate_of
from backfill_assets.engine.project.header_identity import (
    SIGNED_BY_HEADER,
    HeaderIdentity,
    IdentityKeyError,
    header_identity,
)
from backfill_assets.engine.project.ssh_signatures import SignatureError
from backfill_assets.settings import Settings

OURS, THEIRS = HeaderIdentity(b"o" * 64), HeaderIdentity(b"t" * 64)
BOB, EVE = "bob@shop.example", "eve@shop.example"
POLICY = f"header = true\n\n[[rules]]\napprovers = ['{BOB}']\n"


def test_an_attestation_is_of_one_run_and_one_principal():
    attestation = OURS.attest(BOB, "run-1")

    assert OURS.is_attested(BOB, "run-1", attestation)
    assert not OURS.is_attested(BOB, "run-2", attestation)
    assert not OURS.is_attested(EVE, "run-1", attestation)
    assert not THEIRS.is_attested(BOB, "run-1", attestation)
    assert not OURS.is_attested(BOB, "run-1", "")
    assert not OURS.is_attested("run-1", BOB, attestation)


def test_a_signature_is_of_one_text_one_principal_and_one_key():
    signature = OURS.signer(BOB)("approve p1")

    assert OURS.principal("approve p1", signature) == BOB
    for text, other in (
        ("approve p2", signature),
        ("approve p1", signature.replace(BOB, EVE)),
        ("approve p1", THEIRS.signer(BOB)("approve p1")),
        ("approve p1", f"{SIGNED_BY_HEADER}\n{BOB}\n{OURS.attest(BOB, 'approve p1')}\n"),
        ("approve p1", f"{SIGNED_BY_HEADER}\n{BOB}\n"),
    ):
        with pytest.raises(SignatureError):
            OURS.principal(text, other)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "identity.key"
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(64))
    return path


def test_a_key_that_others_can_read_or_guess_is_refused(key: Path):
    assert header_identity(str(key)) is not None
    assert header_identity("") is None
    key.chmod(0o640)
    with pytest.raises(IdentityKeyError, match=r"others may use it \(mode 640\)"):
        header_identity(str(key))
    key.chmod(0o600)
    key.write_bytes(b"short")
    with pytest.raises(IdentityKeyError, match="it has 5 bytes; expected a file of at least 32"):
        header_identity(str(key))
    with pytest.raises(IdentityKeyError, match="No such file"):
        header_identity(f"{key}.not")
    assert "short" not in repr(HeaderIdentity(b"short"))


def test_principals_of_the_header_count_where_the_policy_says_so_and_the_key_is_there(key: Path):
    folder = key.parent
    policy, signers = folder / "policy.toml", folder / "allowed_signers"
    signers.touch()
    policy.write_text(POLICY, encoding="utf-8")
    identity = header_identity(str(key))
    assert identity is not None
    signature = identity.signer(BOB)("a text")

    gate = gate_of(Settings(policy=str(policy), identity_key=str(key)))
    assert gate is not None
    assert gate.header == identity
    assert gate.signers.principal("a text", signature) == BOB
    assert gate.signers.principals() == (BOB,)

    without_key = gate_of(Settings(policy=str(policy)))
    assert without_key is not None
    assert without_key.header is None
    with pytest.raises(SignatureError, match="BACKFILL_IDENTITY_KEY is not set in this process"):
        without_key.signers.principal("a text", signature)

    policy.write_text(POLICY.removeprefix("header = true\n"), encoding="utf-8")
    keys_alone = gate_of(Settings(policy=str(policy), identity_key=str(key)))
    assert keys_alone is not None
    assert keys_alone.header is None
    with pytest.raises(SignatureError):
        keys_alone.signers.principal("a text", signature)
