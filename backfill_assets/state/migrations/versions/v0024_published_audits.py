"""The history of audits of published data; none was kept before this release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "published_audits",
        sa.Column("environment", sa.Text(), primary_key=True, nullable=False),
        sa.Column("model", sa.Text(), primary_key=True, nullable=False),
        sa.Column("audited_at", sa.BigInteger(), primary_key=True, nullable=False),
        sa.Column("audit", sa.Text(), primary_key=True, nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("delta_version", sa.BigInteger(), nullable=False),
        sa.Column("audited", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Text(), nullable=False),
        sa.Column("failing_rows", sa.BigInteger(), nullable=False),
        sa.Column("cells", sa.Text(), nullable=False),
        sa.Column("sample", sa.Text(), nullable=False),
    )
