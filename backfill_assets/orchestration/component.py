"""The component by which a project of `dg` takes in what a catalog declares.

`dg` imports this module to list components, so it imports nothing of ours before it is asked to.
"""

from importlib import import_module
from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.errors import DeclarationError
from backfill_assets.settings import read_settings


class BackfillProject(dg.Component, dg.Model, dg.Resolvable):
    """All models, sources and consumers of a catalog: the definitions of `build_definitions`, from a `defs.yaml`."""

    catalog: str = Field(
        default="",
        description="The module with MODELS, SOURCES and, if there are any, CONSUMERS; empty: the one that BACKFILL_CATALOG names.",
        examples=["shop.catalog"],
    )
    landings: str = Field(
        default="",
        description="A module with LANDINGS, by source name what lands it; empty: others land them.",
        examples=["shop.landing"],
    )

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Say what `dg list components` shows of it."""
        kinds = ["asset", "asset_check", "schedule", "sensor", "job", "resource"]
        return dg.ComponentTypeSpec(description=cls.__doc__, produces=kinds)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002 - Dagster passes it
        """Make the definitions of the catalog.

        Raises:
            DeclarationError: the catalog can't be found, or has no MODELS or no SOURCES.
            BackfillAssetsError: a declaration is wrong; it says which and what to write instead.
        """
        from backfill_assets.orchestration.building import build_definitions  # noqa: PLC0415

        catalog = self.catalog or read_settings().catalog
        landings = _declared("landings", self.landings, "LANDINGS") if self.landings else None
        return build_definitions(
            models=_declared("catalog", catalog, "MODELS"),
            sources=_declared("catalog", catalog, "SOURCES"),
            consumers=getattr(import_module(catalog), "CONSUMERS", ()),
            landings=landings,
        )


def _declared(attribute: str, module: str, name: str) -> Any:  # noqa: ANN401 - what the module holds
    """Give what a module of the project declares under a name."""
    expected = f"a module with {name}, such as shop.catalog"
    do = f"name it as the component's attribute `{attribute}`"
    try:
        imported = import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # a module that it imports is missing
        raise DeclarationError(
            found=f"{attribute} '{module}': there is no module {error.name}",
            expected=expected,
            do=do,
        ) from error
    if not hasattr(imported, name):
        raise DeclarationError(
            found=f"{attribute} '{module}' has no {name}", expected=expected, do=do
        )
    return getattr(imported, name)
