"""Render definitions as text: everything that Dagster shows of each asset, one fact a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Iterator


def rendered(defs: dg.Definitions) -> str:
    """Render assets in order of their keys, each with its checks, and then the jobs."""
    lines: list[str] = []
    for assets in sorted(_assets(defs), key=lambda definition: definition.key.to_user_string()):
        lines += [*_asset(assets, assets.get_asset_spec()), ""]
    for spec in sorted(_external(defs), key=lambda external: external.key.to_user_string()):
        lines += [*_spec(spec), ""]
    for job in sorted(_jobs(defs), key=lambda asset_job: asset_job.name):
        lines.append(f"job {job.name}: {job.description}")
        lines.append(f"  {len(job.asset_layer.asset_graph.asset_check_keys)} checks")
        lines += [f"  {line}" for line in _form(job)]
    lines += [line for sensor in sorted(defs.sensors or (), key=_title) for line in _sensor(sensor)]
    lines += [
        line
        for schedule in sorted(defs.schedules or (), key=_title)
        for line in _schedule(schedule)
    ]
    return "\n".join(lines) + "\n"


def _assets(defs: dg.Definitions) -> list[dg.AssetsDefinition]:
    return [
        asset
        for asset in defs.assets or ()
        if isinstance(asset, dg.AssetsDefinition)
        and not isinstance(asset, dg.AssetChecksDefinition)
    ]


def _external(defs: dg.Definitions) -> list[dg.AssetSpec]:
    return [asset for asset in defs.assets or () if isinstance(asset, dg.AssetSpec)]


def _jobs(defs: dg.Definitions) -> list[dg.JobDefinition]:
    found = defs.resolve_all_job_defs()
    return [job for job in found if not job.name.startswith("__")]


def _asset(assets: dg.AssetsDefinition, spec: dg.AssetSpec) -> Iterator[str]:
    yield from _spec(spec)
    yield f"  pool: {getattr(assets.op, 'pool', None)}"
    yield f"  backfill: {assets.backfill_policy}"
    for check in sorted(assets.check_specs, key=lambda check_spec: check_spec.name):
        yield f"  check {check.name}{' blocks' if check.blocking else ''}"


def _spec(spec: dg.AssetSpec) -> Iterator[str]:
    yield spec.key.to_user_string()
    yield f"  group: {spec.group_name}"
    yield f"  owners: {', '.join(spec.owners)}"
    yield f"  tags: {', '.join(f'{key}={value}' for key, value in sorted(spec.tags.items()))}"
    yield f"  code version: {'given' if spec.code_version else 'none'}"
    if spec.partitions_def is not None:
        yield f"  partitions: {_partitions(spec.partitions_def)}"
    for dep in sorted(spec.deps, key=lambda asset_dep: asset_dep.asset_key.to_user_string()):
        yield f"  reads {dep.asset_key.to_user_string()}{_mapping(dep.partition_mapping)}"
    for key in sorted(spec.metadata):
        yield f"  metadata {key}"
    for line in (spec.description or "").splitlines():
        if line:
            yield f"  | {line}"


def _partitions(partitions: dg.PartitionsDefinition) -> str:
    assert isinstance(partitions, dg.TimeWindowPartitionsDefinition)
    end = f" until {partitions.end:%Y-%m-%d %H:%M}" if partitions.end else ""
    zone = partitions.timezone
    return f"{partitions.cron_schedule} {zone} from {partitions.start:%Y-%m-%d %H:%M}{end}"


def _mapping(mapping: dg.PartitionMapping | None) -> str:
    if mapping is None:
        return ""
    assert isinstance(mapping, dg.TimeWindowPartitionMapping)
    return f" ({mapping.start_offset}..{mapping.end_offset})"


def _title(instigator: Any) -> str:  # noqa: ANN401 - a sensor or a schedule
    return instigator.name


def _sensor(sensor: Any) -> Iterator[str]:  # noqa: ANN401
    every = sensor.minimum_interval_seconds
    yield f"sensor {sensor.name}: every {every} s, {sensor.default_status.value}"
    yield f"  asks for {', '.join(target.job_name for target in sensor.targets)}"
    yield f"  | {sensor.description}"


def _schedule(schedule: Any) -> Iterator[str]:  # noqa: ANN401
    yield f"schedule {schedule.name}: {schedule.cron_schedule}, {schedule.default_status.value}"
    yield f"  asks for {schedule.job_name}"
    yield f"  | {schedule.description}"


def _form(job: dg.JobDefinition) -> Iterator[str]:
    """What the launchpad asks for: each field with its default, `!` where one must be given."""
    for op in job.graph.node_defs:
        fields = getattr(getattr(op, "config_schema", None), "config_type", None)
        for name, field in sorted(getattr(fields, "fields", {}).items()):
            default = repr(field.default_value) if field.default_provided else "!"
            yield f"{op.name}.{name} = {default}"
