"""Which cells of a source changed together; NULL where the release before has looked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the changes to every observed source."""
    op.add_column("observed_sources", sa.Column("changes", sa.Text()))
