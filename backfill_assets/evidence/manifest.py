"""The manifest of evidence: what a plan's folder must hold, and which manifest came before.

The folder ``evidence/<plan id>/`` holds the parts; `MANIFEST` with the SHA-256 and size of each, and of the
manifest before it in the chain; ``manifest-<place>.json``, earlier manifests of a plan that went on since;
and `SEAL`, the SHA-256 of the manifest itself.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

FORMAT = "backfill_assets.evidence"
FORMAT_VERSION = 1
MANIFEST, SEAL = "manifest.json", "manifest.sha256"
UNFINISHED = "about to be published"
"""The end that a manifest names while a publication is under way."""
STOPPED, REFUSED, EXPIRED = "stopped", "refused", "expired"
"""Ends that are no status: not all is built, or what is built is refused (either plan may go on); or its time is over."""
WATCHED = "promoted and watched"
"""No end of the plan, but of its watch, or a look that has found something wrong."""

EXPECTED = (
    "plan.json",
    "plan.md",
    "model_diffs.json",
    "audits.json",
    "contract.json",
    "diff.json",
    "approvals.json",
    "inputs.json",
    "outputs.json",
    "timeline.json",
    "estimate.json",
    "consumers.json",
    "aftercare.json",
    "release_note.md",
    "way_back.md",
    "openlineage.ndjson",
    "report.html",
)
"""The parts without which evidence of this format is incomplete."""


def sha256(content: bytes) -> str:
    """Give the SHA-256 of a content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def json_text(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write JSON that is the same for equal values; instants are text as ISO 8601 has it."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} is no JSON")


def seal_of(manifest: bytes) -> bytes:
    """Give the text of `manifest.sha256`, as ``sha256sum --check`` reads it."""
    return f"{sha256(manifest)}  {MANIFEST}\n".encode()


def earlier_name(place: int) -> str:
    """Name the file that an earlier manifest of the same plan is kept in."""
    return f"manifest-{place}.json"


def is_manifest(name: str) -> bool:
    """Whether a file is a manifest of its folder, the present one or an earlier one."""
    return name == MANIFEST or (name.startswith("manifest-") and name.endswith(".json"))
