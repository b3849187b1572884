"""What gathers from state and warehouse for reviewers and auditors."""

from __future__ import annotations
