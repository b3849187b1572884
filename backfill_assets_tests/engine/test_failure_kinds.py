"""Which kind of failure an error is, whoever raised it."""

from __future__ import annotations

import pytest

from backfill_assets.engine.batch.audited import AuditsFailedError
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.plans.moving import ConcurrentPublicationError
from backfill_assets.engine.project.cancelling import BatchTimeoutError, PlanCancelledError
from backfill_assets.engine.review.evidence import EvidenceNotWrittenError
from backfill_assets.errors import BackfillAssetsError, one_line
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.locks import PlanLeasedError
from backfill_assets.warehouse.rows.inputs import SchemaDriftError
from backfill_assets.warehouse.spark.spark_errors import error_of_ours
from backfill_assets_tests.builders import FIRST


class UnknownException(Exception):  # noqa: N818 - Spark's own name
    """What Spark Connect makes of every error."""


class Py4JNetworkError(Exception):
    """What py4j raises when the driver has gone."""


class DeadJava:
    """An error of Java's whose driver has gone: its words can't be had any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


class Py4JJavaError(Exception):
    """An error that keeps its words in Java."""

    java_exception = DeadJava()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnknownException("[DELTA_CONCURRENT_APPEND] Transaction conflict"), FailureKind.TRANSIENT),
        (UnknownException("[INVALID_HANDLE.SESSION_CLOSED] closed"), FailureKind.TRANSIENT),
        (UnknownException("StatusCode.UNAVAILABLE failed to connect"), FailureKind.TRANSIENT),
        (Py4JNetworkError("Answer from Java side is empty"), FailureKind.TRANSIENT),
        (Py4JJavaError("o1"), FailureKind.TRANSIENT),
        (ConnectionResetError(104, "Connection reset by peer"), FailureKind.TRANSIENT),
        (
            RuntimeError("Job aborted: ExecutorLostFailure (executor 1 exited)"),
            FailureKind.TRANSIENT,
        ),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), FailureKind.TRANSIENT),
        (
            RuntimeError(
                'java.lang.NullPointerException: Cannot invoke "org.apache.spark.scheduler.DAGScheduler.cleanupQueryJobs('
                'long)" because the return value of "org.apache.spark.SparkContext.dagScheduler()" is null'
            ),
            FailureKind.TRANSIENT,
        ),
        (OSError(28, "No space left on device"), FailureKind.TRANSIENT),
        (
            RuntimeError("[FAILED_READ_FILE] x\nCaused by: SocketTimeoutException"),
            FailureKind.TRANSIENT,
        ),
        (RuntimeError("[DELTA_LOG_FILE_NOT_FOUND] x"), FailureKind.INPUT),
        (RuntimeError("[DELTA_VERSION_NOT_FOUND] x"), FailureKind.INPUT),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero"), FailureKind.CODE),
        (
            UnknownException(
                "[CAST_INVALID_INPUT] The value 'Connection refused' can't be cast. SQLSTATE: 22018"
            ),
            FailureKind.CODE,
        ),
        (
            RuntimeError("[USER_RAISED_EXCEPTION] Permission denied SQLSTATE: P0001"),
            FailureKind.CODE,
        ),
        (
            Exception(
                "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: "
                "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records: {07.\n SQLSTATE: 22023"
            ),
            FailureKind.CODE,
        ),
        (
            RuntimeError(
                "[FAILED_READ_FILE.NO_HINT] _delta_log/1.json SQLSTATE: KD001\n"
                "Caused by: [MALFORMED_RECORD_IN_PARSING] SQLSTATE: 22023"
            ),
            FailureKind.INPUT,
        ),
        (RuntimeError("[DELTA_VERSION_NOT_FOUND] x SQLSTATE: 22003"), FailureKind.INPUT),
        (KeyError("a mistake of ours"), FailureKind.CODE),
        (
            UnknownException("[OPERATION_CANCELED] Operation has been canceled"),
            FailureKind.CANCELLED,
        ),
        (RuntimeError("[SPARK_JOB_CANCELLED] Job 1 cancelled"), FailureKind.CANCELLED),
    ],
    ids=str,
)
def test_an_engines_error_is_told_by_what_it_says(error: Exception, kind: FailureKind):
    assert kind_of(error_of_ours(error, "/data/t")) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StateBusyError("db", 30), FailureKind.TRANSIENT),
        (StateUnavailableError("db", "refused"), FailureKind.TRANSIENT),
        (AuditsFailedError("m", ()), FailureKind.AUDIT),
        (BatchTimeoutError("m", 3), FailureKind.TIMEOUT),
        (PlanCancelledError("p"), FailureKind.CANCELLED),
        (EvidenceNotWrittenError("p", "e", OSError(28, "full"), "then"), FailureKind.TRANSIENT),
        (ConcurrentPublicationError("p", "prod"), FailureKind.TRANSIENT),
        (PlanLeasedError("late data of prod", "run-1", FIRST), FailureKind.TRANSIENT),
        (KeyboardInterrupt(), FailureKind.CANCELLED),
        (BackfillAssetsError("nobody has classified it"), FailureKind.CODE),
    ],
    ids=lambda parameter: type(parameter).__name__,
)
def test_an_error_of_ours_is_told_by_its_class(error: BaseException, kind: FailureKind):
    assert kind_of(error) is kind


def test_a_source_that_drifted_is_the_inputs_fault():
    assert issubclass(SchemaDriftError, BackfillAssetsError)
    assert kind_of(SchemaDriftError.__new__(SchemaDriftError)) is FailureKind.INPUT


def test_the_line_that_names_the_cause_is_shown_not_the_call_that_failed():
    error = RuntimeError(
        "An error occurred while calling o99.count.\n: org.apache.spark.SparkException: [X] why\n\tat y"
    )
    assert one_line(error) == "RuntimeError: org.apache.spark.SparkException: [X] why"


def test_of_stages_that_failed_at_the_same_time_the_first_error_is_shown():
    error = RuntimeError(
        "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: "
        "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage materialization: \n"
        "  1. ArithmeticException: [DIVIDE_BY_ZERO] why\n  2. ArithmeticException: [DIVIDE_BY_ZERO] why"
    )
    assert one_line(error) == "RuntimeError: 1. ArithmeticException: [DIVIDE_BY_ZERO] why"
