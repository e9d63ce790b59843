"""Log lines: each names what it belongs to, is one line or one object, and holds no content."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as site
from django.db import OperationalError
from django.test import AsyncClient, Client, RequestFactory

from agentweb.edge.request import Request
from agentweb.observability.logs import JsonFormatter, LineFormatter
from agentweb.serving import heartbeat
from conversations.telemetry import event_loop_lag
from conversations.telemetry.ids import add_log_ids, list_log_ids, use_log_ids
from conversations.web.setup import read_setup_token
from tests.support import people_and_turns

ID = r"[0-9a-f]{16}"


def record(message: str, *args: object, **extra: Any) -> logging.LogRecord:
    return logging.LogRecord("agentweb.tried", logging.INFO, "x.py", 1, message, args, **extra)


def failing() -> Any:
    try:
        int("wrong")
    except ValueError:
        return sys.exc_info()


def test_a_line_has_time_level_logger_ids_and_message() -> None:
    with use_log_ids(request="r1", user=7, conversation=3, turn=5, call=9):
        line = LineFormatter().format(record("turn %s", "done", exc_info=None))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 INFO agentweb\.tried"
        r" request=r1 user=7 conversation=3 turn=5 call=9 turn done",
        line,
    )


def test_an_object_has_the_same_and_its_traceback() -> None:
    with use_log_ids(user=7):
        text = JsonFormatter().format(record('said "%s"\n', "ü\u2028", exc_info=failing()))
    assert "\n" not in text
    found = json.loads(text)
    assert found["message"] == 'said "ü\u2028"\n'
    assert (found["level"], found["logger"], found["user"]) == ("INFO", "agentweb.tried", 7)
    assert "ValueError: invalid literal" in found["trace"]
    assert "turn" not in found


def test_fields_stand_behind_the_message_and_as_keys() -> None:
    said = record("reduction", exc_info=None)
    said.fields = {"kind": "trim", "figure": 7, "by_hand": False, "setting": "", "call": None}
    assert LineFormatter().format(said).endswith(" reduction kind=trim figure=7 by_hand=False")
    found = json.loads(JsonFormatter().format(said))
    assert (found["kind"], found["figure"], found["by_hand"]) == ("trim", 7, False)
    assert {"setting", "call"}.isdisjoint(found)


def test_a_message_cannot_begin_another_line() -> None:
    line = LineFormatter().format(record("a\nERROR forged\x1b[2J\u2028b", exc_info=None))
    assert line.count("\n") == 0
    assert r"a\nERROR forged\x1b[2J\u2028b" in line
    assert LineFormatter().format(record("failed", exc_info=failing())).endswith("'wrong'")


def test_the_words_of_an_error_cannot_look_like_a_line() -> None:
    error = ValueError("a\n2026-01-01T00:00:00 ERROR forged\r\x1b[2J")
    line = LineFormatter().format(record("failed", exc_info=(ValueError, error, None)))
    first, *rest = line.split("\n")
    assert first.endswith(" failed")
    assert rest[-1] == r"  2026-01-01T00:00:00 ERROR forged\r\x1b[2J"
    assert all(one.startswith("  ") for one in rest)


def test_ids_end_with_their_block_and_unknown_ones_are_refused() -> None:
    with use_log_ids(turn=1):
        with use_log_ids(turn=2, call=3):
            assert list_log_ids() == {"turn": 2, "call": 3}
        assert list_log_ids() == {"turn": 1}
        add_log_ids(call=4)
        add_log_ids(call=None)
        assert list_log_ids() == {"turn": 1}
    assert list_log_ids() == {}
    with pytest.raises(TypeError, match="text"), use_log_ids(text="a prompt"):  # type: ignore[call-arg]
        pass


@pytest.mark.asyncio
async def test_ids_follow_into_threads_and_tasks_and_stay_apart() -> None:
    async def one(turn: int) -> dict[str, Any]:
        with use_log_ids(turn=turn):
            await asyncio.sleep(0)
            return await asyncio.create_task(asyncio.to_thread(list_log_ids))

    assert await asyncio.gather(one(1), one(2)) == [{"turn": 1}, {"turn": 2}]
    assert await sync_to_async(list_log_ids)() == {}


@pytest.mark.django_db
def test_every_answer_names_its_request() -> None:
    for path, status in (("/accounts/login/", 200), ("/nothing/", 404), ("/", 302)):
        answer = Client().get(path)
        assert answer.status_code == status
        assert re.fullmatch(ID, answer["X-Request-ID"])


@pytest.mark.django_db
@pytest.mark.asyncio
async def test_it_is_the_same_in_the_server() -> None:
    answer = await AsyncClient().get("/accounts/login/")
    assert re.fullmatch(ID, answer["X-Request-ID"])
    assert list_log_ids() == {}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "is_kept"),
    [("proxy-7f3a.2:1", True), ("short", False), ("a" * 65, False), ("spaces are not", False),
     ("<script>alert(1)</script>", False), ("línea-extraña", False)],
)  # fmt: skip
def test_an_id_is_taken_from_a_proxy_alone(given: str, is_kept: bool, settings: Any) -> None:
    header = {"x-request-id": given}
    assert Client().get("/healthz/live", headers=header)["X-Request-ID"] != given
    settings.HTTPS = True
    assert (Client().get("/healthz/live", headers=header)["X-Request-ID"] == given) is is_kept


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.handler.setFormatter(LineFormatter())
    caplog.set_level(logging.INFO, "agentweb.requests")
    return caplog


@pytest.mark.django_db
def test_a_request_can_be_a_line_by_its_route(
    lines: pytest.LogCaptureFixture, settings: Any
) -> None:
    person = people_and_turns.person()
    client = Client()
    client.force_login(person)
    client.get("/setup/a-secret-token/?q=words")
    assert lines.text == ""
    settings.LOG_REQUESTS = True
    answer = client.get("/setup/a-secret-token/?q=words")
    wanted = rf"INFO agentweb\.requests request={answer['X-Request-ID']} user={person.pk} GET setup"
    assert re.search(wanted + rf" {answer.status_code} in \d+ ms", lines.text)
    assert "secret" not in lines.text
    assert "words" not in lines.text


def broken(error: Exception) -> Any:
    def view(*_: Any, **__: Any) -> None:
        raise error

    return view


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("hunter2"), 500), (OperationalError("hunter2"), 503)]
)
def test_the_page_of_an_error_names_the_request_and_its_line_does(
    error: Exception,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.handler.setFormatter(LineFormatter())
    person = people_and_turns.person()
    client = Client(raise_request_exception=False)
    client.force_login(person)
    monkeypatch.setattr("conversations.web.chat.find_newest", broken(error))
    answer = client.get("/")
    assert answer.status_code == status
    assert answer["X-Request-ID"] in answer.content.decode()
    assert b"hunter2" not in answer.content
    assert (answer.headers.get("Retry-After") == "5") is (status == 503)
    assert f"request={answer['X-Request-ID']} user={person.pk}" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("formatter", [LineFormatter, JsonFormatter])
def test_django_s_lines_about_a_request_name_its_route_and_not_its_path(
    formatter: type[logging.Formatter],
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A path may be a secret: who reads the log would make the first administrator."""
    settings.DATA_DIR = tmp_path
    caplog.handler.setFormatter(formatter())
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    token = read_setup_token()
    assert client.post(f"/setup/{token}/").status_code == 403
    monkeypatch.setattr("conversations.web.setup.has_administrator", broken(RuntimeError("gone")))
    assert client.get(f"/setup/{token}/").status_code == 500
    assert "Forbidden (CSRF cookie not set.): setup" in caplog.text
    assert "Internal Server Error: setup" in caplog.text
    assert str(token) not in caplog.text


@pytest.mark.parametrize("formatter", [LineFormatter, JsonFormatter])
def test_a_line_about_a_request_may_have_a_percent_sign(
    formatter: type[logging.Formatter], rf: RequestFactory
) -> None:
    line = record("Invalid HTTP_HOST header: 'a%b'.", exc_info=None)
    line.request = rf.get("/")
    assert "header: 'a%b'." in formatter().format(line)


def test_the_server_s_lines_about_a_request_do_not_name_its_url() -> None:
    late: Any = Request.__new__(Request)
    late.method, late.uri, late.clientproto = b"GET", b"/setup/a-secret-token/", b"HTTP/1.1"
    assert "secret" not in repr(late)


def test_the_formats_are_those_of_the_settings() -> None:
    formatters = site.LOGGING["formatters"]
    assert set(formatters) == {"line", "json"}
    assert site.LOGGING["handlers"]["console"]["formatter"] == "line"


@pytest.mark.asyncio
async def test_a_loop_that_comes_round_is_told_from_one_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_loop_lag, "BEAT_SECONDS", 0.0)
    monkeypatch.setattr(event_loop_lag, "BUSY_SECONDS", 600.0)
    pulse = event_loop_lag.Pulse()
    assert pulse.is_beating
    pulse.start()
    await asyncio.sleep(0.01)
    assert pulse.is_beating
    assert not pulse.is_busy
    monkeypatch.setattr(event_loop_lag, "BUSY_SECONDS", 0.0)
    assert pulse.is_busy
    monkeypatch.setattr(event_loop_lag, "HANG_SECONDS", 0.0)
    assert not pulse.is_beating
    pulse.stop()
    assert pulse.is_beating
    assert not pulse.is_busy


def test_that_no_sign_can_be_written_is_logged_once_beside_a_redis_that_answers(
    settings: Any, redis_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALIVE_DIR, settings.REDIS_URL = str(tmp_path / "nowhere"), redis_url
    signs = heartbeat.Signs("worker")
    for _ in range(3):
        signs.give()
    assert [record.getMessage() for record in caplog.records] == [
        "no sign of life could be given: FileNotFoundError"
    ]
    (tmp_path / "nowhere").write_text("a file")
    signs.end()
    assert heartbeat.list_signs() == []
