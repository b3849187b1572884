"""Cutoffs: the day before which a model's cells keep the old definition."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=True, nullable=False)


def upgrade() -> None:
    """Create what plans set and lift."""
    op.create_table(
        "cutoffs",
        _key("environment"),
        _key("model"),
        sa.Column("number", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("since", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
    )
