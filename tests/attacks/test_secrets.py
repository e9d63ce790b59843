"""Random secrets in every place they are configured or stored, and found nowhere else."""

from __future__ import annotations

import io
import json
import logging
import secrets
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings as site
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client, RequestFactory
from django.views.debug import ExceptionReporter

from conversations.agent.events import MeterMoved, QueueChanged, TurnChanged
from conversations.claude.client import Claude, Deadlines
from conversations.live import render
from conversations.models import ApiCall, Envelope, MailAccount, McpServer
from conversations.runtime.mcp_servers import pool_synchronizer
from conversations.toolbox.secrets import seal, unseal
from conversations.transcript.paging import parse_bookmark as told_of
from tests.attacks.sites import World, address, quiet_world, views, visitor

pytestmark = pytest.mark.django_db


@dataclass(frozen=True, slots=True)
class Secrets:
    """One of each kind, random, so that no other text can have it by chance."""

    values: dict[str, str]

    def found(self, text: str | bytes) -> list[str]:
        told = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        return [name for name, value in self.values.items() if value.encode() in told]


@pytest.fixture
def planted(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Secrets:
    names = ("api", "database", "redis", "mail", "mcp header", "mcp environment")
    made = {name: f"cnry{secrets.token_hex(12)}" for name in names}
    settings.ANTHROPIC_API_KEY = made["api"]
    settings.REDIS_URL = ""
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", made["database"])
    return Secrets(made | {"site": site.SECRET_KEY})


@pytest.fixture
def ada(planted: Secrets) -> World:
    found = quiet_world()
    MailAccount.objects.create(
        owner=found.user, name="mail", imap_host="imap.example.org", login="ada",
        sealed_secret=seal(planted.values["mail"]),
    )  # fmt: skip
    McpServer.objects.create(
        name="remote", transport="http", url="https://mcp.example.org/",
        sealed_headers=seal(json.dumps({"Authorization": planted.values["mcp header"]})),
    )  # fmt: skip
    McpServer.objects.create(
        name="local", transport="stdio", command="/bin/false",
        sealed_environment=seal(json.dumps({"TOKEN": planted.values["mcp environment"]})),
    )  # fmt: skip
    return found


def answers(client: Client, ada: World, *, is_staff: bool) -> Iterator[tuple[str, bytes]]:
    for view in views():
        # Only a superuser sees more of the admin than its log-in page.
        if view.name == "logout" or (view.is_admin and not is_staff):
            continue
        path = address(view, ada)
        response = client.get(path)
        body = b"".join(response) if response.streaming else response.content
        if response.get("Content-Type") == "application/zip":
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                body = b"".join(archive.read(name) for name in archive.namelist())
        yield path, body + str(dict(response.headers)).encode() + str(response.cookies).encode()


def test_the_secrets_are_there_and_open_for_who_needs_them(ada: World, planted: Secrets) -> None:
    assert unseal(MailAccount.objects.get().sealed_secret) == planted.values["mail"]
    assert planted.found(str(list(MailAccount.objects.values()))) == []
    assert planted.found(str(list(McpServer.objects.values()))) == []
    assert planted.found(planted.values["api"]) == ["api"]


@pytest.mark.parametrize("kind", ["owner", "superuser"])
def test_no_page_file_header_or_log_line_has_a_secret(
    kind: str, ada: World, planted: Secrets, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client, seen = Client(), 0
    client.force_login(ada.user if kind == "owner" else visitor("superuser"))
    for path, told in answers(client, ada, is_staff=kind == "superuser"):
        assert planted.found(told) == [], path
        seen += 1
    assert seen > 80
    assert planted.found(caplog.text) == []


def test_no_frame_of_a_socket_has_one(ada: World, planted: Secrets) -> None:
    place = ada.conversation.pk
    told = render.render_snapshot(place, told_of(b""), None)[0]
    told += "".join(render.render_events(place, each) for each in
                    (MeterMoved(), QueueChanged(), TurnChanged(1)))  # fmt: skip
    assert len(told) > 500
    assert planted.found(told) == []


def test_what_is_sent_and_stored_of_a_call_has_none(ada: World, planted: Secrets) -> None:
    stored = str(list(Envelope.objects.values())) + str(list(ApiCall.objects.values()))
    assert "claude" in stored
    assert planted.found(stored) == []


def report() -> str:
    """Give the report of a failure as Django writes it for developers."""
    try:
        int("broken")
    except ValueError:
        reporter = ExceptionReporter(RequestFactory().get("/"), *sys.exc_info())
    return str(reporter.get_traceback_html()) + str(reporter.get_traceback_text())


def test_no_failure_page_tells_one_even_in_a_report_to_developers(
    ada: World, planted: Secrets
) -> None:
    told = report()
    assert "ANTHROPIC_API_KEY" in told
    assert planted.found(told) == []


def test_nothing_that_holds_one_shows_it_in_words(ada: World, planted: Secrets) -> None:
    claude = Claude(
        api_key=planted.values["api"], base_url="http://127.0.0.1:1", deadlines=Deadlines(1, 1, 1)
    )
    held = [claude, pool_synchronizer, *MailAccount.objects.all(), *McpServer.objects.all()]
    assert planted.found("".join(f"{each!r}{each!s}" for each in held)) == []


COMMANDS = (
    ("check", "--deploy"), ("verify",), ("ledger",), ("prices",), ("budgets",), ("showmigrations",),
    ("prices", "list"), ("budgets", "show"), ("reindex",),
)  # fmt: skip


def test_no_command_prints_one(
    ada: World,
    planted: Secrets,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = ""
    for name, *arguments in COMMANDS:
        out = io.StringIO()
        try:
            call_command(name, *arguments, stdout=out, stderr=out)
        except (CommandError, SystemExit) as error:
            said += str(error)
        said += out.getvalue()
    written = capfd.readouterr()
    said += written.out + written.err + caplog.text
    assert len(said) > 200
    assert planted.found(said) == []
