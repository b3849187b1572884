"""Channels as Apprise delivers over them: a file, a web server, and what is wrong with either."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.project.channels import DeliveryError, channels_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A file of channels; `board` has a file."""
    path = tmp_path / "channels.txt"
    path.write_text(f"board=file://{tmp_path}/its%20notices.txt\n", encoding="utf-8")
    return path


def test_a_channel_that_is_a_file_keeps_every_notice(named: Path):
    deliver = channels_of(str(named))

    deliver("board", "Plan p1 is ready", "web.visits: cost")
    deliver("board", "Plan p1 is published", "web.visits: cost")

    written = (named.parent / "its notices.txt").read_text(encoding="utf-8")
    assert (
        written
        == "Plan p1 is ready\nweb.visits: cost\n\nPlan p1 is published\nweb.visits: cost\n\n"
    )


def test_a_channel_that_is_a_web_server_is_sent_the_notice(named: Path):
    sent: list[bytes] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its class has it
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        named.write_text(f"hook=json://127.0.0.1:{server.server_port}/x\n", encoding="utf-8")
        channels_of(str(named))("hook", "Plan p1 is ready", "web.visits: cost")
    finally:
        server.shutdown()
        server.server_close()

    assert len(sent) == 1
    assert b"web.visits: cost" in sent[0]


def test_a_channel_that_takes_nothing_says_why(named: Path, tmp_path: Path):
    named.write_text("hook=json://127.0.0.1:9/x\nfull=file:///proc/no/notices\n", encoding="utf-8")
    deliver = channels_of(str(named))

    for channel, why in (
        ("hook", "connection error"),
        ("full", "No such file or directory"),
        ("boards", "has no channel of this name"),
    ):
        with pytest.raises(
            DeliveryError, match=f"(?i)channel '{channel}' did not accept the notice: .*{why}"
        ):
            deliver(channel, "title", "text")
    with pytest.raises(DeliveryError, match=r"nowhere\.txt can't be read"):
        channels_of(str(tmp_path / "nowhere.txt"))("board", "title", "text")
    with pytest.raises(DeliveryError, match="BACKFILL_CHANNELS names it"):
        channels_of("")("board", "title", "text")
