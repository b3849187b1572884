"""What a reviewer agrees to, and what remains afterwards: contract, policy, approvals, release notes."""

from __future__ import annotations
