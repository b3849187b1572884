"""Observed sources, limits, plans in the queue, and what kind of failure ended a batch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=True, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False)


def upgrade() -> None:
    """Create what the queue needs."""
    op.add_column("batches", sa.Column("failure", sa.Text()))
    op.add_column("batches", sa.Column("resources", sa.Text()))
    op.create_table(
        "observed_sources",
        _key("source"),
        _text("path"),
        _text("table_id"),
        _text("declared"),
        _number("head"),
        _number("observed_at"),
        _text("runs"),
    )
    op.create_table(
        "source_cells",
        _key("source"),
        sa.Column("starts", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        _number("ends"),
        _number("row_count"),
        sa.Column("content", sa.Text()),
        _number("changed_at"),
    )
    op.create_table("limits", _key("scope"), _number("slots"), _text("set_by"), _number("set_at"))
    op.create_table(
        "slot_waiters", _key("batch_id"), _text("scope"), _number("since"), _number("heard_at")
    )
    op.create_table(
        "queued_plans",
        _key("plan_id"),
        _text("control"),
        sa.Column("off_peak", sa.Text()),
        _text("set_by"),
        _number("set_at"),
        sa.Column("queued_at", sa.BigInteger()),
    )
