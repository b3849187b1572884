"""The parts of evidence that are JSON: what was planned, tested, read, written, and when."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.review.compared import sums_of
from backfill_assets.evidence.manifest import json_text
from backfill_assets.planning.review.answers import told_answers
from backfill_assets.planning.review.touched import ROWS
from backfill_assets.render.actual import actual_of
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.snapshots.signed_statement import SignedStatement
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.batch_rows import BatchRow

Json = dict[str, Any]


def model_diffs(facts: Facts) -> str:
    """Write how each model differs from what its environment ran."""
    plan = facts.plan
    names = (
        "model", "change", "category", "category_reason", "decided_by", "build", "strategy",
        "old_fingerprint", "fingerprint", "old_version", "version", "diff",
    )  # fmt: skip
    models = [_attributes(planned, *names) for planned in plan.models]
    untouched = [asdict(reader) for reader in plan.untouched]
    return json_text({"models": models, "removed": plan.removed, "left_alone": untouched})


def audits(facts: Facts) -> str:
    """Write every result: of the batches' audits, of audits of kept cells, of checks of the plan."""
    committed = {row.batch_id: row.attempt for row in facts.committed}
    kept = [dict(event.detail) for event in facts.events if event.event == PlanEventKind.AUDITED]
    return json_text(
        {
            "batches": [_audit(row, committed) for row in facts.audits],
            "kept_cells": kept,
            "checks": [asdict(check) for check in facts.checks],
        }
    )


def contract(facts: Facts) -> str:
    """Write what the plan was expected to change, what the checks found of it, and what was accepted."""
    by_rule = {(check.model, check.check): check for check in facts.checks}
    rules = [
        {
            "model": expected.model,
            "rule": expected.check,
            "decided_by": expected.decided_by,
            "found": check.text
            if (check := by_rule.get((expected.model, expected.check)))
            else None,
            "passed": check.passed if check else None,
        }
        for expected in facts.plan.contract
    ]
    return json_text({"rules": rules, "accepted": list(map(asdict, facts.accepted))})


def approvals(facts: Facts) -> str:
    """Write what principals have signed about the plan: the text, the signature that proves it, and if an approval counts."""
    return json_text({"signed": [_signed(facts, statement) for statement in facts.signatures]})


def _signed(facts: Facts, statement: SignedStatement) -> Json:
    """Write a statement; beside one that was judged, why it does not count: empty where it does."""
    void = facts.noted.approvals.get(statement.sha256)
    return asdict(statement) if void is None else {**asdict(statement), "void": void}


def _audit(row: AuditRow, committed: dict[str, int]) -> Json:
    of, result = row.audited, row.result
    return {
        **_attributes(of, "batch_id", "attempt", "model", "audited_at"),
        "committed": committed.get(of.batch_id) == of.attempt,
        "batch": (of.interval.start, of.interval.end),
        **_attributes(
            result, "audit", "severity", "passed", "found", "allowed", "failing_rows", "sample"
        ),
        "failing_cells": result.cells,
    }


def inputs(facts: Facts) -> str:
    """Write what was read: by the plan as it was made, and by each of its batches, at which pins."""
    sources: dict[str, set[int]] = {}
    for row in facts.batches:
        for pin in row.inputs:
            if not pin.version:
                sources.setdefault(pin.upstream, set()).add(pin.delta_version)
    planned = {
        planned.model: [
            {
                **_attributes(read, "upstream", "columns", "version", "delta_version"),
                "cells": facts.named(read.upstream, read.cells),
            }
            for read in planned.reads
        ]
        for planned in facts.plan.models
    }
    return json_text(
        {
            "planned": planned,
            "batches": [_read(facts, row) for row in facts.batches],
            "source_delta_versions": {name: sorted(sources[name]) for name in sources},
        }
    )


def _read(facts: Facts, row: BatchRow) -> Json:
    return {
        **_attributes(row, "batch_id", "model", "attempt"),
        "cells": facts.named(row.model, row.stretches),
        "inputs": [_pin(facts, pin) for pin in row.inputs],
    }


def _pin(facts: Facts, pin: InputPin) -> Json:
    return {
        **_attributes(pin, "upstream", "version", "delta_version"),
        "place": pin.path,
        "cells": None if pin.cells is None else facts.named(pin.upstream, pin.cells),
    }


def outputs(facts: Facts) -> str:
    """Write what was built, and what each publication moved, with the cells and columns that differ."""
    numbers = dict.fromkeys(move.number for move in facts.moves)
    by_number = {
        number: [move for move in facts.moves if move.number == number] for number in numbers
    }
    names = (
        "batch_id", "model", "environment", "version", "delta_version", "fingerprint", "rows", "bytes_written",
    )  # fmt: skip
    built = [
        {**_attributes(row, *names), "cells": facts.named(row.model, row.stretches)}
        for row in facts.committed
    ]
    publications = [_publication(facts, moves) for moves in by_number.values()]
    return json_text({"built": built, "publications": publications})


def _publication(facts: Facts, moves: list[PointerMove]) -> Json:
    first = moves[0]
    return {
        **_attributes(first, "number", "kind", "environment", "at", "who", "why"),
        "models": [_move(facts, move) for move in moves],
    }


def _move(facts: Facts, move: PointerMove) -> Json:
    columns, gone = facts.columns(move), facts.gone(move)
    published, differ = move.cells - gone, move.changed - gone
    named = {
        name: facts.named(move.model, cells)
        for name, cells in (columns or {}).items()
        if name != ROWS
    }
    rows = (columns or {}).get(ROWS, gone) - gone
    return {
        "model": move.model,
        "before": _pointer(move.old),
        "after": _pointer(move.new),
        "published": facts.named(move.model, published),
        "published_cells": facts.naming.count(move.model, published),
        "gone": facts.named(move.model, gone),
        "differ": facts.named(move.model, differ),
        "differing_cells": facts.naming.count(move.model, differ),
        "differing_columns": None if columns is None else named,
        "other_rows": facts.named(move.model, rows),
    }


def _pointer(at: Pointer | None) -> Json | None:
    if at is None:
        return None
    return {
        **_attributes(at, "version", "delta_version", "fingerprint"),
        "under": list(map(asdict, at.under)),
    }


def timeline(facts: Facts) -> str:
    """Write what happened, and when: events, batches with their attempts and errors, publications."""
    stored = facts.stored
    names = ("plan_id", "environment", "created_at", "created_by", "reason", "expires_at")
    return json_text(
        {
            "plan": {
                **_attributes(stored, *names),
                "ended": facts.ended,
                "ended_at": facts.at,
                "why": facts.why,
            },
            "events": [
                {
                    **_attributes(event, "number", "at", "event", "who", "why"),
                    "detail": dict(event.detail),
                }
                for event in facts.events
            ],
            "batches": [_batch(facts, row) for row in facts.batches],
            "publications": [
                _attributes(intent, "number", "kind", "status", "begun_at", "published")
                for intent in facts.intents
            ],
        }
    )


def _batch(facts: Facts, row: BatchRow) -> Json:
    names = (
        "batch_id", "model", "attempt", "reason", "status", "run_id", "who", "started_at", "finished_at",
        "failure", "error",
    )  # fmt: skip
    return {
        **_attributes(row, *names),
        "cells": facts.named(row.model, row.stretches),
        "spark": dict(row.resources) if row.resources else {},
    }


def estimate(facts: Facts) -> str:
    """Write what the plan was expected to take, and what it took."""
    plan = facts.plan
    actual = actual_of(facts.events, facts.batches, facts.noted.timings)
    return json_text(
        {
            "estimate": asdict(plan.estimate) if plan.estimate else None,
            "actual": asdict(actual),
            "operations": [
                {"verb": timing.verb, "seconds": dict(timing.steps)}
                for timing in facts.noted.timings
            ],
        }
    )


def consumers(facts: Facts) -> str:
    """Write whom the plan touches, on which columns and dates."""
    return json_text(
        {
            "published": bool(facts.promoted),
            "consumers": [
                {
                    **_attributes(reader, "consumer", "kind", "owner", "model", "columns"),
                    "cells": facts.named(reader.model, reader.cells),
                    "cell_count": facts.naming.count(reader.model, reader.cells),
                    "sums": {
                        name: {"before": before, "after": after}
                        for name, (before, after) in sums_of(facts, reader).items()
                    },
                }
                for reader in facts.touched()
            ],
            "results": [
                {
                    **_attributes(entry.result, "name", "model"),
                    "cells": facts.named(entry.result.model, entry.cells),
                    "registered_by": entry.result.who,
                    "registered_at": entry.result.at,
                    "computed_again": entry.again,
                }
                for entry in facts.noted.results
            ],
            "answers": [
                {
                    **_attributes(given, "consumer", "who", "at", "reason"),
                    "answer": "acknowledged" if given.agrees else "objected",
                }
                for given in told_answers(facts.events)
            ],
            "declared": sorted(consumer.name for consumer in facts.noted.consumers),
        }
    )


def ndjson(events: Iterable[Json]) -> str:
    """Write one JSON object a line."""
    return "".join(
        json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        for event in events
    )


def _attributes(value: object, *names: str) -> Json:
    """Give some attributes of a value as they are called there; `json_text` writes enums and instants."""
    return {name: getattr(value, name) for name in names}
