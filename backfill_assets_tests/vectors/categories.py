"""Cases of change categories: two declarations, or two graphs of them, asked of the planner."""

from __future__ import annotations

from datetime import UTC, datetime
from graphlib import TopologicalSorter
from typing import Any

from backfill_assets.intervals import WHOLE_CELL, Cadence, Interval, Whole
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.change.categorize import DeclarationDifference, affected, difference
from backfill_assets.planning.change.sql_tree import comparable, output_name
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import Build, Change, ModelPlan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import Category, PlanRequest
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView
from backfill_assets_tests.builders import a_source, stamps
from backfill_assets_tests.vectors import translate as tr

Json = Any
_KEY = "key of the case"
_ELSEWHERE = "db.elsewhere"
_META = {"audits", "batch_size", "batch_concurrency", "cron", "description", "end",
         "forward_only", "kind", "lookback", "name", "owner", "start", "tags", "time_column"}  # fmt: skip

_KINDS = ("INCREMENTAL_BY_TIME_RANGE", "FULL")  # the others have no counterpart among ours


class StrangeWord(Exception):  # noqa: N818 - a fact about the case, not an error
    """The case says something about a model that we have no word for."""


def categorize(case: dict[str, Json]) -> Json:
    """What the change of one model means, in the words of the mode that is asked for."""
    call = case["call"]
    old = _declared("db.model", call["old_sql"], call.get("old_meta") or {})
    new = _declared("db.model", call["new_sql"], call.get("new_meta") or {})
    if difference(old, new).category is not Category.BREAKING:
        return "NON_BREAKING"
    return "UNDETERMINED" if call.get("mode", "full") == "semi" else "BREAKING"


def plan_categories(case: dict[str, Json]) -> Json:
    """What the change of a whole graph means for each of its models."""
    before, after = _graph(case["before"]), _graph(case["after"])
    call, now = case["call"], tr.now_of(case)
    view = _all_ready(before, call.get("environment", PROD), case)
    request = PlanRequest(
        environment=view.environment.name,
        forward_only=bool(call.get("forward_only")),
        start=call.get("start"),
        end=call.get("end"),
    )
    plan = build_plan(request, after, PlanState(view=view, running=snapshots_of(before)), now)
    words = {model.model: _words(before, after, model) for model in plan.models}
    words |= {name: word for name, word in _passive(after, words).items() if name not in words}
    moved = {model.model for model in plan.models if model.build is Build.NEW_VERSION}
    return {
        "categories": {_short(name): word for name, word in sorted(words.items())},
        "reuses_physical_table": {_short(name): name not in moved for name in sorted(words)},
        "models_to_backfill": sorted(_short(model.model) for model in plan.models if model.cells),
    }


def _words(before: Graph, after: Graph, planned: ModelPlan) -> str:
    """Our category in the words of the cases."""
    category = planned.category or Category.METADATA
    if planned.change is Change.ADDED:
        return "BREAKING"
    indirect = "INDIRECT_" if planned.change is Change.INDIRECT else ""
    if category is Category.FORWARD_ONLY:  # the cases keep what it would be without
        found = _effect(before, after, planned.model).category.name
        return f"{indirect}{found}+FORWARD_ONLY"
    return category.name if category is Category.METADATA else f"{indirect}{category.name}"


def _effect(before: Graph, after: Graph, name: str) -> DeclarationDifference:
    """What a model's change, or else what it reads of one, means for its own readers."""
    model = after.models[name]
    direct = difference(before.models[name], model)
    if direct.category is not Category.METADATA:
        return direct
    reads = lineage_of(after, model).reads
    seen = any(
        affected(_effect(before, after, up.name), reads.get(up.name))
        for up in model.reads
        if up.name in before.models
    )
    category = Category.BREAKING if seen else Category.NON_BREAKING
    return DeclarationDifference(category, "", rows=seen, columns=frozenset())


def _passive(after: Graph, words: dict[str, str]) -> dict[str, str]:
    """What the cases call the readers of a change that our plan does nothing to."""
    found = dict(words)
    for name in after.order:
        upstream = [found[up.name] for up in after.models[name].reads if up.name in found]
        if upstream and name not in found:
            only_words = all(word == "METADATA" for word in upstream)
            found[name] = "METADATA" if only_words else "INDIRECT_NON_BREAKING"
    return found


def _short(name: str) -> str:
    return name.partition(".")[2]


def _all_ready(graph: Graph, environment: str, case: dict[str, Json]) -> StateView:
    states: dict[str, ModelState] = {}
    for name, snapshot in snapshots_of(graph).items():
        cadence = snapshot.model.cadence
        ready = WHOLE_CELL
        if cadence.start is not None:
            ready = Interval(cadence.start, cadence.due(tr.now_of(case)))
        pointer = Pointer(PROD, name, snapshot.fingerprint.id, snapshot.version, 1)
        states[name] = ModelState(pointer, (ReadyRun(ready, 1, stamps(1), "before"),))
    follows = None if environment == PROD else PROD
    return StateView(Environment(environment, environment == PROD, follows), states)


def _graph(ddl: dict[str, str]) -> Graph:
    """The cases' queries have no bounds, which ours must have: the graph is made unchecked."""
    models = {f"db.{name}": _parsed(f"db.{name}", text) for name, text in ddl.items()}
    reads = {name: {up.name for up in model.reads} - {name} for name, model in models.items()}
    outside = {up for some in reads.values() for up in some} - models.keys()
    order = TopologicalSorter({name: reads[name] - outside for name in models}).static_order()
    return Graph(models, {name: a_source(name) for name in outside}, tuple(order))


def _parsed(name: str, ddl: str) -> Model:
    """Read ``MODEL (name db.a, kind ..., columns (...)); SELECT ...``."""
    head, _, sql = ddl.partition(";")
    words: dict[str, Json] = {}
    for part in _split(head[head.index("(") + 1 : head.rindex(")")]):
        word, _, value = part.partition(" ")
        words[word] = value.strip()
    columns = [_column(column) for column in _split(_inside(words.pop("columns", "")))]
    kind, _, inner = words.pop("kind", "VIEW").partition("(")
    options = dict(option.split(maxsplit=1) for option in _split(inner.rstrip(")")))
    meta: dict[str, Json] = {word: value.strip("'") for word, value in words.items()}
    meta["kind"] = {"name": kind.strip(), **options}
    return _declared(name, sql, meta, columns)


def _column(text: str) -> Column:
    name, dtype = text.split(maxsplit=1)
    return Column(name, dtype)


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _inside(text: str) -> str:
    return text.strip().removeprefix("(").removesuffix(")")


def _declared(
    name: str, sql: str, meta: dict[str, Json], columns: list[Column] | None = None
) -> Model:
    """A declaration of ours; where the case names no columns, those of its query."""
    query, kind = SqlQuery(sql), meta.get("kind") or {}
    settings = {**meta, **(kind if isinstance(kind, dict) else {"name": kind})}
    strange = settings.keys() - _META
    if settings.get("name", "FULL") not in _KINDS:
        strange.add(f"kind {settings['name']}")
    if strange:
        raise StrangeWord(", ".join(sorted(strange)))
    schema = [*(columns or _outputs(query)), *([] if columns else [Column(_KEY, "int")])]
    names = [column.name for column in schema]
    in_time = "ds" in names and settings.get("name") != "FULL"
    lookback = int(settings.get("lookback") or 0)
    reads = sorted(query.tables() - {name}) or [_ELSEWHERE]
    return Model(
        name=name,
        query=query,
        kind=IncrementalByTimeRange("ds") if in_time else Full(),
        cadence=_cadence(settings) if in_time else Whole(settings.get("cron")),
        upstreams=[Upstream(table, lookback=lookback) for table in reads],
        grain="one row",
        unique_key=[_KEY if _KEY in names else names[0]],
        columns=schema,
        owner=_owner(settings.get("owner")),
        audits=[not_null(names[0])] if settings.get("audits") else [],
        description=str(settings.get("description") or settings.get("tags") or ""),
        batch_size=int(settings["batch_size"]) if settings.get("batch_size") else None,
        batch_concurrency=int(settings.get("batch_concurrency") or 1),
        forward_only=str(settings.get("forward_only")).lower() == "true",
    )


def _owner(owner: Json) -> str:
    return f"team:{owner or 'case'}"


def _cadence(settings: dict[str, Json]) -> Cadence:
    return tr.cadence_of(settings, datetime(2020, 1, 1, tzinfo=UTC))


def _outputs(query: SqlQuery) -> list[Column]:
    tree = comparable(query)
    names = [output_name(output) for output in (tree.selects if tree else ()) if not output.is_star]
    return [Column(name, "string") for name in dict.fromkeys(names)]
