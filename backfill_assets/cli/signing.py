"""Sign as the person at the command line: with an SSH key, as git signs commits."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from backfill_assets.engine.project.ssh_signatures import NAMESPACE, keygen
from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.settings import Settings

_LITERAL = "key::"


class NotSignedError(BackfillAssetsError):
    """There is no key to sign with, or it can't be used."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"this requires a signature, and none was made: {found}. Nothing was written; name an SSH key in "
            "BACKFILL_SIGNING_KEY, or in git's user.signingkey: its file, or a public key whose private "
            "key an agent holds"
        )


def signer_of(settings: Settings) -> Callable[[str], str]:
    """Give what signs a text with the key of the settings, or of git; nothing is looked up before."""
    return lambda text: _signature(text, settings.signing_key or _key_of_git())


def _signature(text: str, key: str) -> str:
    """Sign a text.

    Raises:
        NotSignedError: there is no key, or it can't be used.
        SshKeygenMissingError: there is no `ssh-keygen`.
    """
    if not key:
        raise NotSignedError("no key is named")
    with _file_of(key) as (path, public):
        agent = ("-U",) if public else ()
        done = keygen(("sign", *agent, "-n", NAMESPACE, "-f", path), text)
    if done.returncode or not done.stdout:
        lines = done.stderr.strip().splitlines()
        raise NotSignedError(f"`ssh-keygen` says {lines[-1] if lines else 'nothing'} (key {path})")
    return done.stdout


@contextmanager
def _file_of(key: str) -> Iterator[tuple[str, bool]]:
    """Give the file of a key, and whether an agent has to hold its private part."""
    written = key.removeprefix(_LITERAL)
    if written == key and not key.startswith(("ssh-", "ecdsa-", "sk-")):
        yield str(Path(key).expanduser()), False
        return
    with TemporaryDirectory(prefix="backfill-key-") as folder:
        file = Path(folder) / "key.pub"
        file.write_text(written + "\n", encoding="utf-8")
        yield str(file), True


def _key_of_git() -> str:
    try:
        done = subprocess.run(
            ("git", "config", "--get", "user.signingkey"),  # noqa: S607 - whichever git there is
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
