"""When single columns of a source's cells changed; NULL for none after the row set."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the columns' stamps to every cell of a source."""
    op.add_column("source_cells", sa.Column("columns_changed_at", sa.Text()))
