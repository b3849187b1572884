"""Signatures for tests: by SSH keys as people have them, and quick ones by a secret of a test."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import Gate
from backfill_assets.engine.project.ssh_signatures import NAMESPACE, AllowedSigners, SignatureError
from backfill_assets.planning.review.policy import policy_hash, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


@dataclass
class QuickSigners:
    """Stands for a file of allowed signers; a signature is a hash that only its key could give."""

    allowed: dict[str, str] = field(default_factory=dict[str, str])

    def principal(self, text: str, signature: str) -> str:
        found = (
            who for key, who in self.allowed.items() if signature == quick_signature(key, text)
        )
        who = next(found, None)
        if who is None:
            raise SignatureError("its key is not listed", "allowed_signers")
        return who

    def principals(self) -> tuple[str, ...]:
        return tuple(self.allowed.values())


def quick_signature(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()


def quick_sign(key: str) -> Callable[[str], str]:
    return lambda text: quick_signature(key, text)


def quick_gate(policy: str, *people: str, digest: str = "") -> Gate:
    """A policy, and people whose keys are called as they are."""
    signers = QuickSigners({name: name for name in people})
    return Gate(read_policy(policy, "policy"), digest or policy_hash(policy), "policy", signers)


@dataclass
class Keys:
    """SSH keys in a folder, and the file of those that are allowed."""

    folder: Path

    @property
    def allowed(self) -> Path:
        return self.folder / "allowed_signers"

    def make(self, name: str) -> Path:
        path = self.folder / name.replace("@", "_")
        asked = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
        subprocess.run(asked, check=True)
        return path

    def allow(self, names: Iterable[str]) -> AllowedSigners:
        lines = []
        for name in names:
            kind, key, *_ = (
                self.make(name).with_name(f"{self.path(name).name}.pub").read_text().split()
            )
            lines.append(f'{name} namespaces="{NAMESPACE}" {kind} {key}\n')
        self.allowed.write_text("".join(lines))
        return AllowedSigners(self.allowed)

    def path(self, name: str) -> Path:
        return self.folder / name.replace("@", "_")
