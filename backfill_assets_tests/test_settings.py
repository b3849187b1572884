from __future__ import annotations

from pathlib import Path

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.settings import Dialect, Settings, ViewsFile, _tell_of_unknown, read_settings
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Clock


def test_operators_are_names_with_commas_between_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKFILL_OPERATORS", "ann, bob,")

    assert read_settings().operators == ("ann", "bob")


def test_files_of_views_name_their_dialect_and_another_environment_than_prod(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("BACKFILL_VIEWS", "duckdb:/srv/views.sql, spark@dev_cpa:dev:1.sql,")

    assert read_settings().views == (
        ViewsFile(Dialect.DUCKDB, Path("/srv/views.sql"), "prod"),
        ViewsFile(Dialect.SPARK, Path("dev:1.sql"), "dev_cpa"),
    )


def test_what_can_be_made_again_lies_with_the_data_or_beside_us():
    assert Settings(data_dir="/data").cache == Path("/data/.cache")
    assert Settings(data_dir="s3://bucket/data").cache == Path(".backfill")
    assert Settings(data_dir="/data", cache_dir="/cache").cache == Path("/cache")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLAN_DAYS", "0"),
        ("PROMISE_DAYS", "-1"),
        ("PRICE_PER_HOUR", "dear"),
        ("SPARK_MEMORY", "lots"),
        ("SPARK_MEMORY", "4"),
        ("OFF_PEAK", "25:00-99:00"),
        ("OFF_PEAK", "22:00-06:00"),
        ("OFF_PEAK", "22:00-06:00 Europe/Atlantis"),
        ("VIEWS", "/srv/views.sql"),
        ("VIEWS", "oracle:/srv/views.sql"),
        ("VIEWS", "duckdb@:/srv/views.sql"),
        ("VIEWS", "duckdb:/srv/views/"),
    ],
)
def test_a_setting_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(f"BACKFILL_{name}", value)

    with pytest.raises(DeclarationError, match=f"BACKFILL_{name} is '{value}'; expected "):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ATTEMPTS", "1.5", "a whole number of at least 1"),
        ("BATCH_TIMEOUT", "inf", "a number above 0 and up to 31536000"),
        ("PRICE_PER_GB", "dear", "a number of at least 0"),
        ("SPARK_REMOTE", "host:1", "the URL of a Spark Connect server, such as sc://host:15002"),
    ],
)
def test_a_setting_that_cannot_be_is_told_with_what_it_may_be(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
):
    monkeypatch.setenv(f"BACKFILL_{name}", value)

    with pytest.raises(DeclarationError) as caught:
        read_settings()

    assert str(caught.value) == (
        f"BACKFILL_{name} is '{value}'; expected {expected}; correct it in the environment, or in "
        "the file .env"
    )


def test_a_name_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKFILL_USER", "Zo\udceb")

    with pytest.raises(
        DeclarationError, match=r"BACKFILL_USER is 'Zo\\udceb'; expected text in UTF-8; correct"
    ):
        read_settings()


@pytest.mark.parametrize("folder", ["C:\\data", "a%41", "a\nb", "a\x00b", "s3a://bucket/data"])
def test_a_data_folder_that_no_table_format_can_name_is_refused(
    folder: str, monkeypatch: pytest.MonkeyPatch
):
    if "\x00" in folder:
        with pytest.raises(ValueError, match="control characters"):
            Settings(data_dir=folder)
        return
    monkeypatch.setenv("BACKFILL_DATA_DIR", folder)
    with pytest.raises(
        DeclarationError, match=r"BACKFILL_DATA_DIR is .*; correct it in the environment"
    ):
        read_settings()


def test_a_data_folder_below_one_that_no_table_format_can_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "50%25").mkdir()
    monkeypatch.chdir(tmp_path / "50%25")

    with pytest.raises(
        DeclarationError, match=r"BACKFILL_DATA_DIR is 'data'.* unlike .*/50%25/data;"
    ):
        read_settings()


def test_a_state_lies_in_the_data_folder_whatever_a_url_means_by_its_name(tmp_path: Path):
    folder = tmp_path / "what?"
    with Store.open(Settings(data_dir=str(folder)).state, clock=Clock()):
        assert (folder / "state.db").exists()

    assert [each.name for each in tmp_path.iterdir()] == ["what?"]


def test_a_url_of_the_state_may_end_with_the_line_break_of_a_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKFILL_STATE_URL", "postgresql://db/backfill\n")

    assert read_settings().state == "postgresql://db/backfill"


def test_a_variable_that_is_no_setting_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKFILL_PROMISE_DAY", "90")
    monkeypatch.setenv("BACKFILL_BIN", "/usr/bin")
    monkeypatch.setenv("BACKFILL_SPARK_MASTER", "local[1]")
    Path(".env").write_text("BACKFILL_OWN=1\nOTHER=1\nBACKFILL_JAVA_TOOL_OPTIONS=-Xmx1g\n")

    _tell_of_unknown.cache_clear()
    read_settings()
    monkeypatch.setenv("SET_BY_A_LIBRARY", "1")
    read_settings()

    assert caplog.messages == [
        "BACKFILL_JAVA_TOOL_OPTIONS is no setting and counts for nothing",
        "BACKFILL_OWN is no setting and counts for nothing",
        "BACKFILL_PROMISE_DAY is no setting and counts for nothing; did you mean BACKFILL_PROMISE_DAYS?",
    ]


def test_a_path_that_no_shell_has_read_lies_in_the_home_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.chdir(tmp_path)
    files = ("DATA_DIR", "JARS_DIR", "CACHE_DIR", "POLICY", "CHANNELS", "IDENTITY_KEY")
    lines = [f"BACKFILL_{name}=~/{name.lower()}" for name in files]
    lines.append("BACKFILL_STATE_URL=sqlite:///~/state.db")
    Path(".env").write_text("\n".join([*lines, "BACKFILL_VIEWS=duckdb:~/views.sql"]))

    settings = read_settings()

    assert settings.data_root == "/home/ann/data_dir"
    assert settings.jars_dir == Path("/home/ann/jars_dir")
    assert settings.cache == Path("/home/ann/cache_dir")
    assert settings.policy == "/home/ann/policy"
    assert settings.channels == "/home/ann/channels"
    assert settings.identity_key == "/home/ann/identity_key"
    assert settings.state == "sqlite:////home/ann/state.db"
    assert settings.views[0].path == Path("/home/ann/views.sql")


def test_an_empty_folder_or_catalog_is_the_usual_one(monkeypatch: pytest.MonkeyPatch):
    for name in ("CATALOG", "DATA_DIR", "JARS_DIR"):
        monkeypatch.setenv(f"BACKFILL_{name}", "")

    settings = read_settings()

    assert settings.catalog == "backfill_assets.pipelines.catalog"
    assert settings.data_root == str(Path("data").absolute()), "and not the current folder"
    assert settings.jars_dir == Path(".spark-jars")


def test_a_file_of_settings_that_is_no_text_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes("BACKFILL_USER=Zo\u00eb".encode("latin-1"))

    with pytest.raises(DeclarationError, match=r"/\.env can't be read: it is not a text file; "):
        read_settings()


def test_sparks_own_variables_count_where_ours_are_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15002")
    monkeypatch.setenv("SPARK_MASTER", "spark://master:7077")
    assert read_settings().spark_remote == "sc://localhost:15002"
    assert read_settings().spark_master == "spark://master:7077"
    monkeypatch.setenv("BACKFILL_SPARK_MASTER", "local[3]")
    monkeypatch.setenv("BACKFILL_SPARK_REMOTE", "")
    assert read_settings().spark_remote == ""
    assert read_settings().spark_master == "local[3]"


@pytest.mark.parametrize("prefix", ["", "BACKFILL_"])
def test_an_empty_server_or_master_is_none(monkeypatch: pytest.MonkeyPatch, prefix: str):
    monkeypatch.setenv(f"{prefix}SPARK_REMOTE", "")
    monkeypatch.setenv(f"{prefix}SPARK_MASTER", "")

    assert (read_settings().spark_remote, read_settings().spark_master) == ("", "local[*]")


def test_a_connect_server_that_is_no_url_of_one_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "localhost:15002")
    with pytest.raises(
        DeclarationError, match=r"SPARK_REMOTE is .*; correct it in the environment"
    ):
        read_settings()


@pytest.mark.parametrize("window", ["", "22:00-06:00 Europe/Berlin", "00:00-24:00  UTC"])
def test_off_peak_hours_are_two_times_and_a_zone(window: str):
    assert Settings(off_peak=window).off_peak == window
