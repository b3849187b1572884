"""Which consumers are held at an earlier publication; none was before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "holds",
        sa.Column("environment", sa.Text(), primary_key=True, nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("held_of", sa.Text(), nullable=False),
        sa.Column("held_at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )
