"""The checks of plans and what people have accepted of them; nothing is known of those before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "plan_checks",
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("check_name", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("blocking", sa.Boolean(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "acceptances",
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("check_name", sa.Text(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
