"""The Iceberg catalogue: entries, and the views by which Iceberg's SQL catalogues read them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

# A model is named `subject.table`. An environment reads a model by its own pointer, or else by that of the
# nearest environment that it follows. A pointer with tables under it is no single table, so it has no name.
_TABLES = """
CREATE VIEW iceberg_tables AS
WITH RECURSIVE read_by (environment, reads, distance) AS (
    SELECT name, name, 0 FROM environments WHERE opened IS NULL
    UNION
    SELECT read_by.environment, environments.follows, read_by.distance + 1
    FROM read_by JOIN environments ON environments.name = read_by.reads
    WHERE environments.follows IS NOT NULL AND read_by.distance < 100
),
pointed AS (
    SELECT read_by.environment, pointers.model, pointers.version, pointers.delta_version, pointers.under,
        ROW_NUMBER() OVER (
            PARTITION BY read_by.environment, pointers.model ORDER BY read_by.distance
        ) AS nearness
    FROM read_by JOIN pointers ON pointers.environment = read_by.reads
)
SELECT iceberg_catalog.name AS catalog_name,
    pointed.environment || '.' || {subject} AS table_namespace,
    {table} AS table_name,
    iceberg_entries.location AS metadata_location,
    CAST(NULL AS TEXT) AS previous_metadata_location,
    'TABLE' AS iceberg_type
FROM pointed
JOIN iceberg_entries ON iceberg_entries.version = pointed.version
    AND iceberg_entries.delta_version = pointed.delta_version
CROSS JOIN iceberg_catalog
WHERE pointed.nearness = 1 AND pointed.under = '[]'
"""
_NAMESPACES = """
CREATE VIEW iceberg_namespace_properties AS
SELECT DISTINCT catalog_name, table_namespace AS namespace, 'exists' AS property_key,
    'true' AS property_value
FROM iceberg_tables
"""
_PARTS = {
    "sqlite": (
        "substr(pointed.model, 1, instr(pointed.model, '.') - 1)",
        "substr(pointed.model, instr(pointed.model, '.') + 1)",
    ),
    "postgresql": ("split_part(pointed.model, '.', 1)", "split_part(pointed.model, '.', 2)"),
}


def upgrade() -> None:
    """Create the catalogue, which is empty until it is enabled."""
    op.create_table(
        "iceberg_catalog", sa.Column("name", sa.Text(), primary_key=True, nullable=False)
    )
    op.create_table(
        "iceberg_entries",
        sa.Column("version", sa.Text(), primary_key=True, nullable=False),
        sa.Column("delta_version", sa.BigInteger(), primary_key=True, nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
    )
    subject, table = _PARTS[op.get_bind().dialect.name]
    op.execute(_TABLES.format(subject=subject, table=table))
    op.execute(_NAMESPACES)
