"""Principals that an authenticating proxy names in a header of a request to the webserver.

The webserver attests them under a key that it shares with the processes of runs, and with nothing else: what a person
types into a launch carries no attestation. It is an HMAC: with the key one can verify and forge, without it neither.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.engine.project.ssh_signatures import SignatureError
from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backfill_assets.engine.project.ssh_signatures import Verifier

SIGNED_BY_HEADER = "backfill_assets header 1"
"""The first line of a signature that the webserver's attestation stands for."""

_SHORTEST = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class IdentityKeyError(BackfillAssetsError):
    """The key under which the webserver attests principals can't be used."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(
            f"the key {path} can't be used: {why}; expected a file of at least {_SHORTEST} random bytes that only its "
            "owner may read. Make one with `openssl rand -out FILE 64 && chmod 600 FILE`; BACKFILL_IDENTITY_KEY "
            "names it"
        )


@dataclass(frozen=True, slots=True)
class HeaderIdentity:
    """Attests principals, and verifies what was attested.

    Attributes:
        key: the shared secret.
    """

    key: bytes = field(repr=False)

    def attest(self, principal: str, run_id: str) -> str:
        """Attest that a principal has launched a run."""
        return self._mac("run", run_id, principal)

    def is_attested(self, principal: str, run_id: str, attestation: str) -> bool:
        """Whether a run was launched by a principal, as an attestation says."""
        return hmac.compare_digest(self.attest(principal, run_id).encode(), attestation.encode())

    def signer(self, principal: str) -> Callable[[str], str]:
        """Give what signs texts for a principal whose launch was attested."""
        return lambda text: (
            f"{SIGNED_BY_HEADER}\n{principal}\n{self._mac('text', text, principal)}\n"
        )

    def principal(self, text: str, signature: str) -> str:
        """Give the principal for whom a text was signed.

        Raises:
            SignatureError: the signature is not of this key and text.
        """
        lines = signature.splitlines()
        if len(lines) != len(("form", "principal", "mac")) or lines[0] != SIGNED_BY_HEADER:
            raise SignatureError("it was not issued by the webserver", "the webserver")
        _, principal, mac = lines
        if not hmac.compare_digest(self._mac("text", text, principal).encode(), mac.encode()):
            raise SignatureError(
                "it was made with another key or for another text", "the webserver"
            )
        return principal

    def _mac(self, *parts: str) -> str:
        return hmac.new(self.key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class BothSigners:
    """Verifies signatures of SSH keys, and those for principals whom the webserver has attested.

    Attributes:
        keys: verifies those of SSH keys.
        header: verifies the others; None where this process has no key for them.
        named: the principals whom the policy names: they need no SSH key.
    """

    keys: Verifier
    header: HeaderIdentity | None
    named: Iterable[str]

    def principal(self, text: str, signature: str) -> str:
        """Give the principal who has signed a text.

        Raises:
            SignatureError: no known one has.
        """
        if not signature.startswith(SIGNED_BY_HEADER):
            return self.keys.principal(text, signature)
        if self.header is None:
            raise SignatureError(
                "BACKFILL_IDENTITY_KEY is not set in this process", "the webserver"
            )
        return self.header.principal(text, signature)

    def principals(self) -> tuple[str, ...]:
        """Name every principal who can be proven."""
        return tuple(dict.fromkeys((*self.keys.principals(), *sorted(self.named))))


def header_identity(path: str) -> HeaderIdentity | None:
    """Read the key of a file; None where none is named.

    Raises:
        IdentityKeyError: it can't be read, is too short, or others may read it.
    """
    if not path:
        return None
    try:
        mode, key = Path(path).stat().st_mode, Path(path).read_bytes()
    except OSError as error:
        raise IdentityKeyError(path, error.strerror or str(error)) from error
    if mode & _OTHERS:
        raise IdentityKeyError(path, f"others may use it (mode {stat.S_IMODE(mode):o})")
    if len(key) < _SHORTEST:
        raise IdentityKeyError(path, f"it has {len(key)} bytes")
    return HeaderIdentity(key)
