"""What a snapshot relies on of the declarations of its sources."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Keep it; of snapshots that were saved before it is not known, and counts as unchanged."""
    op.add_column("snapshots", sa.Column("sources", sa.Text()))
