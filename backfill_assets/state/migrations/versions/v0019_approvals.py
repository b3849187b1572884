"""What principals have signed about plans; nothing was signed before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Create the table, empty."""
    op.create_table(
        "approvals",
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
    )
