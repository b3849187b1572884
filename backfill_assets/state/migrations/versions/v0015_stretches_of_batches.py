"""The cells of a batch that has several stretches of them; all batches before had one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the stretches to every batch."""
    op.add_column("batches", sa.Column("stretches", sa.Text()))
    op.add_column("batches", sa.Column("seconds", sa.BigInteger()))
