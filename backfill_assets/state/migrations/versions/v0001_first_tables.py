"""The first tables, the counter at zero, and the environment `prod`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _number(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False) for name in names]


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def upgrade() -> None:
    """Create them."""
    _create_pointers()
    _create_ready_records()
    _create_claims()
    _create_batches()
    op.execute("INSERT INTO counter (name, value) VALUES ('events', 0)")
    op.execute(sa.text("INSERT INTO environments VALUES ('prod', :yes)").bindparams(yes=True))


def _create_pointers() -> None:
    op.create_table("counter", *_text("name"), *_number("value"), sa.PrimaryKeyConstraint("name"))
    op.create_table(
        "environments", *_text("name"), _flag("protected"), sa.PrimaryKeyConstraint("name")
    )
    op.create_table(
        "snapshots",
        *_text("fingerprint", "model", "version", "definition", "logic", "upstream", "metadata"),
        *_number("saved_at"),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_table(
        "versions",
        *_text("version", "model", "path"),
        *_number("known_head"),
        sa.PrimaryKeyConstraint("version"),
    )
    op.create_table(
        "pointers",
        *_text("environment", "model", "fingerprint", "version"),
        *_number("delta_version", "moved_at"),
        sa.PrimaryKeyConstraint("environment", "model"),
    )


def _create_ready_records() -> None:
    op.create_table(
        "ready_records",
        *_text("version"),
        *_number("starts", "valid_from", "ends"),
        sa.Column("valid_to", sa.BigInteger()),
        *_number("built_at"),
        *_text("fingerprint", "batch_id", "content", "changed_at"),
        sa.PrimaryKeyConstraint("version", "starts", "valid_from"),
    )
    op.create_table(
        "owed",
        *_text("version"),
        *_number("starts", "since", "ends"),
        *_text("reason"),
        sa.PrimaryKeyConstraint("version", "starts", "since"),
    )


def _create_claims() -> None:
    op.create_table(
        "claims",
        *_text("batch_id"),
        *_number("starts", "ends"),
        _flag("moved"),
        *_text("version", "model", "run_id"),
        *_number("claimed_at", "heartbeat_at"),
        sa.PrimaryKeyConstraint("batch_id", "starts"),
    )
    op.create_index("claims_version", "claims", ["version"])
    op.create_table(
        "commit_locks",
        *_text("version"),
        sa.Column("holder", sa.Text()),
        *_number("token", "taken_at", "heartbeat_at"),
        sa.PrimaryKeyConstraint("version"),
    )


def _create_batches() -> None:
    op.create_table(
        "batches",
        *_text("batch_id", "environment", "model", "version", "fingerprint"),
        *_number("starts", "ends"),
        *_text("run_id", "root_id"),
        sa.Column("plan_id", sa.Text()),
        *_text("reason"),
        *_number("attempt"),
        *_text("status"),
        *_number("built_at"),
        *_text("inputs"),
        *_number("started_at"),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("delta_version", sa.BigInteger()),
        sa.Column("row_count", sa.BigInteger()),
        sa.Column("bytes_written", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("batch_id"),
    )
    op.create_index("batches_cells", "batches", ["version", "starts", "ends"])
    op.create_index("batches_run", "batches", ["run_id"])
    op.create_table(
        "audit_results",
        *_text("batch_id"),
        *_number("attempt"),
        *_text("audit", "model"),
        *_number("starts", "ends", "audited_at"),
        *_text("severity"),
        _flag("passed"),
        *_text("found", "allowed"),
        *_number("failing_rows"),
        *_text("cells", "sample"),
        sa.PrimaryKeyConstraint("batch_id", "attempt", "audit"),
    )
    op.create_index("audit_results_model", "audit_results", ["model", "audited_at"])
