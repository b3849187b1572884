"""Write the evidence of plans: before a promotion moves pointers, and when a plan has ended.

    a promotion          write_before_publishing -> the folder says "about to be published"; without it nothing is published
    the end of a plan    owed, in the transaction that ends it
    afterwards           write_owed_evidence -> the folder is complete, its manifest the next of the chain

A process that dies in between leaves a row that says what is owed; the next operation on any plan writes it.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.plan_age import may_go_on
from backfill_assets.engine.project.waiting import leased
from backfill_assets.engine.review.end_facts import end_facts_of, end_facts_text, read_end_facts
from backfill_assets.engine.review.facts import gather
from backfill_assets.engine.review.parts import REPORT, made_parts
from backfill_assets.errors import PassingError
from backfill_assets.evidence.manifest import (
    EXPIRED,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    SEAL,
    UNFINISHED,
    WATCHED,
    earlier_name,
    json_text,
    seal_of,
    sha256,
)
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import ENDS, NOT_ENDED, PlanEventKind
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.evidence import EvidenceRecord
from backfill_assets.state.locks import PlanLeasedError
from backfill_assets.state.plans import UnknownPlanError
from backfill_assets.warehouse.files.text_folder import TextFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.project.project import InProject
    from backfill_assets.engine.review.end_facts import Noted
    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.snapshots.publication import Intent
    from backfill_assets.snapshots.stored_plan import StoredPlan

_LEASE, _PATIENCE = "evidence", 5.0
_log = logging.getLogger(__name__)


class EvidenceNotWrittenError(PassingError):
    """The evidence of a plan can't be written; of a promotion: so there is none.

    Args:
        plan_id: the plan.
        location: where it was to be written.
        error: why it can't.
        then: what that means, and the next command.
    """

    def __init__(self, plan_id: str, location: str, error: OSError, then: str) -> None:
        self.plan_id, self.location = plan_id, location
        super().__init__(
            f"the evidence of plan {plan_id} can't be written to {location}: "
            f"{error.strerror or error}. {then}, once there is free space and permission to write"
        )


def location_of(run: InProject, plan_id: str) -> str:
    """Give the folder, or the URI, of a plan's evidence."""
    return f"{run.data_root}/evidence/{plan_id}"


def report_of(run: InProject, plan_id: str) -> str | None:
    """Give where the report of a plan lies; None as long as the plan has left no evidence."""
    records = run.store.evidence.of_plan(plan_id)
    written = bool(records) and records[-1].written
    return f"{location_of(run, plan_id)}/{REPORT}" if written else None


def write_before_publishing(run: InProject, intent: Intent) -> None:
    """Write the evidence of a promotion that is about to move pointers.

    Going back needs none: it must be possible on a full disk, too.

    Raises:
        EvidenceNotWrittenError: it can't be written.
    """
    if intent.kind is not PublicationKind.PROMOTE:
        return
    try:
        plan = run.store.plans.get(intent.plan_id)
    except UnknownPlanError:
        return
    records = run.store.evidence.of_plan(plan.plan_id)
    at = intent.begun_at or run.clock()
    with run.at_work.at(Phase.RECORDING, "the evidence"):
        end = EvidenceRecord(number=0, plan_id=plan.plan_id, ended=UNFINISHED, at=at)
        folder = TextFolder(location_of(run, plan.plan_id))
        parts, made = _made(run, end, records, end_facts_of(run, plan, _last_noted(records)))
        try:
            _replace(folder, parts, json_text(made).encode())
        except OSError as error:
            then = f"Nothing was published; run `backfill promote {plan.plan_id}` again"
            raise EvidenceNotWrittenError(plan.plan_id, folder.location, error, then) from error


def record_end(run: InProject, plan_id: str, ended: str, why: str) -> None:
    """Let a plan that may go on leave evidence of where it stands, and why; and write it."""
    with suppress(StateBusyError, StateUnavailableError):  # the caller says what failed before
        run.store.evidence.owe(plan_id, ended, why)
    write_owed_evidence(run)


def leave_expired(run: InProject) -> None:
    """Let every plan whose time is over leave evidence, once: it can't be applied or promoted any more."""
    now = run.clock()
    for plan in run.store.plans.latest(statuses=NOT_ENDED):
        if may_go_on(run.store, plan, now):
            continue
        records = run.store.evidence.of_plan(plan.plan_id)
        if not records or records[-1].ended != EXPIRED:
            record_end(run, plan.plan_id, EXPIRED, "")


def write_owed_evidence(run: InProject) -> None:
    """Write all evidence that plans owe; what can't be written now stays owed, and the log says so."""
    try:
        if not run.store.evidence.owed():
            return
        with run.at_work.at(Phase.RECORDING, "the evidence"), leased(run, _LEASE, _PATIENCE):
            for plan_id in dict.fromkeys(each.plan_id for each in run.store.evidence.owed()):
                _write_owed(run, plan_id)
    except (PlanLeasedError, StateBusyError, StateUnavailableError) as error:
        _log.warning("evidence is still owed: %s; the next operation on a plan writes it", error)


def write_again(run: InProject, plan_id: str) -> None:
    """Write the evidence of a plan from the state: the same bytes, as long as nothing has changed.

    One that never left any leaves it now, of how it stands.

    Raises:
        UnknownPlanError: there is no such plan.
        EvidenceNotWrittenError: it can't be written.
        PlanLeasedError: another run is at work on evidence.
    """
    plan = run.store.plans.get(plan_id)
    with leased(run, _LEASE, _PATIENCE):
        records = run.store.evidence.of_plan(plan.plan_id)
        if not records or (records[-1].sha256 and not _is_what_was_kept(run, records)):
            ended = _stands_as(run, plan, records)
            records.append(run.store.evidence.owe(plan.plan_id, ended))
        folder = TextFolder(location_of(run, plan.plan_id))
        try:
            for record in records:
                if not record.written:
                    _complete(run, record)
            _rewrite(run, run.store.evidence.of_plan(plan.plan_id))
        except OSError as error:
            then = f"Run `backfill evidence write {plan.plan_id}` again"
            raise EvidenceNotWrittenError(plan.plan_id, folder.location, error, then) from error


def facts_of(run: InProject, plan_id: str) -> Facts:
    """Give the facts of a plan as they were at its last end; of one that has not ended, or went on, as they are now.

    Raises:
        UnknownPlanError: there is no such plan.
    """
    plan = run.store.plans.get(plan_id)
    kept = _kept(run.store.evidence.of_plan(plan.plan_id))
    if kept and kept[-1].noted and not _went_on(run, plan, kept[-1]):
        return _facts_again(run, kept[-1])
    now = EvidenceRecord(number=0, plan_id=plan_id, ended=plan.status.value, at=run.clock())
    return gather(run.store, plan, now, end_facts_of(run, plan, None))


def _went_on(run: InProject, plan: StoredPlan, record: EvidenceRecord) -> bool:
    """Whether a plan that was stopped, refused or expired then has gone on since."""
    if plan.status in ENDS:
        return False
    events = run.store.plans.events(plan.plan_id)
    return any(event.at > record.at and event.event not in _BESIDE for event in events)


def _stands_as(run: InProject, plan: StoredPlan, records: Sequence[EvidenceRecord]) -> str:
    """Say how a plan has ended, or where it stands."""
    if not records or plan.status in ENDS or _went_on(run, plan, records[-1]):
        return plan.status.value
    return records[-1].ended


def _write_owed(run: InProject, plan_id: str) -> None:
    """Write what a plan owes, end by end: a later one waits for those before it."""
    try:
        for record in run.store.evidence.of_plan(plan_id):
            if not record.written:
                _complete(run, record)
    except OSError as error:
        _log.warning(
            "the evidence of plan %s can't be written to %s: %s; `backfill evidence write %s` writes it",
            *(plan_id, location_of(run, plan_id), error, plan_id),
        )


def _complete(run: InProject, record: EvidenceRecord) -> None:
    """Write what a plan owes, and make its manifest the next of the chain.

    A process that has slept for longer than its lease may find that another one has done so meanwhile. What
    it wrote since may lie over newer files, so it writes the folder again as the state has it.

    Raises:
        OSError: it can't be written; it stays owed.
    """
    store, kept = run.store, record
    while kept.manifest is None:
        _keep_next(run, record)
        kept = next(
            each for each in store.evidence.of_plan(record.plan_id) if each.number == record.number
        )
    manifest = kept.manifest.encode()
    folder = TextFolder(location_of(run, record.plan_id))
    folder.write({MANIFEST: manifest, SEAL: seal_of(manifest)})
    alone = store.evidence.mark_written(record)
    records = store.evidence.of_plan(record.plan_id)
    if not alone or _kept(records)[-1].number != record.number:
        _rewrite(run, records)


def _keep_next(run: InProject, record: EvidenceRecord) -> None:
    """Write the parts of what a plan owes, and keep their manifest, unless another process was first."""
    store, folder = run.store, TextFolder(location_of(run, record.plan_id))
    earlier = [
        each for each in store.evidence.of_plan(record.plan_id) if each.number < record.number
    ]
    last, noted = store.evidence.last(), _noted(run, record, earlier)
    parts, made = _made(run, record, earlier, noted, last)
    folder.write(parts)
    folder.keep_only({*parts, MANIFEST, SEAL})
    text = json_text(made)
    # From here on it has its place; a process that dies now leaves the rest to the next one.
    noted_text, digest = end_facts_text(noted), sha256(text.encode())
    alone = store.evidence.keep(record, text, digest, noted_text, place=made["place"])
    records = store.evidence.of_plan(record.plan_id)
    if not alone and _kept(records):
        _rewrite(run, records)


def _noted(run: InProject, record: EvidenceRecord, earlier: Sequence[EvidenceRecord]) -> Noted:
    """Note what holds now; written again for the same end, what held then is what counts."""
    last = _last_noted(earlier)
    again = earlier and earlier[-1].ended == record.ended in _FINAL
    if last is not None and (again or record.ended == WATCHED):
        return last
    return end_facts_of(run, run.store.plans.get(record.plan_id), last)


def _made(
    run: InProject,
    end: EvidenceRecord,
    earlier: Sequence[EvidenceRecord],
    noted: Noted,
    last: EvidenceRecord | None = None,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Make what a plan leaves at an end, and the manifest that lists it, after the last one of the chain."""
    facts = gather(run.store, run.store.plans.get(end.plan_id), end, noted)
    parts, lacks = _files(facts, _kept(earlier))
    return parts, _manifest(facts, parts, lacks, last)


def _files(
    facts: Facts, earlier: Sequence[EvidenceRecord]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Make the parts, and the earlier manifests of the plan beside them."""
    parts, lacks = made_parts(facts)
    manifests = {
        earlier_name(record.place or 0): (record.manifest or "").encode() for record in earlier
    }
    return {**parts, **manifests}, lacks


def _manifest(
    facts: Facts, parts: dict[str, bytes], lacks: dict[str, str], last: EvidenceRecord | None
) -> dict[str, Any]:
    """List the parts; only what has ended has a place in the chain, after the last one there."""
    before = last and {"place": last.place, "plan_id": last.plan_id, "sha256": last.sha256}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "plan_id": facts.plan_id,
        "plan_content_hash": facts.stored.content_hash,
        "environment": facts.stored.environment,
        "ended": facts.ended,
        "at": facts.at.isoformat(),
        "why": facts.why,
        "place": None if facts.unfinished else ((last and last.place) or 0) + 1,
        "previous": None if facts.unfinished else before,
        "lacks": lacks,
        "files": _listed(parts),
    }


def _listed(parts: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    return {
        name: {"sha256": sha256(content), "bytes": len(content)} for name, content in parts.items()
    }


def _is_what_was_kept(run: InProject, records: Sequence[EvidenceRecord]) -> bool:
    """Whether the parts, made again, are those that the last manifest lists."""
    last = records[-1]
    facts = _facts_again(run, last)
    parts, _ = _files(facts, _kept(records[:-1]))
    return _listed(parts) == json.loads(last.manifest or "{}").get("files")


def _rewrite(run: InProject, records: Sequence[EvidenceRecord]) -> None:
    """Write all files of what was kept last, the manifest as it was."""
    *earlier, last = _kept(records)
    parts, _ = _files(_facts_again(run, last), earlier)
    folder = TextFolder(location_of(run, last.plan_id))
    _replace(folder, parts, (last.manifest or "").encode())


def _replace(folder: TextFolder, parts: dict[str, bytes], manifest: bytes) -> None:
    """Let a folder hold these parts and their manifest, and nothing else.

    Raises:
        OSError: it can't be written.
    """
    named = {**parts, MANIFEST: manifest, SEAL: seal_of(manifest)}
    folder.write(named)
    folder.keep_only({*named})


def _facts_again(run: InProject, record: EvidenceRecord) -> Facts:
    plan = run.store.plans.get(record.plan_id)
    return gather(run.store, plan, record, read_end_facts(record.noted or ""))


def _kept(records: Sequence[EvidenceRecord]) -> list[EvidenceRecord]:
    return [record for record in records if record.manifest is not None]


def _last_noted(records: Sequence[EvidenceRecord]) -> Noted | None:
    kept = [record.noted for record in records if record.noted]
    return read_end_facts(kept[-1]) if kept else None


_FINAL = frozenset(status.value for status in ENDS)
_BESIDE = frozenset(
    {
        PlanEventKind.MEASURED,
        PlanEventKind.WATCH,
        PlanEventKind.APPOINTED,
        PlanEventKind.APPOINTMENT_ENDED,
    }
)
"""Events with which a plan does not go on."""
