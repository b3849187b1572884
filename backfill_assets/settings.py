"""Settings: where things lie and how large things are. Read once, in cli and orchestration."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import AliasChoices, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    SettingsConfigDict,
)

from backfill_assets.errors import DeclarationError, why_unreadable

_log = logging.getLogger(__name__)

LOCAL = "local[*]"
"""Spark's master that is the process itself, on all of its cores."""


class Dialect(StrEnum):
    """The engines for which a file of views can be written."""

    DUCKDB = "duckdb"
    SPARK = "spark"
    TRINO = "trino"


@dataclass(frozen=True, slots=True)
class ViewsFile:
    """A file of views that every publication of an environment writes again.

    Attributes:
        dialect: whose SQL it holds.
        path: of the file.
        environment: whose models the views show.
    """

    dialect: Dialect
    path: Path
    environment: str = "prod"


_CENTURY = 36_500
_YEAR = 31_536_000.0
"""The longest times that can be set, in days and in seconds: an instant has to follow from each."""

_MEMORY = re.compile(r"[1-9]\d*[kmgt]b?", re.ASCII | re.IGNORECASE)
_OFF_PEAK = re.compile(
    r"([01]\d|2[0-3]):[0-5]\d-([01]\d:[0-5]\d|2[0-3]:[0-5]\d|24:00) (\S+)", re.ASCII
)


_SQLITE = "sqlite:///"
_PREFIX, _FILE = "BACKFILL_", ".env"
_OTHERS = {"BACKFILL_BIN", "BACKFILL_DEFINITIONS", "BACKFILL_TEST_SPARK", "BACKFILL_TEST_PG_URL"}
"""Variables that our scripts and tests read."""
_ALIKE = 0.85
"""From which likeness on, of names with their prefix, one may have been meant."""

_VIEWS = re.compile(rf"({'|'.join(Dialect)})(?:@([^@:/\s]+))?:(.*[^/\s])")


def _also_by_spark(name: str) -> AliasChoices:
    return AliasChoices(f"BACKFILL_SPARK_{name}", f"SPARK_{name}")


class Settings(BaseSettings):
    """What a person may set, each as ``BACKFILL_<NAME>``.

    In the environment, or in a file `.env` of the folder that the process starts in; the environment wins. A
    file or folder that begins with ``~/`` lies in the person's home: no shell has read a line of `.env`. Of
    ``catalog``, ``data_dir`` and ``jars_dir`` an empty value means the default.

    Attributes:
        catalog: the module with MODELS and SOURCES.
        data_dir: folder (or URI) under which tables lie; a relative one is below the folder that
            the process starts in.
        state_url: SQLAlchemy URL of the state; empty means SQLite in the data folder. ``sqlite:///~/state.db``
            lies in the person's home.
        jars_dir: folder with Spark's Delta jars, filled once by ``backfill setup``.
        spark_master: Spark's master; ``local[*]`` runs inside the process. Spark's own name,
            ``SPARK_MASTER``, counts where ours is not set. Empty means the default.
        spark_remote: URL of a Spark Connect server, ``sc://host:port``, which wins over a master;
            empty means a session of our own. Spark's own name is ``SPARK_REMOTE``.
        spark_patience: how many seconds to wait for a Connect server that does not answer.
        spark_memory: memory of an embedded Spark driver, in Spark's notation.
        java_tool_options: what every JVM takes from `JAVA_TOOL_OPTIONS`, a variable of Java's own.
        jdk_java_options: the same of `JDK_JAVA_OPTIONS`.
        hotspot_options: the same of `_JAVA_OPTIONS`.
        lease_seconds: after how long without a heartbeat a claim or lock may be taken over.
        max_batches: how many batches at once, over all models, runs and processes; `backfill limit`
            changes it while they run.
        cells_per_run: how many batches' worth of cells one released run carries, so that a run is
            worth its start.
        backfill_share: how many released runs backfills and plans get at least while daily work
            waits.
        off_peak: the hours in which models' off-peak Spark settings count, such as
            ``22:00-06:00 Europe/Berlin``; empty, none.
        attempts: how often a batch is tried when Spark, the network or a database fails it.
        batch_timeout: how many seconds a batch may take until its commit, where its model does not
            say; none, any number.
        cache_dir: folder for what can be made again at any time, such as the manifest; empty means
            ``.cache`` in the data folder.
        user: a name for the history beside that of the OS's user: a claim, which permits nothing.
        operators: users of the OS who may change a protected environment, names with commas between
            them; none named: everyone.
        policy: the file that says who must approve what; empty: `backfill_policy.toml` in the folder that
            the process starts in, if there is one.
        channels: the file that says where notices to consumers go, in Apprise's format; empty: nowhere.
        identity_header: the header by which an authenticating proxy before the webserver names the person, such as
            ``X-Forwarded-Email``; empty: the webserver knows no one.
        identity_key: the file of the key under which the webserver attests that person to runs; empty: not at all.
        signing_key: the SSH key by which a person is known to a policy; empty: git's `user.signingkey`.
        plan_days: how long a plan may be applied after it was made, and how long one that was applied
            may wait after its last step, and hold late data back.
        promise_days: how long a promotion can be rolled back: until then its tables are kept.
        environment_days: how long an unprotected environment lives after it was last published to or filled.
        price_per_hour: what an hour of computing costs, for estimates; none, no cost is shown.
        price_per_gb: what writing a gigabyte costs, for estimates.
        currency: that of the prices.
        views: files of views that every publication writes again, such as ``duckdb:/srv/views.sql``, with
            commas between them; ``duckdb@dev:/srv/dev.sql`` is one of another environment than prod.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_file=_FILE, extra="ignore")

    catalog: str = "backfill_assets.pipelines.catalog"
    data_dir: str = "data"
    state_url: str = ""
    jars_dir: Path = Path(".spark-jars")
    spark_master: str = Field(default=LOCAL, validation_alias=_also_by_spark("MASTER"))
    spark_remote: str = Field(default="", validation_alias=_also_by_spark("REMOTE"))
    spark_patience: float = Field(default=60.0, gt=0, le=_YEAR)
    spark_memory: str = "4g"
    java_tool_options: str = Field(default="", validation_alias="JAVA_TOOL_OPTIONS")
    jdk_java_options: str = Field(default="", validation_alias="JDK_JAVA_OPTIONS")
    hotspot_options: str = Field(default="", validation_alias="_JAVA_OPTIONS")
    lease_seconds: float = Field(default=60.0, gt=0, le=_YEAR)
    max_batches: int = Field(default=2, ge=1)
    cells_per_run: int = Field(default=20, ge=1)
    backfill_share: int = Field(default=1, ge=0)
    off_peak: str = ""
    attempts: int = Field(default=3, ge=1)
    batch_timeout: float | None = Field(default=None, gt=0, le=_YEAR)
    cache_dir: str = ""
    user: str = ""
    operators: Annotated[tuple[str, ...], NoDecode] = ()
    policy: str = ""
    channels: str = ""
    identity_header: str = ""
    identity_key: str = ""
    signing_key: str = ""
    plan_days: int = Field(default=7, ge=1, le=_CENTURY)
    promise_days: int = Field(default=30, ge=0, le=_CENTURY)
    environment_days: int = Field(default=30, ge=1, le=_CENTURY)
    price_per_hour: float | None = Field(default=None, ge=0)
    price_per_gb: float | None = Field(default=None, ge=0)
    currency: str = "EUR"
    views: Annotated[tuple[ViewsFile, ...], NoDecode] = ()

    @field_validator("catalog", "data_dir", "jars_dir", mode="before")
    @classmethod
    def _default_where_empty(cls, value: object, info: ValidationInfo) -> object:
        return cls.model_fields[str(info.field_name)].default if value == "" else value

    @field_validator(
        "data_dir", "jars_dir", "cache_dir", "policy", "channels", "identity_key", mode="before"
    )
    @classmethod
    def _in_home(cls, value: object) -> object:
        return _at_home(value) if isinstance(value, str) else value

    @field_validator("state_url")
    @classmethod
    def _file_in_home(cls, value: str) -> str:
        value = value.strip()  # a file that holds a secret ends with a line break
        rest = value.removeprefix(f"{_SQLITE}~/")
        return value if rest == value else f"{_SQLITE}{_in_url(str(Path.home()))}/{rest}"

    @field_validator("data_dir")
    @classmethod
    def _folder(cls, value: str) -> str:
        # Delta's libraries disagree about these: one takes %41 for A, and \\ for /.
        if not _can_be_named(value):
            raise ValueError("expected a folder without \\, % and control characters")
        if not ("://" in value or _can_be_named(str(Path(value).resolve()))):
            raise ValueError(
                "expected a folder without \\, % and control characters also above it, unlike "
                f"{Path(value).resolve()}"
            )
        if value.startswith("s3a://"):
            raise ValueError("expected s3://, by which every program that reads it knows the place")
        return value

    @field_validator("user")
    @classmethod
    def _text(cls, value: str) -> str:
        if value.encode(errors="ignore").decode() != value:
            raise ValueError("expected text in UTF-8")
        return value

    @field_validator("spark_remote")
    @classmethod
    def _remote(cls, value: str) -> str:
        if value and not re.fullmatch("sc://.+", value):
            raise ValueError("expected the URL of a Spark Connect server, such as sc://host:15002")
        return value

    @field_validator("spark_memory")
    @classmethod
    def _memory(cls, value: str) -> str:
        if not _MEMORY.fullmatch(value):
            raise ValueError("expected a number and its unit, such as 4g or 512m")
        return value

    @field_validator("off_peak")
    @classmethod
    def _window(cls, value: str) -> str:
        window = _OFF_PEAK.fullmatch(" ".join(value.split()))
        if value and (window is None or window[3] not in available_timezones()):
            raise ValueError(
                "expected two times of the day and a time zone, such as 22:00-06:00 Europe/Berlin"
            )
        return value

    @field_validator("spark_master")
    @classmethod
    def _master(cls, value: str) -> str:
        return value or LOCAL

    @field_validator("operators", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("views", mode="before")
    @classmethod
    def _views(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(_views_file(file.strip()) for file in value.split(",") if file.strip())

    @property
    def data_root(self) -> str:
        """The data folder as an absolute path, or the URI as it is."""
        return self.data_dir if "://" in self.data_dir else str(Path(self.data_dir).resolve())

    @property
    def cache(self) -> Path:
        """The folder of what can be made again at any time; beside us when data lie elsewhere."""
        if self.cache_dir:
            return Path(self.cache_dir)
        return Path(".backfill" if "://" in self.data_dir else f"{self.data_root}/.cache")

    @property
    def state(self) -> str:
        """The URL of the state database.

        Raises:
            DeclarationError: tables lie in an object store, and no setting says where the state does.
        """
        if not self.state_url and "://" in self.data_dir:
            raise DeclarationError(
                found=f"BACKFILL_STATE_URL is '': the state can't be stored in {self.data_dir}, name a "
                "database",
                do="correct it in the environment, or in the file .env",
            )
        return self.state_url or f"{_SQLITE}{_in_url(self.data_root)}/state.db"


def _views_file(text: str) -> ViewsFile:
    named = _VIEWS.fullmatch(text)
    if named is None:
        raise ValueError(
            f"expected an engine ({', '.join(Dialect)}), a colon and a file, such as duckdb:/srv/views.sql, or "
            "duckdb@dev:/srv/dev.sql for an environment dev, with commas between several"
        )
    return ViewsFile(Dialect(named[1]), Path(_at_home(named[3])), named[2] or "prod")


def _can_be_named(path: str) -> bool:
    return not {"\\", "%"} & {*path} and path.isprintable()


def _in_url(path: str) -> str:
    """Write a path as a part of a URL: there a % begins an escape, and a ? the options."""
    return path.replace("%", "%25").replace("?", "%3F")


def _at_home(path: str) -> str:
    return f"{Path.home()}{path[1:]}" if path.startswith("~/") else path


def read_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        DeclarationError: one of them can't be what it says, or the file `.env` can't be read.
    """
    try:
        settings, in_file = Settings(), DotEnvSettingsSource(Settings).env_vars
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(
            found=f"{Path(_FILE).absolute()} can't be read: {why_unreadable(error)}",
            expected="settings, one a line, in UTF-8",
            do="correct it, or move it away",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        name = field.upper()
        name = name if name.startswith(("BACKFILL_", "SPARK_REMOTE")) else f"BACKFILL_{name}"
        raise DeclarationError(
            found=f"{name} is {first['input']!r}",
            expected=_expected(field, first["msg"]),
            do="correct it in the environment, or in the file .env",
        ) from error
    names = {name.upper() for name in (*EnvSettingsSource(Settings).env_vars, *in_file)}
    _tell_of_unknown(frozenset(name for name in names if name.startswith(_PREFIX)))
    return settings


@cache
def _tell_of_unknown(own: frozenset[str]) -> None:
    """Warn, once in a process, of variables that look like settings and are none: a misspelled one counts for nothing."""
    javas = {
        name for name, of in Settings.model_fields.items() if isinstance(of.validation_alias, str)
    }
    known = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields.keys() - javas}
    for name in sorted(own - known - _OTHERS):
        like = get_close_matches(name, sorted(known - own), n=1, cutoff=_ALIKE)
        meant = f"; did you mean {like[0]}?" if like else ""
        _log.warning("%s is no setting and counts for nothing%s", name, meant)


def _expected(field: str, message: str) -> str:
    """Say what a setting has to be: our own words where it has some, else which number."""
    ours = message.removeprefix("Value error, expected ")
    if ours != message:
        return ours
    number = Settings.model_fields[field]
    kind = "a whole number" if number.annotation is int else "a number"
    words = {"ge": "of at least", "gt": "above", "le": "up to"}
    bounds = [
        f" {word} {getattr(bound, name):.0f}"
        for bound in number.metadata
        for name, word in words.items()
        if hasattr(bound, name)
    ]
    return kind + " and".join(bounds)
