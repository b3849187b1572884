"""Failures before a batch began, and whose run a batch was; nothing is known of either before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the failures, and let batches name a person."""
    op.create_table(
        "failed_starts",
        sa.Column("environment", sa.Text(), primary_key=True, nullable=False),
        sa.Column("model", sa.Text(), primary_key=True, nullable=False),
        sa.Column("cells", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.add_column("batches", sa.Column("who", sa.Text()))
