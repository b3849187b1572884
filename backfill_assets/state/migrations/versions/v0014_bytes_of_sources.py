"""How many bytes the files of an observed source have; not known until it is looked at again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the bytes to every observed source."""
    op.add_column("observed_sources", sa.Column("bytes", sa.BigInteger()))
