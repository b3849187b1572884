"""Select models by names, globs, ``+model``, ``model+``, tags and owners."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from backfill_assets.models.graph import UnknownModelError, unknown_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model

_WILD = "*?["


def _nothing_selected(selector: str) -> UnknownModelError:
    return UnknownModelError(
        found=f"'{selector}' selects no model",
        do="use a name, a glob such as 'marketing.*', '+name' (with its upstreams), 'name+' (with "
        "its readers), 'tag:key=value' or 'owner:name'",
    )


def selected(graph: Graph, select: Iterable[str], *, gone: Iterable[str] = ()) -> tuple[str, ...]:
    """Name the models that any of the selectors matches, upstream first; no selector at all matches every one.

    Args:
        graph: the loaded models.
        select: the selectors.
        gone: models that the environment runs and that are not declared any more; they are
            matched by name and glob, and come last.

    Raises:
        RequestError: a name is no model; it says which one may be meant.
        RequestError: a glob, a tag or an owner matches none, or every selector is empty.
    """
    names = (*graph.order, *sorted(gone))
    selectors = [selector.strip() for selector in select]
    chosen = [selector for selector in selectors if selector]
    if not chosen:
        if selectors:  # a variable of a shell that is not set must not select everything
            raise _nothing_selected("")
        return names
    matched = {name for selector in chosen for name in _matched(graph, names, selector)}
    return tuple(name for name in names if name in matched)


def _matched(graph: Graph, names: tuple[str, ...], selector: str) -> frozenset[str]:
    core = selector.removeprefix("+").removesuffix("+")
    if not core:
        raise _nothing_selected(selector)
    reached = _core(graph, names, core)
    if selector.startswith("+"):
        reached |= upstream_of(graph, reached)
    if selector.endswith("+"):
        reached |= downstream_of(graph, reached)
    models = frozenset(reached) & frozenset(names)
    if not models:
        raise _nothing_selected(selector)
    return models


def _core(graph: Graph, names: tuple[str, ...], core: str) -> set[str]:
    kind, colon, value = core.partition(":")
    if colon and kind in ("tag", "owner"):
        matches = _tagged if kind == "tag" else _owned
        return {name for name in graph.order if matches(graph.models[name], value)}
    if any(sign in core for sign in _WILD):
        return {name for name in names if fnmatchcase(name, core)}
    if core not in names and core not in graph.sources:
        raise unknown_model(core, names)
    return {core}


def _tagged(model: Model, value: str) -> bool:
    key, equals, pattern = value.partition("=")
    return key in model.tags and (not equals or fnmatchcase(model.tags[key], pattern))


def _owned(model: Model, value: str) -> bool:
    return fnmatchcase(model.owner, value) or model.owner.partition(":")[2] == value


def upstream_of(graph: Graph, names: Iterable[str]) -> set[str]:
    """Name every model that these read, directly or through others."""
    upstream: set[str] = set()
    readers = {*names}
    for name in reversed(graph.order):
        if name in readers:
            read = {up.name for up in graph.models[name].reads if up.name in graph.models}
            readers |= read
            upstream |= read - {name}
    return upstream


def downstream_of(graph: Graph, names: Iterable[str]) -> set[str]:
    """Name every model that reads one of these models or sources, directly or through others."""
    reached = {*names}
    downstream: set[str] = set()
    for name in graph.order:
        if any(up.name in reached for up in graph.models[name].reads if up.name != name):
            reached.add(name)
            downstream.add(name)
    return downstream


def following(graph: Graph, names: Iterable[str]) -> frozenset[str]:
    """Name these models, those that read these sources, and every model downstream of them."""
    roots = {*names}
    first = {
        name
        for name in graph.order
        if name in roots or any(up.name in roots for up in graph.models[name].reads)
    }
    return frozenset(first | downstream_of(graph, first))
