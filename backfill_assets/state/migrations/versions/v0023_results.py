"""Registered results; there were none before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "results",
        sa.Column("environment", sa.Text(), primary_key=True, nullable=False),
        sa.Column("name", sa.Text(), primary_key=True, nullable=False),
        sa.Column("model", sa.Text(), primary_key=True, nullable=False),
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("cells", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("delta_version", sa.BigInteger(), nullable=False),
        sa.Column("rerun", sa.Boolean(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )
