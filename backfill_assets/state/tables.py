"""The tables of the state, on one page.

Instants are epoch microseconds in UTC; boundaries of cells are epoch seconds, for they reach year
9999; contents and stamps are JSON text, for checksums have up to 38 digits. Migrations build
exactly these tables; a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.models.audit import Severity
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.publication import IntentStatus, PublicationKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.column_types import Choice, Instant, Text, Value

if TYPE_CHECKING:
    from enum import StrEnum

METADATA = sa.MetaData()


def _text(name: str, *, key: bool = False, field: str | None = None) -> sa.Column[Any]:
    """A text; `field` is its name in our code, where that means something in SQL."""
    return sa.Column(name, Text, primary_key=key, nullable=False, key=field)


def _choice(name: str, kind: type[StrEnum]) -> sa.Column[Any]:
    return sa.Column(name, Choice(kind), nullable=False)


def _number(name: str, *, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=False, autoincrement=False)


def _instant(name: str, *, key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, Instant, primary_key=key, nullable=False)


def _value(name: str) -> sa.Column[Any]:
    return sa.Column(name, Value, nullable=False)


def _audit_result() -> tuple[sa.Column[Any], ...]:
    """The columns of what an audit has found."""
    return (
        _choice("severity", Severity), sa.Column("passed", sa.Boolean, nullable=False), _text("found"),
        _text("allowed"), _number("failing_rows"), _value("cells"), _value("sample"),
    )  # fmt: skip


# One ever-growing number. Its row stays locked until the transaction that drew from it commits.
COUNTER = sa.Table("counter", METADATA, _text("name", key=True), _number("value"))

# The last three columns describe the last publication: when, by which plan, and which models it
# removed.
ENVIRONMENTS = sa.Table(
    "environments",
    METADATA,
    _text("name", key=True),
    sa.Column("protected", sa.Boolean, nullable=False),
    sa.Column("follows", Text),
    sa.Column("expires_at", Instant),
    sa.Column("opened", sa.BigInteger),
    sa.Column("finalized_at", Instant),
    sa.Column("finalized_by", Text),
    sa.Column("removed", Value),
)

SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    _text("fingerprint", key=True),
    _text("model"),
    _text("version"),
    _text("definition"),
    _text("logic"),
    _text("upstream"),
    _text("metadata"),
    _instant("saved_at"),
    sa.Column("sources", Text),
)

# `text` is what a module or file of some snapshot says; its definition names it by the SHA-256.
TEXTS = sa.Table("texts", METADATA, _text("sha256", key=True), _text("text"))

# `known_head` is the last delta_version of the table that the state has accounted for; `owner` the
# environment that alone writes it (NULL: the environment that opens it next); `made_by` the plan that made it;
# `left_at` when a pointer last left it (NULL: none did, or before this was kept).
VERSIONS = sa.Table(
    "versions",
    METADATA,
    _text("version", key=True),
    _text("model"),
    _text("path"),
    _number("known_head"),
    sa.Column("owner", Text),
    sa.Column("made_by", Text),
    sa.Column("collecting_at", Instant),
    sa.Column("left_at", Instant),
)

POINTERS = sa.Table(
    "pointers",
    METADATA,
    _text("environment", key=True),
    _text("model", key=True),
    _text("fingerprint"),
    _text("version"),
    _number("delta_version"),
    _value("under"),
    _value("certain"),
    _instant("moved_at"),
)

READY_RECORDS = sa.Table(
    "ready_records",
    METADATA,
    _text("version", key=True),
    _number("starts", key=True),
    _number("valid_from", key=True),
    _number("ends"),
    sa.Column("valid_to", sa.BigInteger),
    _number("built_at"),
    _text("fingerprint"),
    _text("batch_id"),
    _value("content"),
    _value("changed_at"),
)

# `moved`: a cell outside the batch's own interval, where a merge moves rows from or to.
CLAIMS = sa.Table(
    "claims",
    METADATA,
    _text("batch_id", key=True),
    _number("starts", key=True),
    _number("ends"),
    sa.Column("moved", sa.Boolean, nullable=False),
    _text("version"),
    _text("model"),
    _text("run_id"),
    _instant("claimed_at"),
    _instant("heartbeat_at"),
    sa.Index("claims_version", "version"),
)

# Rows stay after a release (holder NULL), so that tokens of a table only ever grow.
COMMIT_LOCKS = sa.Table(
    "commit_locks",
    METADATA,
    _text("version", key=True),
    sa.Column("holder", Text),
    _number("token"),
    _instant("taken_at"),
    _instant("heartbeat_at"),
)

_FAILED = sa.text("status = 'failed'")

# `failure`: what kind of failure ended it (NULL: none did); `resources`: the Spark settings it ran with;
# `stretches`: its cells, where others lie between them, and how many `seconds` they last (NULL: all from
# `starts` to `ends`); `who`: the person or the automation whose run it was (NULL: not known).
BATCHES = sa.Table(
    "batches",
    METADATA,
    _text("batch_id", key=True),
    _text("environment"),
    _text("model"),
    _text("version"),
    _text("fingerprint"),
    _number("starts"),
    _number("ends"),
    _text("run_id"),
    _text("root_id"),
    sa.Column("plan_id", Text),
    _text("reason"),
    _number("attempt"),
    _text("status"),
    _number("built_at"),
    _value("inputs"),
    _instant("started_at"),
    sa.Column("finished_at", Instant),
    sa.Column("delta_version", sa.BigInteger),
    sa.Column("row_count", sa.BigInteger, key="rows"),
    sa.Column("bytes_written", sa.BigInteger),
    sa.Column("error", Text),
    sa.Column("failure", Choice(FailureKind)),
    sa.Column("resources", Value),
    sa.Column("stretches", Value),
    sa.Column("seconds", sa.BigInteger),
    sa.Column("who", Text),
    sa.Index("batches_cells", "version", "starts", "ends"),
    sa.Index("batches_run", "run_id"),
    sa.Index("batches_plan", "plan_id"),
    sa.Index("batches_failed", "version", sqlite_where=_FAILED, postgresql_where=_FAILED),
    sa.Index("batches_built", "built_at"),
    sa.Index("batches_model", "model", "built_at"),
)

# The last failure of each model before a batch of it began: no source table, no Spark.
FAILED_STARTS = sa.Table(
    "failed_starts",
    METADATA,
    _text("environment", key=True),
    _text("model", key=True),
    _value("cells"),
    _text("error"),
    sa.Column("failure", Choice(FailureKind), key="kind", nullable=False),
    _text("run_id"),
    _text("who"),
    _instant("at"),
)

AUDIT_RESULTS = sa.Table(
    "audit_results",
    METADATA,
    _text("batch_id", key=True),
    _number("attempt", key=True),
    _text("audit", key=True),
    _text("model"),
    _number("starts"),
    _number("ends"),
    _instant("audited_at"),
    *_audit_result(),
    sa.Index("audit_results_model", "model", "audited_at"),
)

# What audits of published data have found, the last times that each model was audited.
PUBLISHED_AUDITS = sa.Table(
    "published_audits",
    METADATA,
    _text("environment", key=True),
    _text("model", key=True),
    _instant("audited_at", key=True),
    _text("audit", key=True),
    _text("version"),
    _number("delta_version"),
    _value("audited"),
    *_audit_result(),
)

# Cells of a version that stay owed until a batch that began after `since` has rebuilt them: by one
# environment, or by all that read the version.
OWED = sa.Table(
    "owed",
    METADATA,
    _text("version", key=True),
    _number("starts", key=True),
    _number("since", key=True),
    _number("ends"),
    _text("reason"),
    sa.Column("plan_id", Text),
    sa.Column("environment", Text),
)

PLANS = sa.Table(
    "plans",
    METADATA,
    _text("plan_id", key=True),
    _text("environment"),
    _choice("status", PlanStatus),
    _text("content"),
    _text("content_hash"),
    _instant("created_at"),
    _text("created_by"),
    _text("reason"),
    _instant("expires_at"),
    _value("cells"),
    sa.Index("plans_status", "status"),
)

# Rows are only ever added.
PLAN_EVENTS = sa.Table(
    "plan_events",
    METADATA,
    _text("plan_id", key=True),
    _number("number", key=True),
    _instant("at"),
    _text("event"),
    _text("who"),
    _text("why"),
    _value("detail"),
)

# What principals have signed about plans: approvals, and who promoted. Rows are only ever added.
APPROVALS = sa.Table(
    "approvals", METADATA,
    _text("plan_id", key=True), _number("number", key=True), _text("act"), _text("principal"),
    _text("text"), _text("signature"), _instant("at"), _instant("expires"),
)  # fmt: skip

# Intents to publish: written before any lock is taken, so that a dead one can be finished.
PROMOTIONS = sa.Table(
    "promotions",
    METADATA,
    _number("number", key=True),
    _text("plan_id"),
    _text("environment"),
    _choice("kind", PublicationKind),
    _text("holder"),
    _value("versions"),
    _value("steps"),
    _choice("status", IntentStatus),
    sa.Column("published", sa.BigInteger),
    _instant("begun_at"),
    _instant("heartbeat_at"),
    sa.Index("promotions_status", "status"),
)

# Rows are only ever added: the history of what environments read.
POINTER_MOVES = sa.Table(
    "pointer_moves",
    METADATA,
    _number("number", key=True),
    _text("model", key=True),
    _text("environment"),
    _text("plan_id"),
    _choice("kind", PublicationKind),
    _instant("at"),
    _text("who"),
    _text("why"),
    _value("old"),
    _value("new"),
    _value("cells"),
    _value("changed"),
    _value("stale_before"),
    sa.Column("promised_until", Instant),
    sa.Index("pointer_moves_environment", "environment", "number"),
    sa.Index("pointer_moves_plan", "plan_id"),
)

# Sources that were looked at: up to which delta_version every change is known. `table_id` is Delta's
# own, which differs for a table that was made anew; `declared` is what its cells are cut by; `runs` are
# its cells again, touching ones with one stamp joined, for a picture is drawn often; `bytes` of its
# files at that head (NULL: not counted yet).
OBSERVED_SOURCES = sa.Table(
    "observed_sources", METADATA, _text("source", key=True), _text("path"), _text("table_id"),
    _text("declared"), _number("head"), _instant("observed_at"), _text("runs"),
    sa.Column("changes", Text), sa.Column("bytes", sa.BigInteger),
)  # fmt: skip

# What each cell of a source held when it was looked at last; `changed_at` is 0 for what was there
# at the first look. `content` is equal for the same rows if they were read, else NULL.
# `columns_changed_at` has the columns (JSON) that changed after `changed_at`, while the rest did not.
SOURCE_CELLS = sa.Table(
    "source_cells", METADATA, _text("source", key=True), _number("starts", key=True),
    _number("ends"), _number("row_count"), sa.Column("content", Text), _number("changed_at"),
    sa.Column("columns_changed_at", Text),
)  # fmt: skip

# How many batches may be in flight at once: `all`, `model:<name>` or `plan:<id>`.
LIMITS = sa.Table(
    "limits", METADATA,
    _text("scope", key=True), _number("slots"), _text("set_by"), _instant("set_at"),
)  # fmt: skip

# Batches that wait for a slot of a limit, in the order in which they came; one that is not heard of
# for some seconds no longer counts.
SLOT_WAITERS = sa.Table(
    "slot_waiters", METADATA,
    _text("batch_id", key=True), _text("scope"), _instant("since"), _instant("heard_at"),
)  # fmt: skip

# The day before which a model's cells keep the old definition; none where a plan lifts it.
CUTOFFS = sa.Table(
    "cutoffs", METADATA,
    _text("environment", key=True), _text("model", key=True), _number("number", key=True),
    _text("plan_id"), sa.Column("since", Text), _text("reason"),
)  # fmt: skip

# Plans that are released to the run queue, and whether a person has paused or stopped them.
QUEUED_PLANS = sa.Table(
    "queued_plans", METADATA, _text("plan_id", key=True), _choice("control", Control),
    sa.Column("off_peak", Text), _text("set_by"), _instant("set_at"),
    sa.Column("queued_at", Instant),
)  # fmt: skip

# How long the last operations took, by step; `plan_id` is empty where no plan was served.
TIMINGS = sa.Table(
    "timings", METADATA,
    _number("number", key=True), _instant("at"), _text("verb"), _text("plan_id"), _value("steps"),
    _number("cells"), sa.Column("by_rows", sa.Boolean, nullable=False),
)  # fmt: skip

# What comparisons of a plan have found, by a key of all that they have read.
COMPARISONS = sa.Table(
    "comparisons", METADATA,
    _text("plan_id", key=True), _text("key", key=True), _text("found"), _instant("at"),
)  # fmt: skip

# The last result of each check of a plan, and which findings a person has accepted.
PLAN_CHECKS = sa.Table(
    "plan_checks",
    METADATA,
    _text("plan_id", key=True), _number("number", key=True), _text("model"),
    _text("check_name", field="check"), sa.Column("passed", sa.Boolean, nullable=False),
    _text("found", field="text"),
    sa.Column("blocking", sa.Boolean, nullable=False), _text("decided_by"), _text("basis"),
    _instant("at"),
)  # fmt: skip

ACCEPTANCES = sa.Table(
    "acceptances",
    METADATA,
    _text("plan_id", key=True), _number("number", key=True), _text("model"),
    _text("check_name", field="check"), _text("found", field="text"), _text("basis"),
    _text("reason"), _text("who"), _instant("at"),
)  # fmt: skip

# The Iceberg catalogue, if there is one: its name, and the metadata file of each table at each of its versions
# that an environment has read since. The view `iceberg_tables` joins them with the pointers.
ICEBERG_CATALOG = sa.Table("iceberg_catalog", METADATA, _text("name", key=True))

ICEBERG_ENTRIES = sa.Table(
    "iceberg_entries",
    METADATA,
    _text("version", key=True),
    _number("delta_version", key=True),
    _text("location"),
)

# The evidence of plans: a row for each end of a plan; `why` it was refused, or was not built. `place` in the chain, the manifest and its SHA-256 follow
# when it is made (NULL: it is owed); `noted` is what it rests on and the state keeps nowhere else; `written`:
# whether the folder holds it. Rows are only added.
EVIDENCE = sa.Table(
    "evidence", METADATA, _number("number", key=True), _text("plan_id"), _text("ended"),
    _instant("at"), _text("why"), sa.Column("place", sa.BigInteger), sa.Column("sha256", Text),
    sa.Column("manifest", Text), sa.Column("noted", Text),
    sa.Column("written", sa.Boolean, nullable=False), sa.Index("evidence_plan", "plan_id"),
)  # fmt: skip

# Consumers that are held: `environment` has the frozen pointers, `held_of` is whose publication they are;
# `until` is when a person meant to release it (NULL: not said).
HOLDS = sa.Table(
    "holds", METADATA, _text("environment", key=True), _text("consumer"), _text("held_of", field="of"),
    _instant("held_at"), sa.Column("until", Instant), _text("who"), _text("reason"),
)  # fmt: skip

# The outbox of notices: `number` is that of the plan's event; a row without a consumer is the
# event itself, until it is known whom it concerns; `next_at` is when it is tried next (NULL: done, or given up).
NOTICES = sa.Table(
    "notices", METADATA, _text("plan_id", key=True), _number("number", key=True), _text("event"),
    _text("consumer", key=True), _text("channel", key=True), _instant("asked_at"),
    _number("attempts"), sa.Column("next_at", Instant), sa.Column("delivered_at", Instant),
    _text("error"), sa.Index("notices_due", "next_at"),
)  # fmt: skip

# Registered results: which cells each has used, of a publication (`plan_id` empty) or of a built plan; `rerun`:
# it has to be computed again before a plan that invalidates it is promoted.
RESULTS = sa.Table(
    "results", METADATA, _text("environment", key=True), _text("name", key=True),
    _text("model", key=True), _text("plan_id", key=True), _value("cells"), _text("version"),
    _number("delta_version"), sa.Column("rerun", sa.Boolean, nullable=False), _text("who"),
    _instant("at"), _text("reason"),
)  # fmt: skip
