"""Environments that follow others, tables over tables, plans, and what they publish."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NO_LAYERS = "[]"
_NO_CELLS = '{"@":"IntervalSet","v":{"boundaries":[]}}'


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _number(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False) for name in names]


def _add(table: str, *columns: sa.Column[str] | sa.Column[int]) -> None:
    for column in columns:
        op.add_column(table, column)


def upgrade() -> None:
    """Widen what is there, and create what plans need."""
    _widen_environments()
    _widen_versions()
    _add("owed", sa.Column("plan_id", sa.Text()), sa.Column("environment", sa.Text()))
    _create_plans()
    _create_publications()


def _widen_environments() -> None:
    _add(
        "environments",
        sa.Column("follows", sa.Text()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("opened", sa.BigInteger()),
        sa.Column("finalized_at", sa.BigInteger()),
        sa.Column("finalized_by", sa.Text()),
        sa.Column("removed", sa.Text()),
    )
    _add(
        "pointers",
        sa.Column("under", sa.Text(), nullable=False, server_default=_NO_LAYERS),
        sa.Column("certain", sa.Text(), nullable=False, server_default=_NO_CELLS),
    )


def _widen_versions() -> None:
    """Give each table to prod where prod reads it, else to another environment that does."""
    _add(
        "versions",
        sa.Column("owner", sa.Text()),
        sa.Column("made_by", sa.Text()),
        sa.Column("collecting_at", sa.BigInteger()),
    )
    readers = "FROM pointers WHERE pointers.version = versions.version"
    op.execute(
        f"UPDATE versions SET owner = (SELECT min(environment) {readers})"  # noqa: S608 - no input
    )
    op.execute(
        "UPDATE versions SET owner = 'prod' "  # noqa: S608 - no input
        f"WHERE EXISTS (SELECT 1 {readers} AND pointers.environment = 'prod')"
    )


def _create_plans() -> None:
    op.create_table(
        "plans",
        *_text("plan_id", "environment", "status", "content", "content_hash"),
        *_number("created_at"),
        *_text("created_by", "reason"),
        *_number("expires_at"),
        *_text("cells"),
        sa.PrimaryKeyConstraint("plan_id"),
    )
    op.create_table(
        "plan_events",
        *_text("plan_id"),
        *_number("number", "at"),
        *_text("event", "who", "why", "detail"),
        sa.PrimaryKeyConstraint("plan_id", "number"),
    )


def _create_publications() -> None:
    op.create_table(
        "promotions",
        *_number("number"),
        *_text("plan_id", "environment", "kind", "holder", "versions", "steps", "status"),
        sa.Column("published", sa.BigInteger()),
        *_number("begun_at", "heartbeat_at"),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("promotions_status", "promotions", ["status"])
    op.create_table(
        "pointer_moves",
        *_number("number"),
        *_text("model", "environment", "plan_id", "kind"),
        *_number("at"),
        *_text("who", "why", "old", "new", "cells", "changed", "stale_before"),
        sa.PrimaryKeyConstraint("number", "model"),
    )
    op.create_index("pointer_moves_environment", "pointer_moves", ["environment", "number"])
