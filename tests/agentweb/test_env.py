"""The environment: every value is read, or refused with the name of its variable."""

from __future__ import annotations

import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentweb import env
from agentweb import settings as site
from conversations.conf import PREFIX, list_defaults

NAME = "AGENTWEB_TRIED"


def refused(name: str) -> Any:
    return pytest.raises(ImproperlyConfigured, match=rf"^{name}\b")


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), (" yes ", True), ("On", True), ("0", False),
                        ("false", False), ("No", False), ("off", False), ("", True), ("  ", True)],
)  # fmt: skip
def test_a_flag_is_read(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    assert env.flag(NAME, default=True) is value


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), (" -3 ", -3), ("1_000_000", 1_000_000), ("", 5), ("007", 7)]
)
def test_a_number_is_read(text: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    assert env.number(NAME, 5) == value


@pytest.mark.parametrize(
    ("reader", "text"),
    [(env.flag, "maybe"), (env.flag, "2"), (env.flag, "truee"), (env.number, "ten"),
     (env.number, "1.5"), (env.number, "1e3"), (env.number, "0x10"), (env.number, "1__0"),
     (env.number, "1_"), (env.number, "_1"), (env.number, "--1"), (env.number, "-"),
     (env.number, "²"), (env.number, "٣"), (env.number, "9" * 5_000), (env.number, "1 000")],
)  # fmt: skip
def test_a_value_that_means_nothing_is_refused_by_name(
    reader: Callable[[str], Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, text)
    with refused(NAME):
        reader(NAME)


@pytest.mark.parametrize(
    ("text", "value"), [("a,b", ("a", "b")), (" a , ,b,", ("a", "b")), ("", ("x",)), (",", ())]
)
def test_words_are_read(text: str, value: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    assert env.words(NAME, ("x",)) == value


def test_origins_are_read_as_browsers_send_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "https://Chat.Example.org/, https://chat.lan:8443")
    assert env.origins(NAME) == ["https://chat.example.org", "https://chat.lan:8443"]


@pytest.mark.parametrize("text", ["chat.example.org", "ftp://a.b", "https://a.b/c", "https://"])
def test_what_is_no_origin_is_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, f"https://a.b,{text}")
    with pytest.raises(ImproperlyConfigured, match=f"^{NAME}: .* is no origin such as https://"):
        env.origins(NAME)


def test_a_secret_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-secret\n", encoding="utf-8")
    monkeypatch.setenv(NAME, "in the environment")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "key"))
    assert env.text(NAME) == "sk-secret"


def test_the_site_s_secret_is_made_once_and_anew_where_a_full_disk_left_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(site, "DATA_DIR", tmp_path / "data")
    path = tmp_path / "data" / "secret_key"
    with ThreadPoolExecutor(8) as starts:
        going = [starts.submit(site._read_or_make_secret) for _ in range(8)]
    [made] = {each.result() for each in going}
    assert len(made) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("")
    anew = site._read_or_make_secret()
    assert len(anew) > 40
    assert path.read_text() == site._read_or_make_secret() == anew != made


def test_a_data_folder_that_is_a_file_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "agentweb.env").touch()
    monkeypatch.setattr(site, "DATA_DIR", tmp_path / "agentweb.env")
    with pytest.raises(ImproperlyConfigured, match=r"agentweb\.env: .*; set AGENTWEB_DATA_DIR"):
        site._read_or_make_secret()


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_a_file_that_cannot_be_read_is_refused_by_name(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(f"{NAME}_FILE", str(path))
    with refused(f"{NAME}_FILE"):
        env.text(NAME)
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path))
    with refused(f"{NAME}_FILE"):
        env.text(NAME)


def test_a_threshold_is_a_number_or_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, value in (("60%", "60%"), (" 9_000 ", 9_000)):
        monkeypatch.setenv(NAME, given)
        assert env.threshold(NAME, 7) == value
    monkeypatch.setenv(NAME, "160%")
    with refused(NAME):
        env.threshold(NAME, 7)


@pytest.mark.parametrize("name", list_defaults())
def test_every_setting_can_be_read_from_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, default = PREFIX + name.upper(), list_defaults()[name]
    monkeypatch.delenv(full, raising=False)
    assert env.typed(full, default) == default
    if isinstance(default, bool | int):
        monkeypatch.setenv(full, "plenty")
        with refused(full):
            env.typed(full, default)


def test_sqlite_is_configured_for_many_writers() -> None:
    found = env.database("sqlite:////var/lib/agent%20web/site.sqlite3")
    assert Path(found["NAME"]) == Path("/var/lib/agent web/site.sqlite3")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]
    assert "synchronous=FULL" in found["OPTIONS"]["init_command"]


def test_postgresql_is_read_with_its_parts_decoded() -> None:
    found = env.database("postgres://ann%40x:p%2Fw%23@[::1]:5433/site?sslmode=require")
    assert (found["USER"], found["PASSWORD"]) == ("ann@x", "p/w#")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("::1", "5433", "site")
    assert found["OPTIONS"]["sslmode"] == "require"
    assert "lock_timeout" in found["OPTIONS"]["options"]
    assert "random_page_cost=1.1" in found["OPTIONS"]["options"]
    assert found["OPTIONS"]["prepare_threshold"] == 3
    plain = env.database("postgresql:///site", prepares=False)
    assert plain["OPTIONS"]["prepare_threshold"] is None
    assert (plain["HOST"], plain["PORT"], plain["USER"]) == ("", "", "")


@pytest.mark.parametrize(
    "url",
    ["", "site.sqlite3", "sqlite", "sqlite:", "sqlite://", "sqlite:///", "sqlite://host/path",
     "mysql://root@host/site", "http://host/site", "postgresql://host", "postgresql://host/",
     "postgresql://host:port/site", "postgresql://host:99999/site", "postgresql://[::1/site"],
)  # fmt: skip
def test_a_database_url_of_another_form_is_refused_by_name(url: str) -> None:
    with refused("DATABASE_URL"):
        env.database(url)


@pytest.mark.parametrize("url", ["owner@host/site", "sqlite:///site", "postgresql://u:a/b@host/x"])
def test_the_owner_s_url_is_refused_by_its_own_name(url: str) -> None:
    with refused("AGENTWEB_MIGRATE_DATABASE_URL"):
        env.owner_database(url)


def test_the_owner_s_connection_prepares_no_statements_and_has_no_pool() -> None:
    """Django has nothing prepared where that is not asked for."""
    options = env.owner_database("postgresql://owner@host/site")["OPTIONS"]
    assert "pool" not in options
    assert options.get("prepare_threshold") is None


def test_a_refusal_does_not_repeat_a_password() -> None:
    for url in ("mysql://root:hunter2@host/site", "postgresql://root:hunter2/x@host/site"):
        with pytest.raises(ImproperlyConfigured) as error:
            env.database(url)
        assert "hunter2" not in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None
