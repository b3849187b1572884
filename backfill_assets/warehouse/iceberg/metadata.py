"""Iceberg's metadata of a table of ours: the same Parquet files as Delta's log names, and no copy of a row.

A metadata file describes one delta_version as the present snapshot, and before it those that the name stood
for. Iceberg's SQL catalogues find it by name: see `state.iceberg`.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.warehouse.iceberg.field_ids import field_id
from backfill_assets.warehouse.iceberg.folder import Folder
from backfill_assets.warehouse.log.delta_log import opened_log

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

Described = dict[str, Any]
"""A description, or a part of one, as its JSON says it."""

LONGEST = 100
"""How many snapshots a metadata file lists; `gc` decides how many of them can be read."""

_SUMMARY = {"operation": "overwrite"}
_NO_COLUMN: Described = {"field-id": field_id(CELL_COLUMN), "names": [CELL_COLUMN]}
"""Files that cells share hold the cells; readers leave out a number that the schema does not have."""


def write_metadata(
    path: str, delta_version: int, *, model: str, now: datetime, same: str | None, after: str | None
) -> str:
    """Describe a table at a delta_version, and give where the description lies.

    Args:
        path: of the table.
        delta_version: which becomes the present snapshot.
        model: whose table it is: all tables of a model are one to Iceberg.
        now: the instant (UTC) from which on the name stands for it.
        same: a description of the table itself, at this delta_version or an older one, whose manifests are
            named again; None if there is none.
        after: the description that the name stands for until now; None if it stands for nothing.

    Raises:
        CorruptTableError: there is no such table, or its log is damaged or does not reach so far.
    """
    folder, number = Folder.of(path), _snapshot_id(path, delta_version)
    # After the data folder was copied, an older description lies, and names files, elsewhere.
    own = same if same is not None and same.startswith(f"{folder.location}/") else None
    before = _read(folder, own)
    if before is not None and before["current-snapshot-id"] == number:
        fields, listed = _current_fields(before), _current(before)["manifest-list"]
    else:
        fields, listed = _listed(path, delta_version, folder, before)
    snapshot: dict[str, Any] = {
        "snapshot-id": number,
        "timestamp-ms": int(now.timestamp() * 1000),
        "manifest-list": listed,
        "summary": {**_SUMMARY, "delta-version": str(delta_version)},
    }
    described = _joined(_read(folder, after), fields, snapshot) | {
        "location": folder.table,
        "table-uuid": str(uuid5(NAMESPACE_URL, f"backfill-assets:{model}")),
        "properties": {"schema.name-mapping.default": json.dumps([*_names(fields), _NO_COLUMN])},
    }
    location = folder.new_name(f"{delta_version:08d}", "metadata.json")
    folder.write(location, json.dumps(described).encode())
    return location


def current_at(path: str, descriptions: Mapping[int, str], instant: datetime) -> int | None:
    """Find what a table's name stood for at an instant (UTC): the newest description that was written before.

    Args:
        path: of the table.
        descriptions: of the table, by delta_version.
        instant: when.

    Returns:
        The delta_version that it describes; None where each of them is newer.
    """
    folder = Folder.of(path)
    return next(
        (
            delta_version
            for delta_version, location in sorted(descriptions.items(), reverse=True)
            if (written := folder.written_at(location)) is not None and written < instant
        ),
        None,
    )


def drop_metadata(path: str, kept: Collection[str], *, since: datetime) -> None:
    """Delete old Iceberg metadata of a table.

    Args:
        path: of the table.
        kept: descriptions that stay, with all that their present snapshots name.
        since: what was written since this instant (UTC) stays, too: a name may be about to stand for it.
    """
    folder = Folder.of(path)
    needed = {*kept}
    for location in kept:
        described = _read(folder, location)
        if described is not None:
            needed |= _named_by(folder, str(_current(described)["manifest-list"]))
    folder.keep_only(needed, since)


def _named_by(folder: Folder, listed: str) -> set[str]:
    from backfill_assets.warehouse.iceberg.manifests import listed_manifests  # noqa: PLC0415

    return {listed, *(manifest.manifest_path for manifest in listed_manifests(folder, listed))}


def _listed(
    path: str, delta_version: int, folder: Folder, before: Described | None
) -> tuple[list[Described], str]:
    """Give the columns of a version of a table, and write the list of its manifests."""
    from backfill_assets.warehouse.iceberg.manifests import write_list  # noqa: PLC0415 - a promotion of a table as it is needs none

    table = opened_log(path, delta_version)
    older = None if before is None else _current(before)["manifest-list"]
    schema, listed = write_list(table, folder, older, _snapshot_id(path, delta_version))
    return json.loads(schema.model_dump_json(by_alias=True))["fields"], listed


def _joined(earlier: Described | None, fields: list[Described], snapshot: Described) -> Described:
    """Let a snapshot follow on those that the name stood for; where a column changed its type, on none."""
    if earlier is None or _contradicts(earlier, fields):
        earlier = {"schemas": [], "snapshots": [], "snapshot-log": [], "last-updated-ms": 0}
    schemas, schema_id = _with(earlier["schemas"], fields)
    number, at = snapshot["snapshot-id"], max(snapshot["timestamp-ms"], earlier["last-updated-ms"])
    before = [each for each in earlier["snapshots"] if each["snapshot-id"] != number]
    last = max((each["sequence-number"] for each in before), default=0) + 1
    present = snapshot | {
        "timestamp-ms": at,
        "sequence-number": last,
        "schema-id": schema_id,
        **({"parent-snapshot-id": before[-1]["snapshot-id"]} if before else {}),
    }
    snapshots = [*before, present][-LONGEST:]
    listed = {each["snapshot-id"] for each in snapshots}
    log = [*earlier["snapshot-log"], {"snapshot-id": number, "timestamp-ms": at}]
    return {
        "format-version": 2,
        "last-sequence-number": last,
        "last-updated-ms": at,
        "last-column-id": max(_ids(schemas), default=0),
        "schemas": schemas,
        "current-schema-id": schema_id,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": number,
        "snapshots": snapshots,
        "snapshot-log": [each for each in log if each["snapshot-id"] in listed],
    }


def _with(schemas: list[Described], fields: list[Described]) -> tuple[list[Described], int]:
    """Add a schema to others unless it is among them, and give its number."""
    for each in schemas:
        if each["fields"] == fields:
            return schemas, each["schema-id"]
    number = max((each["schema-id"] for each in schemas), default=-1) + 1
    return [*schemas, {"type": "struct", "schema-id": number, "fields": fields}], number


def _contradicts(earlier: Described, fields: list[Described]) -> bool:
    """Whether a column has another type than in an earlier schema, or another column its number."""
    now = {field["id"]: (field["name"], field["type"]) for field in fields}
    return any(
        now.get(field["id"], (field["name"], field["type"])) != (field["name"], field["type"])
        for each in earlier["schemas"]
        for field in each["fields"]
    )


def _names(fields: list[Described]) -> list[Described]:
    """Map the names in data files to the numbers of columns and of their parts, as Iceberg's readers want it."""
    return [
        {"field-id": field["id"], "names": [field["name"]], **_parts(field["type"])}
        for field in fields
    ]


def _parts(kind: str | Described) -> Described:
    match kind:
        case {"type": "struct", "fields": fields}:
            return {"fields": _names(fields)}
        case {"type": "list", "element-id": number, "element": element}:
            return {"fields": _names([{"id": number, "name": "element", "type": element}])}
        case {"type": "map"}:
            key = {"id": kind["key-id"], "name": "key", "type": kind["key"]}
            value = {"id": kind["value-id"], "name": "value", "type": kind["value"]}
            return {"fields": _names([key, value])}
        case _:
            return {}


def _ids(schemas: list[Described]) -> list[int]:
    """Name every number of the schemas, those of parts of columns too."""
    numbers: list[int] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            numbers.extend(
                number
                for key, number in value.items()
                if key in ("id", "element-id", "key-id", "value-id")
            )
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)

    collect(schemas)
    return numbers


def _snapshot_id(path: str, delta_version: int) -> int:
    """Number a delta_version of a table: its folder's name is that of a version, which is given once."""
    name = f"{path.rstrip('/').rsplit('/', 1)[-1]}/{delta_version}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def _current(described: Described) -> Described:
    number = described["current-snapshot-id"]
    return next(each for each in described["snapshots"] if each["snapshot-id"] == number)


def _current_fields(described: Described) -> list[Described]:
    number = described["current-schema-id"]
    return next(each["fields"] for each in described["schemas"] if each["schema-id"] == number)


def _read(folder: Folder, location: str | None) -> Described | None:
    """Read a description; None for none, and for one that was deleted."""
    content = None if location is None else folder.read(location)
    return None if content is None else json.loads(content)
