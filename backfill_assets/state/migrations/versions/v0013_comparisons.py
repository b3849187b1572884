"""What comparisons of plans have found; nothing is known of those before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Create the comparisons."""
    op.create_table(
        "comparisons",
        sa.Column("plan_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("key", sa.Text(), primary_key=True, nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
