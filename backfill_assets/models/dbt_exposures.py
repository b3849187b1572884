"""Consumers that a dbt project declares as exposures, read from its manifest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError
from backfill_assets.models.consumer import Consumer, ConsumerKind, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KINDS = {
    "dashboard": ConsumerKind.DASHBOARD,
    "notebook": ConsumerKind.NOTEBOOK,
    "analysis": ConsumerKind.NOTEBOOK,
    "ml": ConsumerKind.MODEL,
    "application": ConsumerKind.APPLICATION,
}
_OTHER = re.compile(r"[^\w-]+")


def dbt_exposures(
    manifest: str | Path,
    models: Mapping[str, str] | None = None,
    **declared: Any,  # noqa: ANN401 - what `Consumer` takes
) -> list[Consumer]:
    """Read the exposures of a dbt project as consumers.

    Args:
        manifest: dbt's ``target/manifest.json``.
        models: names of models here, by their name in dbt; one that is not among them is called
            ``schema.name``, as dbt calls its table. A name that is empty leaves the model out.
        declared: what every consumer declares besides, such as ``on_change=`` and ``channels=``.

    Returns:
        One consumer per exposure that reads a model, by name.

    Raises:
        DeclarationError: the manifest can't be read, or an exposure can't be a consumer.
    """
    path = Path(manifest)
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        nodes, exposures = plain["nodes"], plain["exposures"].values()
        consumers = [_consumer(exposure, nodes, models or {}, declared) for exposure in exposures]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeclarationError(
            found=f"exposures can't be read from {path}: {type(error).__name__}: {error}",
            expected="the manifest.json that `dbt parse` writes",
        ) from error
    return sorted((each for each in consumers if each), key=lambda each: each.name)


def _consumer(
    exposure: Mapping[str, Any],
    nodes: Mapping[str, Any],
    models: Mapping[str, str],
    declared: Mapping[str, Any],
) -> Consumer | None:
    reads = [Reading(name) for name in sorted({*_models(exposure, nodes, models)})]
    if not reads:
        return None
    return Consumer(
        name=exposure.get("label") or exposure["name"],
        kind=_KINDS.get(exposure["type"]) or str(exposure["type"]),
        owner=_owner(exposure["owner"]),
        reads=reads,
        description=exposure.get("description") or "",
        **declared,
    )


def _models(
    exposure: Mapping[str, Any], nodes: Mapping[str, Any], models: Mapping[str, str]
) -> Iterator[str]:
    for node_id in exposure["depends_on"]["nodes"]:
        node = nodes.get(node_id)
        if node is None:  # a source or a metric
            continue
        name = models.get(node["name"], f"{node['schema']}.{node.get('alias') or node['name']}")
        if name:
            yield name


def _owner(owner: Mapping[str, Any]) -> str:
    """Give the e-mail address of an owner, or the name as that of a team."""
    email: Any = owner.get("email")
    name = _OTHER.sub("-", str(owner.get("name") or "").lower()).strip("-")
    first = email if isinstance(email, str) or not email else email[0]  # dbt allows several
    return str(first) if first else f"team:{name}"
