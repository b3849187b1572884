"""The exit codes of every verb; the table in docs/cli.md says what each means."""

from __future__ import annotations

DONE = 0
FAILED = 1
CHANGES = 2
WAITS = 3
INTERRUPTED = 130
