"""The kinds of failures that end a batch: they decide between a retry and a question to a person."""

from __future__ import annotations

from enum import StrEnum


class FailureKind(StrEnum):
    """Why a batch committed nothing.

    Attributes:
        TRANSIENT: neither the code nor the rows are at fault: Spark, the network, a disk, the
            database or another writer was. The same batch may succeed later, so it is tried again.
        AUDIT: a blocking audit failed.
        CODE: the query or the declaration is wrong; every unclassified error counts as this.
        INPUT: what the batch reads, or the table that it writes, is not as it must be.
        TIMEOUT: it took longer than its model allows.
        CANCELLED: a person stopped its run or its plan.
    """

    TRANSIENT = "transient"
    AUDIT = "audit"
    CODE = "code"
    INPUT = "input"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
