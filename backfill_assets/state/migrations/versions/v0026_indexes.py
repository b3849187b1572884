"""Indexes for what every tick, run and look asks of a long history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

_FAILED = sa.text("status = 'failed'")


def upgrade() -> None:
    """Create the indexes."""
    op.create_index(
        "batches_failed", "batches", ["version"], sqlite_where=_FAILED, postgresql_where=_FAILED
    )
    op.create_index("batches_built", "batches", ["built_at"])
    op.create_index("batches_model", "batches", ["model", "built_at"])
    op.create_index("plans_status", "plans", ["status"])
    op.create_index("pointer_moves_plan", "pointer_moves", ["plan_id"])
