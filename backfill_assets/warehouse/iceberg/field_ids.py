"""The numbers by which Iceberg knows columns.

They are drawn from the names, so that every table of a model, old or new, gives a column the same number, and a
reader may go back in time over a change of tables.
"""

from __future__ import annotations

import hashlib

_LARGEST = 2**30


def field_id(path: str) -> int:
    """Number a column, or a part of one, by its name; the parts of a path have dots between them."""
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big") % _LARGEST + 1
