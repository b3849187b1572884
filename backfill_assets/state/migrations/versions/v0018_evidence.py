"""What the evidence of each plan is; plans that ended before this release owe none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Create the records of evidence, and find the batches of a plan fast."""
    op.create_table(
        "evidence",
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("manifest", sa.Text(), nullable=True),
        sa.Column("noted", sa.Text(), nullable=True),
        sa.Column("written", sa.Boolean(), nullable=False),
    )
    op.create_index("evidence_plan", "evidence", ["plan_id"])
    op.create_index("batches_plan", "batches", ["plan_id"])
