"""The exit codes of every verb: one table, which the pages and each verb's help repeat."""

from __future__ import annotations

DONE = 0
FAILED = 1
CHANGES = 2
WAITS = 3
INTERRUPTED = 130

MEANS = {
    DONE: "all went well",
    FAILED: "a batch or a blocking audit failed, cells lack, `promote` would refuse what `apply` has built, "
    "or the request can't be met",
    CHANGES: "there is something to change, or tables differ",
    WAITS: "stale cells wait for another run or a plan, a source has commits that were not looked at, or the "
    "canaries of a plan wait to be compared",
    INTERRUPTED: "it was interrupted; the same command does the rest",
}
"""What an exit code says, whatever the verb."""

TELLS_CHANGES = ("plan", "diff", "replay")
"""The verbs that end with `CHANGES`; no other one does."""

TELLS_WHAT_WAITS = ("run", "status", "plan", "apply")
"""The verbs that end with `WAITS`; no other one does."""
