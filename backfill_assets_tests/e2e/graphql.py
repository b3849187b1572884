"""Dagster's GraphQL API, by the calls that the UI's buttons make."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backfill_assets_tests.e2e.polling import until

_LONGEST = 900
LOCATION = "toy"
_VALUES = ("text", "mdStr", "intValue", "jsonString")
_AS_BEFORE = ("skipped", "same_content")

_LAUNCH = """
mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_BACKFILL = """
query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status error { message } } } }"""
_RUNS = """
query($filter: RunsFilter!) { runsOrError(filter: $filter) {
  ... on Runs { results { runId status tags { key value } } } } }"""
_EVENTS = """
query($id: ID!, $after: String) { logsForRun(runId: $id, afterCursor: $after, limit: 1000) {
  ... on EventConnection { cursor hasMore events {
  __typename ... on MessageEvent { message timestamp }
  ... on ExecutionStepFailureEvent { stepKey error { message causes { message } } failureMetadata { description } } } } } }"""
_REEXECUTE = """
mutation($id: String!) { launchRunReexecution(
  reexecutionParams: {parentRunId: $id, strategy: FROM_FAILURE}) {
  __typename ... on LaunchRunSuccess { run { id } } ... on PythonError { message } } }"""
_MATERIALIZED = """
query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
  assetMaterializations(limit: 500) { partition runId description metadataEntries { label
    ... on UrlMetadataEntry { url } } } } } }"""
_SWITCH = """
mutation($name: String!, $location: String!) { startSensor(sensorSelector: {
  sensorName: $name, repositoryName: "__repository__", repositoryLocationName: $location}) {
  __typename ... on Sensor { sensorState { id status } } ... on PythonError { message } } }"""
_STATE = """
query($name: String!, $location: String!) { sensorOrError(sensorSelector: {
  sensorName: $name, repositoryName: "__repository__", repositoryLocationName: $location}) {
  ... on Sensor { sensorState { id status ticks(limit: 20) { status skipReason error { message }
    runIds timestamp endTimestamp } } } } }"""
_UNSWITCH = """
mutation($id: String!) { stopSensor(id: $id) {
  __typename ... on StopSensorMutationResult { instigationState { status } }
  ... on PythonError { message } } }"""
_LAUNCH_JOB = """
mutation($job: String!, $location: String!, $config: RunConfigData!, $tags: [ExecutionTag!]) {
  launchRun(executionParams: {
  selector: {jobName: $job, repositoryName: "__repository__", repositoryLocationName: $location},
  runConfigData: $config, executionMetadata: {tags: $tags}}) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
_METADATA = """
query($id: ID!) { logsForRun(runId: $id, limit: 1000) { ... on EventConnection { events {
  __typename ... on ExecutionStepOutputEvent { metadataEntries { label
    ... on TextMetadataEntry { text } ... on MarkdownMetadataEntry { mdStr }
    ... on IntMetadataEntry { intValue } ... on JsonMetadataEntry { jsonString } } } } } } }"""
_READY = """
{ workspaceOrError { ... on Workspace { locationEntries { loadStatus locationOrLoadError {
  __typename ... on RepositoryLocation { name } ... on PythonError { message } } } } }
  instance { daemonHealth { daemonStatus(daemonType: "BACKFILL") { healthy } } } }"""


@dataclass(frozen=True)
class Materialized:
    """One materialization: of which partition, by which run, and whether the cell stayed as it was.

    Of a cell that waits for approval, `why` names the plan, and `promote` is the form that promotes it.
    """

    partition: str | None
    run_id: str
    skipped: bool
    why: str | None = None
    promote: str | None = None


@dataclass(frozen=True)
class Client:
    """The API of one webserver.

    Attributes:
        url: where it answers.
        headers: what an authenticating proxy adds to each request.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401
        """Give the data of an answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def is_ready(self) -> bool:
        """Say whether the code location is loaded and the backfill daemon is alive."""
        try:
            answer = self.ask(_READY)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        locations = answer["workspaceOrError"].get("locationEntries", [])
        daemon = answer["instance"]["daemonHealth"]["daemonStatus"]
        return bool(daemon["healthy"]) and [location["loadStatus"] for location in locations] == [
            "LOADED"
        ]

    def launch(self, *models: str, **chosen: Any) -> str:  # noqa: ANN401
        """Launch a backfill as the UI does: `partitionNames=[...]` or `allPartitions=True`."""
        selected = [{"path": name.split(".")} for name in models]
        params = {"assetSelection": selected, **chosen}
        answer = self.ask(_LAUNCH, params=params)["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return answer["backfillId"]

    def ended(self, backfill: str) -> str:
        """Wait for the end of a backfill and give its status."""

        def status() -> str | None:
            found = self.ask(_BACKFILL, id=backfill)["partitionBackfillOrError"]
            return None if found["status"] in {"REQUESTED", "CANCELING"} else found["status"]

        return until(status, seconds=_LONGEST, what=f"backfill {backfill} has ended")

    def start_sensor(self, name: str) -> None:
        """Switch a sensor on, as its switch in the UI does."""
        answer = self.ask(_SWITCH, name=name, location=LOCATION)["startSensor"]
        assert answer["__typename"] == "Sensor", answer

    def stop_sensor(self, name: str) -> None:
        """Switch a sensor off."""
        state = self.ask(_STATE, name=name, location=LOCATION)["sensorOrError"]["sensorState"]
        self.ask(_UNSWITCH, id=state["id"])

    def ticks(self, name: str) -> list[dict[str, Any]]:
        """Give the latest ticks of a sensor, newest first."""
        found = self.ask(_STATE, name=name, location=LOCATION)["sensorOrError"]
        return found["sensorState"]["ticks"]

    def launch_job(
        self,
        job: str,
        op: str,
        tags: Mapping[str, str] | None = None,
        **config: Any,  # noqa: ANN401
    ) -> str:
        """Launch a job from the launchpad, with tags that a person types there, and give its run."""
        given = {"ops": {op: {"config": config}}}
        typed = [{"key": key, "value": value} for key, value in (tags or {}).items()]
        asked = {"job": job, "location": LOCATION, "config": given, "tags": typed}
        answer = self.ask(_LAUNCH_JOB, **asked)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Give what the steps of a run have put on its page."""
        events = self.ask(_METADATA, id=run_id)["logsForRun"]["events"]
        entries = [entry for event in events for entry in event.get("metadataEntries") or ()]
        return {
            entry["label"]: next(
                (entry[key] for key in _VALUES if entry.get(key) is not None), None
            )
            for entry in entries
        }

    def tagged(self, **tags: str) -> list[dict[str, Any]]:
        """Give the runs with these tags (`plan="p1"` is `backfill/plan`), the newest first."""
        wanted = [{"key": f"backfill/{key}", "value": value} for key, value in tags.items()]
        return self.ask(_RUNS, filter={"tags": wanted})["runsOrError"]["results"]

    def runs_of(self, backfill: str) -> dict[str, str]:
        """Give the status of each run of a backfill."""
        tags = [{"key": "dagster/backfill", "value": backfill}]
        found = self.ask(_RUNS, filter={"tags": tags})["runsOrError"]["results"]
        return {run["runId"]: run["status"] for run in found}

    def run_ended(self, run_id: str) -> str:
        """Wait for the end of a run and give its status."""

        def status() -> str | None:
            [run] = self.ask(_RUNS, filter={"runIds": [run_id]})["runsOrError"]["results"]
            return run["status"] if run["status"] in {"SUCCESS", "FAILURE", "CANCELED"} else None

        return until(status, seconds=_LONGEST, what=f"run {run_id} has ended")

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """Give the events of a run; the server gives a thousand at a time."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {"cursor": None, "hasMore": True}
        while page["hasMore"]:
            page = self.ask(_EVENTS, id=run_id, after=page["cursor"])["logsForRun"]
            found += page["events"]
        return found

    def failures(self, run_id: str) -> dict[str, str]:
        """Give what each failed step of a run says."""
        return {
            event["stepKey"]: str(event)
            for event in self.events(run_id)
            if event["__typename"] == "ExecutionStepFailureEvent"
        }

    def pid_of(self, run_id: str) -> int:
        """Find the process that executes a run."""
        said = (re.search(r"\(pid: (\d+)\)", event["message"]) for event in self.events(run_id))
        return next(int(match[1]) for match in said if match)

    def reexecute(self, run_id: str) -> str:
        """Re-execute a failed run from its failure and give the new run."""
        answer = self.ask(_REEXECUTE, id=run_id)["launchRunReexecution"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["id"]

    def materialized(self, model: str) -> list[Materialized]:
        """Give every materialization of a model, newest first."""
        found = self.ask(_MATERIALIZED, key={"path": model.split(".")})["assetOrError"]
        return [
            Materialized(
                materialization["partition"],
                materialization["runId"],
                any(entry["label"] in _AS_BEFORE for entry in materialization["metadataEntries"]),
                materialization["description"],
                next(
                    (each["url"] for each in materialization["metadataEntries"] if "url" in each),
                    None,
                ),
            )
            for materialization in found.get("assetMaterializations", [])
        ]
