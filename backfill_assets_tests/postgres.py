"""A PostgreSQL server for the tests: on a free port of this machine, in a folder of its own.

The tests need no right that an ordinary user lacks. PostgreSQL itself refuses to run as root, so for
root it runs as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets_tests.spark import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "s3cret-of-the-tests"  # noqa: S105 - of a server that lives as long as the tests
_OPTIONS = ("fsync=off", "full_page_writes=off", "unix_socket_directories=", "max_connections=200")


class NoPostgresError(Exception):
    """PostgreSQL can't be had on this machine."""


@contextmanager
def postgres_server() -> Iterator[Server]:
    """Run a server for as long as the context is open.

    Raises:
        NoPostgresError: it is not installed, or does not start.
    """
    programs = _programs()
    # Not pytest's folder: that one may be entered by its owner alone.
    folder = Path(tempfile.mkdtemp(prefix="backfill-postgres-"))
    try:
        server = Server(programs, folder, free_port())
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """One server, which can be stopped and started again."""

    def __init__(self, programs: Path, folder: Path, port: int) -> None:
        self._programs, self._data, self._port = programs, folder / "data", port
        self._log, self._secret = folder / "server.log", folder / "password"
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def url(self, database: str = "backfill") -> str:
        """Where a database is, password included."""
        return f"postgresql://backfill:{PASSWORD}@127.0.0.1:{self._port}/{database}"

    def initialise(self) -> None:
        self._secret.write_text(PASSWORD)
        self._secret.chmod(0o644)
        login = ["-U", "backfill", "-A", "scram-sha-256", f"--pwfile={self._secret}"]
        self._do("initdb", *login, "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        settings = (*_OPTIONS, "listen_addresses=127.0.0.1", f"port={self._port}")
        options = " ".join(
            f"-c {setting}" if setting[-1] != "=" else f"-c {setting}''" for setting in settings
        )
        self._do("pg_ctl", "-w", "-l", str(self._log), "-o", options, "start")
        if not self._exists("backfill"):
            self.create("backfill")

    def stop(self) -> None:
        self._do("pg_ctl", "-w", "-m", "immediate", "stop")

    def do(self, *statements: str) -> None:
        """Run statements of an administrator."""
        with self._maintenance() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    def create(self, database: str, options: str = "") -> str:
        """Make an empty database, with what else CREATE DATABASE is given; give its URL."""
        self.do(f'DROP DATABASE IF EXISTS "{database}"', f'CREATE DATABASE "{database}" {options}')
        return self.url(database)

    def _exists(self, database: str) -> bool:
        with self._maintenance() as connection:
            asked = sa.text("SELECT 1 FROM pg_database WHERE datname = :name")
            return connection.execute(asked, {"name": database}).first() is not None

    @contextmanager
    def _maintenance(self) -> Iterator[sa.Connection]:
        engine = sa.create_engine(
            sa.make_url(self.url("postgres")).set(drivername="postgresql+psycopg"),
            isolation_level="AUTOCOMMIT",
        )
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def _do(self, program: str, *arguments: str) -> None:
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            as_user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid}
            as_user["extra_groups"] = []
        done = subprocess.run(
            [str(self._programs / program), "-D", str(self._data), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if program == "initdb" else subprocess.DEVNULL,
            text=True,
            check=False,
            **as_user,
        )
        if done.returncode:
            said = self._log.read_text() if self._log.exists() else done.stdout
            msg = f"{program} ended with {done.returncode}: {said}"
            raise NoPostgresError(msg)


def _programs() -> Path:
    """Debian keeps them beside PATH, one folder per version."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if on_path is None and not found:
        msg = "PostgreSQL is not installed (Debian, Ubuntu: apt-get install postgresql)"
        raise NoPostgresError(msg)
    return Path(on_path).parent if on_path is not None else found[-1].parent


def _version(initdb: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in initdb.parts[-3].split(".") if part.isdigit())
