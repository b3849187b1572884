"""When a pointer last left a version: its readers have a grace period."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Keep the instant; what was left before is not known to have readers."""
    op.add_column("versions", sa.Column("left_at", sa.BigInteger()))
