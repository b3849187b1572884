"""The run coordinator that tells a run who has launched it, by a header that an authenticating proxy sets.

Dagster's own queue, with one addition: what a person types into a launch under our tags is overwritten.
"""

from dagster import DagsterRun, QueuedRunCoordinator, SubmitRunContext

from backfill_assets.orchestration.identity import ATTESTATION_TAG, PRINCIPAL_TAG, identity_tags
from backfill_assets.settings import read_settings


class IdentifyingRunCoordinator(QueuedRunCoordinator):
    """Queues runs, and attests the principal of the request that launches one.

    Runs of sensors, schedules and backfills are queued by the daemon, without a request: they have no principal.
    """

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        """Tag a run with its principal, or with none, and queue it."""
        run, header = context.dagster_run, read_settings().identity_header
        principal = (context.get_request_header(header) or "").strip() if header else ""
        typed = {PRINCIPAL_TAG, ATTESTATION_TAG} & {*run.tags}
        if principal or typed:
            context.workspace.instance.add_run_tags(
                run.run_id, identity_tags(principal, run.run_id)
            )
        return super().submit_run(context)
