"""`python -m backfill_assets_tests.faults.nursery`: has imported all that a victim needs, and forks them.

A victim that is forked here is a process like any other, with a session of its own; but it starts at
once. The nursery reads an order per line, and writes a line when one was born and when one ended.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import selectors
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from backfill_assets_tests.faults import victim
from backfill_assets_tests.faults.ledger import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_IMPORTED = ("cli", "engine", "render", "state", "warehouse", "planning")
_GLANCE = 0.02


def _import_all() -> None:
    """Import the product, except migrations: these run inside of Alembic alone."""
    for room in _IMPORTED:
        package = importlib.import_module(f"backfill_assets.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" not in found.name.split("."):
                importlib.import_module(found.name)


def serve() -> None:
    """Fork whoever is ordered, and tell who ended, until nobody orders any more."""
    _import_all()
    orders = selectors.DefaultSelector()
    orders.register(sys.stdin, selectors.EVENT_READ)
    while True:
        if orders.select(_GLANCE):
            line = sys.stdin.readline()
            if not line:
                return
            order = json.loads(line)
            born = os.fork()
            if born == 0:
                _live(order)
            _tell("born", born)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                _tell("ended", ended[0], os.waitstatus_to_exitcode(ended[1]))


def _tell(what: str, *said: int) -> None:
    sys.stdout.write(f"{json.dumps([what, *said])}\n")
    sys.stdout.flush()


def _live(order: dict[str, Any]) -> NoReturn:
    os.setsid()
    os.environ.clear()
    os.environ.update(order["variables"])
    os.chdir(order["folder"])
    sys.path[:0] = os.environ["PYTHONPATH"].split(":")
    sys.argv = ["backfill", *order["words"]]
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for place, to in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(place, to)
    code = 1
    try:
        victim.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Nursery:
    """The process that forks victims, seen from the harness."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "backfill_assets_tests.faults.nursery"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._born, self._codes = list[int](), dict[int, int]()
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def fork(
        self, words: tuple[str, ...], variables: Mapping[str, str], folder: Path, log: Path
    ) -> Forked:
        """Let a victim be born."""
        order = {
            "words": words,
            "variables": dict(variables),
            "folder": str(folder),
            "log": str(log),
        }
        assert self._process.stdin is not None
        with self._news:
            self._process.stdin.write(f"{json.dumps(order)}\n")
            self._process.stdin.flush()
            self._news.wait_for(lambda: self._born)
            return Forked(self, self._born.pop())

    def code_of(self, pid: int, seconds: float | None) -> int | None:
        """Give how a victim ended; None when it has not within that time."""
        with self._news:
            self._news.wait_for(lambda: pid in self._codes, seconds)
            return self._codes.get(pid)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, pid, *code = json.loads(line)
            with self._news:
                if what == "born":
                    self._codes.pop(pid, None)
                    self._born.append(pid)
                else:
                    self._codes[pid] = code[0]
                self._news.notify_all()


class Forked:
    """A victim that was forked: what `subprocess.Popen` says of a process."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid

    def poll(self) -> int | None:
        """Give its exit code, if it has ended."""
        return self._nursery.code_of(self.pid, 0)

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end.

        Raises:
            TimeoutExpired: it did not end in time.
        """
        code = self._nursery.code_of(self.pid, seconds)
        if code is None:
            raise subprocess.TimeoutExpired("a victim", seconds or 0)
        return code


if __name__ == "__main__":
    serve()
