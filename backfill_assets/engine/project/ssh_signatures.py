"""Signatures as git makes them with SSH keys: `ssh-keygen -Y`, and a file of allowed signers.

The principal is the first field of that file; a line for several or with a wildcard proves none.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from backfill_assets.errors import BackfillAssetsError, why_unreadable
from backfill_assets.intervals.text import last_line

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMESPACE = "backfill-assets"
"""What our signatures are for: one that was made for git, or for a file, is none of ours."""

_PATTERN = frozenset("*?!,")


class SshKeygenMissingError(BackfillAssetsError):
    """The program that signs and verifies is not there."""

    def __init__(self) -> None:
        super().__init__(
            "`ssh-keygen` was not found, which signs approvals and verifies them; expected it on the "
            "PATH. Install OpenSSH's client (openssh-client) 8.9 or newer"
        )


class SignersMissingError(BackfillAssetsError):
    """The file of allowed signers is not there, or can't be read."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(
            f"the file of allowed signers {path} can't be read: {why}. No approval can be verified without "
            "it, and nothing was written; the policy's `allowed_signers` names it, seen from the policy's "
            "folder"
        )


class SignatureError(BackfillAssetsError):
    """A text has no signature of an allowed signer."""

    def __init__(self, found: str, signers: Path | str) -> None:
        self.found = found
        super().__init__(
            f"the signature is not that of an allowed signer: {found}; expected one by a key of {signers} "
            f"for the namespace {NAMESPACE}"
        )


class Verifier(Protocol):
    """Tells whose signature a text has."""

    def principal(self, text: str, signature: str) -> str:
        """Give the principal who has signed a text.

        Raises:
            SignatureError: no allowed signer has.
        """
        ...

    def principals(self) -> tuple[str, ...]:
        """Name every principal that has a key."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedSigners:
    """A file of allowed signers.

    Attributes:
        path: of it.
    """

    path: Path

    def principal(self, text: str, signature: str) -> str:
        """Give the principal who has signed a text.

        Raises:
            SignatureError: no allowed signer has.
            SignersMissingError: the file can't be read.
            SshKeygenMissingError: there is no `ssh-keygen`.
        """
        self._text()
        with TemporaryDirectory(prefix="backfill-signature-") as folder:
            file = Path(folder) / "signature"
            file.write_text(signature, encoding="utf-8")
            listing = keygen(("find-principals", "-s", str(file), "-f", str(self.path)), "")
            if listing.returncode:
                raise SignatureError(
                    last_line(listing.stderr) or "its key is not listed", self.path
                )
            principal = self._single(listing.stdout)
            options = ("-I", principal, "-n", NAMESPACE, "-s", str(file), "-f", str(self.path))
            done = keygen(("verify", *options), text)
            if done.returncode:
                reason = (
                    last_line(done.stderr)
                    or last_line(done.stdout)
                    or "it was made for another text"
                )
                raise SignatureError(reason, self.path)
        return principal

    def principals(self) -> tuple[str, ...]:
        """Name every principal that has a key.

        Raises:
            SignersMissingError: the file can't be read.
        """
        lines = (line.strip() for line in self._text().splitlines())
        fields = (line.split()[0] for line in lines if line and not line.startswith("#"))
        return tuple(dict.fromkeys(name for name in fields if not _PATTERN & {*name}))

    def _single(self, listed: str) -> str:
        """Give the only principal of a key."""
        names = listed.split()
        if len(names) != 1 or _PATTERN & {*names[0]}:
            raise SignatureError(
                f"its key is listed for {listed.strip() or 'no principal'}, but must be listed for exactly one principal",
                self.path,
            )
        return names[0]

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SignersMissingError(self.path, why_unreadable(error)) from error


def keygen(arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    """Call `ssh-keygen -Y` with a text on stdin; it asks for a passphrase on the terminal itself.

    Raises:
        SshKeygenMissingError: there is none.
    """
    try:
        return subprocess.run(  # noqa: S603 - our own arguments
            ("ssh-keygen", "-Y", *arguments),  # noqa: S607 - as git finds it
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except FileNotFoundError as error:
        raise SshKeygenMissingError from error
