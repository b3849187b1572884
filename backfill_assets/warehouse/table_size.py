"""How large a table is, from its log alone."""

from __future__ import annotations


def bytes_in(path: str) -> int:
    """Give the size of a table's files at its head; 0 where there is none, or none that can be read."""
    from deltalake import DeltaTable  # noqa: PLC0415 - only for tables without history of ours
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        files = DeltaTable(path).get_add_actions(flatten=True)
    except DeltaError:
        return 0
    return sum(files.column("size_bytes").to_pylist())
