"""What operations took, step by step, for estimates; nothing is known of those before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the timings."""
    op.create_table(
        "timings",
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("steps", sa.Text(), nullable=False),
        sa.Column("cells", sa.BigInteger(), nullable=False),
        sa.Column("by_rows", sa.Boolean(), nullable=False),
    )
