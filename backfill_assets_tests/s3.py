"""An S3 server for the tests, and what may go wrong with one.

The server is moto's, behind one lock: a conditional put is checked and carried out in one step, as S3
promises. Faults are decided per request, so that a test says which request fails, and how.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any

from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

BUCKET = "tables"
_HOST = "127.0.0.1"


class NoS3Error(Exception):
    """S3 can't be tested here."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks of the server.

    Attributes:
        method: PUT, GET and so on.
        path: with the bucket.
        conditional: whether it may only create what is not there.
    """

    method: str
    path: str
    conditional: bool

    @property
    def is_commit(self) -> bool:
        """Whether it writes an entry of a table's log."""
        return self.method == "PUT" and "/_delta_log/" in self.path and self.path.endswith(".json")


@dataclass(frozen=True, slots=True)
class Fault:
    """How a request fails.

    Attributes:
        status: what the client is told; None: the truth.
        carried_out: whether it is carried out all the same.
        late: how many seconds the answer takes.
    """

    status: str | None = "503 Service Unavailable"
    carried_out: bool = False
    late: float = 0


Faulty = Callable[[Request], Fault | None]


@dataclass
class S3Server:
    """One bucket at an address of this machine.

    Attributes:
        faulty: says of a request how it fails; None: it does not.
        seen: every request, in order.
        careless: whether it overwrites what was to be created only.
    """

    faulty: Faulty | None = None
    seen: list[Request] = field(default_factory=list[Request])
    careless: bool = False

    @contextmanager
    def failing(self, faulty: Faulty) -> Iterator[None]:
        """Let requests fail for as long as the context is open."""
        self.faulty = faulty
        try:
            yield
        finally:
            self.faulty = None

    def fault_of(self, request: Request) -> Fault:
        self.seen.append(request)
        found = self.faulty(request) if self.faulty else None
        return found or Fault(status=None, carried_out=True)


def environment(port: int) -> dict[str, str]:
    """What a person sets who has an S3 server of their own."""
    return {
        "AWS_ENDPOINT_URL": f"http://{_HOST}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "of-the-tests",
        "AWS_SECRET_ACCESS_KEY": "of-the-tests",
        "AWS_REGION": "eu-central-1",
    }


@contextmanager
def s3_server(port: int) -> Iterator[S3Server]:
    """Run a server with an empty bucket for as long as the context is open.

    Raises:
        NoS3Error: Spark's jars for S3 have not been fetched.
    """
    if not any((jars_dir() / "s3").glob("*.jar")):
        raise NoS3Error("Spark's jars for S3 are not there; `make s3-jars` fetches them")
    from pyarrow.fs import FileSystem  # noqa: PLC0415 - most tests need no S3
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    class Silent(WSGIRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing: thousands of requests are made."""

    server = S3Server()
    listening = make_server(_HOST, port, _Faulty(server), threaded=True, request_handler=Silent)
    thread = Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        store, bucket = FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
        store.create_dir(bucket)
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


class _Faulty:
    """moto's S3, one request at a time, with faults in front of it."""

    def __init__(self, server: S3Server) -> None:
        from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
            DomainDispatcherApplication,
            create_backend_app,
        )

        self._server, self._lock = server, RLock()
        self._app: Any = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], "HTTP_IF_NONE_MATCH" in environ
        )
        # Read before anything else: a client that sends slowly, or no more, holds nobody up.
        environ["wsgi.input"] = BytesIO(_body(environ))
        fault = self._server.fault_of(request)
        time.sleep(fault.late)
        if self._server.careless:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        answer: Iterable[bytes] = ()
        if fault.carried_out:
            told = (lambda *_: _unheard) if fault.status else start
            with self._lock:
                answer = [*self._app(environ, told)]
        if fault.status is None:
            return answer
        start(fault.status, [("Content-Length", "0")])
        return ()


def _body(environ: WSGIEnvironment) -> bytes:
    if environ.get("wsgi.input_terminated"):
        return environ["wsgi.input"].read()
    return environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


def _unheard(_: bytes) -> None:
    """Take what nobody is told."""
