"""How every verb may end: one table, which the pages and each verb's help repeat."""

from __future__ import annotations

DONE = 0
FAILED = 1
CHANGES = 2
INTERRUPTED = 130

MEANS = {
    DONE: "all went well",
    FAILED: "a batch or a blocking audit failed, cells lack, or something was asked that can't be",
    CHANGES: "there is something to change, or tables differ",
    INTERRUPTED: "somebody interrupted it; the same command does the rest",
}
"""What an exit code says, whatever the verb."""

TELLS_CHANGES = ("plan", "diff")
"""The verbs that end with `CHANGES`; every other one ends with `DONE`, `FAILED` or `INTERRUPTED`."""
