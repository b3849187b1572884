"""Run the migrations on the connection, and in the transaction, of the caller."""

from __future__ import annotations

from alembic import context

from backfill_assets.state.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
