"""The parts of a plan's evidence: the name of each file, and the function that makes it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from backfill_assets.engine.review import records
from backfill_assets.engine.review.compared import diff
from backfill_assets.engine.review.lineage import lineage_events
from backfill_assets.engine.review.release_note import release_note
from backfill_assets.engine.review.way_back import way_back_text
from backfill_assets.evidence.manifest import json_text
from backfill_assets.planning.review.aftercare import watch_json, watch_of
from backfill_assets.planning.review.release_note import note_text
from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets.render.report.page import report_html

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.review.facts import Facts

_log = logging.getLogger(__name__)

PARTS: tuple[tuple[str, Callable[[Facts], str]], ...] = (
    ("plan.json", lambda facts: facts.stored.content),
    ("plan.md", lambda facts: plan_markdown(facts.plan, facts.naming)),
    ("model_diffs.json", records.model_diffs),
    ("audits.json", records.audits),
    ("contract.json", records.contract),
    ("diff.json", diff),
    ("approvals.json", records.approvals),
    ("inputs.json", records.inputs),
    ("outputs.json", records.outputs),
    ("timeline.json", records.timeline),
    ("estimate.json", records.estimate),
    ("consumers.json", records.consumers),
    ("aftercare.json", lambda facts: json_text({"watch": watch_json(watch_of(facts.events))})),
    ("release_note.md", lambda facts: note_text(release_note(facts))),
    ("way_back.md", way_back_text),
    ("openlineage.ndjson", lambda facts: records.ndjson(lineage_events(facts))),
)
"""What evidence consists of, but for the report, in the order in which it is written. Each text follows from the facts alone."""


REPORT = "report.html"
"""The part that is made of the others."""


def made_parts(facts: Facts) -> tuple[dict[str, bytes], dict[str, str]]:
    """Make every part.

    Returns:
        The parts by name; and of each that can't be made, why. Evidence that lacks a part says so, and
        doesn't keep a plan from being published.
    """
    made: dict[str, bytes] = {}
    lacks: dict[str, str] = {}
    for name, make in (*PARTS, (REPORT, lambda _: report_html(made, lacks))):
        try:
            made[name] = make(facts).encode()
        except Exception as error:  # noqa: BLE001 - the other parts are worth having
            _log.warning("evidence of plan %s lacks %s: %s", facts.plan_id, name, error)
            lacks[name] = f"{type(error).__name__}: {error}"
    return made, lacks
