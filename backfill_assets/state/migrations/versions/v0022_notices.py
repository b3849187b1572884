"""Notices to consumers; of what happened before this release, none is sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

_DONE = """
INSERT INTO notices (plan_id, number, event, consumer, channel, asked_at, attempts, error)
SELECT plan_id, number, event, '', '', at, 0, '' FROM plan_events
WHERE event IN ('built', 'stopped', 'approved', 'promoted', 'rolled back', 'undone', 'abandoned')
"""


def upgrade() -> None:
    """Create the table, and note that the events of before are dealt with."""
    op.create_table(
        "notices",
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("consumer", sa.Text(), primary_key=True, nullable=False),
        sa.Column("channel", sa.Text(), primary_key=True, nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
    )
    op.create_index("notices_due", "notices", ["next_at"])
    op.execute(_DONE)
