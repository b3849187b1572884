"""The parts of a plan that an approval binds: what an approver has agreed to, each with its hash.

What an approval shall bind besides is one line in `PARTS`: a name, and a function that gives a value of the
core. Its hash must stay as long as nothing that was approved has changed, and no longer; cells that gap fills
add afterwards are not among it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from backfill_assets.engine.review.known_differences import known_differences
from backfill_assets.engine.review.preflight import inventory_of
from backfill_assets.models.codec import dumps
from backfill_assets.planning.plan.plan_json import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.review.reviewed import Reviewed


def _plan(of: Reviewed) -> object:
    return content_hash(of.plan)


def _built(of: Reviewed) -> object:
    """Give the checksums of every cell that the plan has built: what a diff rests on."""
    return tuple(
        (planned.model, tuple((str(record.cell), record.content) for record in of.built(planned)))
        for planned in of.plan.models
    )


def _audits(of: Reviewed) -> object:
    """Give what the audits of these cells have found."""
    batches = sorted({record.batch_id for each in of.plan.models for record in of.built(each)})
    rows = (row for batch in batches for row in of.store.batches.audit_results(batch_id=batch))
    return tuple(
        sorted(dumps((row.audited.model, str(row.audited.interval), row.result)) for row in rows)
    )


def _accepted(of: Reviewed) -> object:
    """Give the differences outside of the contract that a person has accepted, with their numbers."""
    accepted = known_differences(of.store, of.plan.plan_id)
    return tuple((each.model, each.check, each.text) for each in accepted)


def _checks(of: Reviewed) -> object:
    """Give which checks of the plan have passed; their texts also count cells that gap fills add."""
    checks = of.store.checks.of_plan(of.plan.plan_id)
    return tuple((check.model, check.check, check.passed) for check in checks)


def _consumers(of: Reviewed) -> object:
    """Give the declarations of those who read what the plan touches, the day of their review included."""
    touched = {planned.model for planned in of.plan.models} | {*of.plan.removed}
    consumers = of.project.loaded.graph.consumers.values()
    return tuple(
        sorted(
            dumps(consumer)
            for consumer in consumers
            if touched & {reading.model for reading in consumer.reads}
        )
    )


def _inventory(of: Reviewed) -> object:
    """Give what had to be known before the plan computed: owners, rows in sources, what each time means, and so on."""
    items = inventory_of(of.project, of.plan)
    return tuple((item.name, item.standing.value, item.texts) for item in items)


def _policy(of: Reviewed) -> object:
    return of.gate.digest


def _estimate(of: Reviewed) -> object:
    return of.plan.estimate


def _way_back(of: Reviewed) -> object:
    """Give how to go back, for how long, and to which tables."""
    tables = tuple((planned.model, planned.old_version) for planned in of.plan.models)
    return (of.plan.rollback, of.project.terms.promise_days, tables)


PARTS: tuple[tuple[str, Callable[[Reviewed], object]], ...] = (
    ("plan", _plan),
    ("built cells", _built),
    ("audit results", _audits),
    ("checks", _checks),
    ("accepted differences", _accepted),
    ("consumers", _consumers),
    ("inventory", _inventory),
    ("policy", _policy),
    ("estimate", _estimate),
    ("way back", _way_back),
)
"""Every part in the order in which it is shown: its name, and what gives it."""


def bound_parts(of: Reviewed) -> dict[str, str]:
    """Hash every part of a plan as it is now, by its name."""
    return {name: hashlib.sha256(dumps(part(of)).encode()).hexdigest() for name, part in PARTS}
