"""Until when each publication can be taken back; of earlier ones that was not kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the instant to every pointer move."""
    op.add_column("pointer_moves", sa.Column("promised_until", sa.BigInteger()))
