"""A driver that is gone is told of once: by the error that is raised."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters

from backfill_assets.warehouse.spark.quiet_gateway import quiet_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def hanging_up() -> Iterator[int]:
    """The port of a driver that takes a command and dies."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    taken, _ = listening.accept()
                except OSError:
                    return
                taken.recv(1024)
                taken.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def test_a_driver_that_dies_under_a_command_leaves_no_traceback(
    hanging_up: int, caplog: pytest.LogCaptureFixture
):
    quiet_gateway()
    client = GatewayClient(gateway_parameters=GatewayParameters(port=hanging_up))

    assert client.send_command("c\no0\nm\ne\n") == "x"  # which py4j raises as an error

    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_what_is_kept_from_the_terminal_is_in_our_own_log(
    hanging_up: int, caplog: pytest.LogCaptureFixture
):
    quiet_gateway()
    caplog.set_level(logging.DEBUG, "backfill_assets")
    GatewayClient(gateway_parameters=GatewayParameters(port=hanging_up)).send_command("c\ne\n")

    ours = [record for record in caplog.records if record.name.startswith("backfill_assets")]
    assert any("Exception while sending command" in record.getMessage() for record in ours)
    assert all(record.exc_info for record in ours)


def test_nothing_else_is_kept_from_anybody(caplog: pytest.LogCaptureFixture):
    quiet_gateway()
    logging.getLogger().error("told", exc_info=ConnectionResetError("of somebody else"))

    assert [record.getMessage() for record in caplog.records] == ["told"]
