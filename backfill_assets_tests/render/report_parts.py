"""Parts of evidence as reports are made of them: small or large, of good plans and of bad ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2024, 1, 1, tzinfo=UTC)


def parts_of(  # noqa: PLR0913 - each is one thing that a report tells
    *,
    models: int = 1,
    cells: int = 4,
    columns: int = 1,
    ended: str = "promoted",
    passed: bool = True,
    accepted: str = "",
    names: str = "web.visits",
) -> dict[str, bytes]:
    """Make the parts of a plan that doubles every number of every second cell."""
    listed = [names if models == 1 else f"{names}_{number}" for number in range(models)]
    check = {
        "model": listed[0],
        "check": f"only {names} differs",
        "passed": passed,
        "text": "found 3 rows of cost",
        "blocking": True,
        "decided_by": "ann",
        "basis": "",
        "accepted": accepted,
    }
    published = {
        "kind": "promote",
        "who": "ben",
        "why": "",
        "at": "2024-06-01T10:00:00+00:00",
        "models": [
            {
                "model": model,
                "after": {"version": "visits__1"},
                "published_cells": cells,
                "differing_cells": cells // 2,
                "differ": ["2024-01-02"],
                "differing_columns": {"cost_0": ["2024-01-02"]},
            }
            for model in listed
        ],
    }
    way_back = (
        "Until 2024-07-01 10:00 UTC:\n\n    backfill rollback p1\n" if ended == "promoted" else ""
    )
    made: dict[str, Any] = {
        "timeline.json": {
            "plan": {
                "plan_id": "p1",
                "environment": "prod",
                "ended": ended,
                "created_by": "ann",
                "reason": f"{names} was wrong",
                "why": "",
            },
            "events": [
                {"at": "2024-06-01T09:00:00+00:00", "event": "built", "who": "ann", "why": names}
            ],
            "batches": [],
        },
        "audits.json": {
            "batches": [_audit(listed[0], passes=True), _audit(listed[0], passes=passed)],
            "kept_cells": [],
            "checks": [check],
        },
        "contract.json": {
            "rules": [],
            "accepted": [
                {"who": "cleo", "model": listed[0], "text": check["text"], "reason": accepted}
            ]
            if accepted
            else [],
        },
        "diff.json": {"models": [_model(model, cells, columns) for model in listed]},
        "model_diffs.json": {
            "models": [
                {
                    "model": listed[0],
                    "diff": f"- {names}\n+ 1 < 2",
                    "category": "breaking",
                    "change": "modified",
                    "category_reason": "",
                    "decided_by": "planner",
                }
            ]
        },
        "outputs.json": {"built": [], "publications": [published] if ended == "promoted" else []},
        "consumers.json": {
            "consumers": [
                {
                    "consumer": f"{names} board",
                    "kind": "dashboard",
                    "owner": "team:web",
                    "model": listed[0],
                    "columns": ["cost_0"],
                    "cells": ["2024-01-02"],
                }
            ]
        },
        "approvals.json": {
            "signed": [
                {
                    "principal": "cleo",
                    "act": "approve",
                    "at": "2024-06-01T09:30:00+00:00",
                    "expires": "2024-06-08T09:30:00+00:00",
                }
            ]
        },
        "estimate.json": {
            "estimate": {"seconds": [10.0, 20.0]},
            "actual": {
                "seconds": 12.0,
                "batches": 2,
                "rows": 1200,
                "bytes_written": 9000,
                "failed": 0,
            },
        },
    }
    texts = {name: json.dumps(content).encode() for name, content in made.items()}
    return {**texts, "way_back.md": way_back.encode()}


def _audit(model: str, *, passes: bool) -> dict[str, Any]:
    return {
        "model": model,
        "audit": "cost_is_positive",
        "severity": "warning" if passes else "blocking",
        "committed": passes,
        "passed": passes,
        "found": "0 of 3 rows" if passes else "3 of 3 rows fail",
        "allowed": "0 rows",
        "sample": [] if passes else ["{'id': 7}"],
    }


def _model(model: str, cells: int, columns: int) -> dict[str, Any]:
    days = [START + timedelta(days=day) for day in range(cells)]
    half = [10 * (day % 2) for day in range(cells)]
    sums = [f"{day * 1234.5678:.4f}" for day in range(cells)]
    doubled = [f"{day * 1234.5678 * (1 + day % 2):.4f}" for day in range(cells)]
    column = {
        "changed": half,
        "old_filled": [10] * cells,
        "new_filled": [10] * cells,
        "old_sum": sums,
        "new_sum": doubled,
    }
    return {
        "model": model,
        "planned": [[START.isoformat(), (START + timedelta(days=cells)).isoformat()]],
        "cells": [f"{day:%Y-%m-%d}" for day in days],
        "starts": [day.isoformat() for day in days],
        "ends": [(day + timedelta(days=1)).isoformat() for day in days],
        "old_rows": [10] * cells,
        "new_rows": [10] * cells,
        "keys_added": [0] * cells,
        "keys_removed": [0] * cells,
        "rows_changed": half,
        "columns_added": [],
        "columns_removed": [],
        "columns": {f"cost_{number}": column for number in range(columns)},
        "sample": [
            {
                "cell": "2024-01-02",
                "change": "changed",
                "key": {"id": "7"},
                "old": {"cost_0": "1"},
                "new": {"cost_0": None},
            }
        ],
    }
