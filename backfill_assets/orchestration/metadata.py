"""The names and metadata of a model's asset: key, group, pool, grain, schema, lineage."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review.evidence import report_of
from backfill_assets.errors import DeclarationError
from backfill_assets.models.automation import Automation
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.orchestration.switches import GAP_FILL

_BY_HAND = "a backfill launched here, or `backfill run`"
_FILLED_BY = {
    Automation.ON: (
        f"the sensor {GAP_FILL}, once it is switched on under Automation (Dagster names no automation "
        f"on this page, for the sensor asks for jobs, too); {_BY_HAND}"
    ),
    Automation.REPORT: f"{_BY_HAND}; the sensor {GAP_FILL} only reports what is missing",
    Automation.OFF: f"{_BY_HAND}; no sensor",
}
"""What fills a model, as its asset's page says it."""

PUBLISHED = "published_"
"""Prefix of the stand-alone twin of a check; the plain name belongs to the step that audits its batches."""


def asset_key(name: str) -> dg.AssetKey:
    """Give the key of a model or source: its two parts."""
    return dg.AssetKey(name.split("."))


def check_name(audit: str) -> str:
    """Name the check of an audit: Dagster takes only ASCII letters, digits and underscores."""
    return re.sub(r"\W", "_", audit, flags=re.ASCII)


def subject(name: str) -> str:
    """Give the group that a model or source belongs to: its first part."""
    return name.partition(".")[0]


def pool(name: str) -> str:
    """Name the pool of a model, or of a source that is landed: one run of it writes at a time."""
    return name.replace(".", "__")


@contextmanager
def naming_what_is_refused(name: str) -> Iterator[None]:
    """Say whose declaration it is that Dagster refuses: its own words name no model.

    Raises:
        DeclarationError: Dagster refuses it.
    """
    try:
        yield
    except dg.DagsterInvalidDefinitionError as error:
        raise DeclarationError(found=f"Dagster makes no asset of '{name}': {error}") from error


def description(model: Model) -> str:
    """Describe a model: what it says, its grain and its key, and whether its lineage is unknown."""
    key = ", ".join(f"`{column}`" for column in model.key)
    text = f"{model.description}\n\nGrain: {model.grain}. Key: {key}.".strip()
    if isinstance(model.logic, SqlQuery) and model.logic.analysis() is None:
        text += (
            "\n\nLineage unknown: its SQL runs as written but is not analysed completely, so it "
            "counts as reading every column, and every edit of it is breaking."
        )
    return text


def table_metadata(graph: Graph, model: Model) -> dict[str, object]:
    """Give Dagster's own table metadata: name, column schema and column lineage."""
    columns = [
        dg.TableColumn(
            name=column.name,
            type=column.dtype,
            description=column.description or None,
            constraints=dg.TableColumnConstraints(
                nullable=column.nullable and column.name not in model.key, unique=column.unique
            ),
        )
        for column in model.schema
    ]
    shown: dict[str, object] = {
        "dagster/table_name": model.name,
        "dagster/column_schema": dg.TableSchema(columns=columns),
        "filled_by": _FILLED_BY[model.automated],
    }
    outputs = lineage_of(graph, model).outputs
    if outputs:
        shown["dagster/column_lineage"] = dg.TableColumnLineage(
            {
                column: [
                    dg.TableColumnDep(asset_key=asset_key(name), column_name=source)
                    for name, source in sources
                ]
                for column, sources in outputs.items()
                if sources
            }
        )
    return shown


def report_metadata(run: InProject, plan_id: str) -> dict[str, dg.MetadataValue]:
    """Name where the report of a plan lies; nothing as long as the plan has left no evidence."""
    where = report_of(run, plan_id)
    if where is None:
        return {}
    return {
        "report": dg.MetadataValue.url(where) if "://" in where else dg.MetadataValue.path(where)
    }
