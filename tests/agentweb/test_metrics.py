"""Metrics: hidden unless asked for, counted where the facts are, with labels of closed sets."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.core.management import CommandError
from django.db import OperationalError, transaction
from django.test import Client

from agentweb.observability.metrics_page import gather_figures, serve_figures
from conversations.agent.ports import Finish
from conversations.models import ApiResult, ToolCall
from conversations.telemetry import metrics
from conversations.turns.metrics import count_tool
from conversations.turns.takeovers import take_over_turn
from conversations.turns.turns import finish_turn
from tests.support import people_and_turns, servers, stored_turns

TOKEN = "a token for the figures"


@pytest.fixture
def counted() -> Iterator[None]:
    metrics.switch_on()
    yield
    metrics.switch_off()


def value(name: str, **labels: str) -> float:
    """Read one figure as a collector would."""
    text = metrics.render_exposition()[0].decode()
    wanted = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if not found or found[1] != f"agentweb_{name}":
            continue
        if ",".join(sorted((found[2] or "").split(","))) == wanted:
            return float(found[3])
    return 0.0


@pytest.mark.django_db
def test_there_is_no_such_page_unless_it_is_switched_on(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    header = {"authorization": f"Bearer {TOKEN}"}
    assert Client().get("/metrics", headers=header).status_code == 404


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("header", "status"),
    [(f"Bearer {TOKEN}", 200), ("", 404), ("Bearer ", 404), (f"Bearer {TOKEN}x", 404),
     (f"Basic {TOKEN}", 404), (f"Bearer {TOKEN[:-1]}", 404), ("Bearer ü", 404)],
)  # fmt: skip
def test_with_a_token_only_its_bearer_sees_them(header: str, status: int, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    answer = Client().get("/metrics", headers={"authorization": header})
    assert answer.status_code == status
    assert (b"agentweb_turns_waiting 0.0" in answer.content) is (status == 200)


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [("127.0.0.1", {"host": "localhost"}, 200), ("::1", {"host": "[::1]:8000"}, 200),
     ("10.0.0.9", {"host": "localhost"}, 404), ("", {"host": "localhost"}, 404),
     ("127.0.0.1", {"host": "testserver"}, 404),
     ("127.0.0.1", {"host": "localhost", "x-forwarded-proto": "https"}, 404),
     ("127.0.0.1", {"host": "localhost", "x-forwarded-for": "127.0.0.1"}, 404)],
)  # fmt: skip
def test_without_a_token_only_this_machine_sees_them(
    address: str, headers: dict[str, str], status: int
) -> None:
    assert Client(REMOTE_ADDR=address).get("/metrics", headers=headers).status_code == status


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
def test_a_collector_with_the_token_asks_a_process_by_whatever_address(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    header = {"authorization": f"Bearer {TOKEN}", "host": "10.42.0.7:8000"}
    assert Client().get("/metrics", headers=header).status_code == 200
    assert Client().get("/accounts/login/", headers=header).status_code == 400
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers=header).status_code == 400


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
def test_a_request_counts_under_the_name_of_its_route() -> None:
    client = Client()
    client.force_login(people_and_turns.person())
    client.get("/c/00000000-0000-4000-8000-000000000000/")
    client.get("/accounts/login/?next=<script>")
    client.get("/nothing/<script>/")
    client.generic("EVIL", "/accounts/login/")
    count = "request_seconds_count"
    assert value(count, route="chat", method="GET", status="404") == 1
    assert value(count, route="login", method="GET", status="302") == 1
    assert value(count, route="none", method="GET", status="404") == 1
    assert value(count, route="login", method="other", status="302") == 1
    assert b"<" not in metrics.render_exposition()[0]


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
def test_a_failed_log_in_counts_without_its_name() -> None:
    Client().post("/accounts/login/", {"username": "ada", "password": "hunter2"})
    assert value("log_ins_failed_total") == 1
    assert b"ada" not in metrics.render_exposition()[0]


@pytest.mark.usefixtures("counted")
def test_labels_do_not_grow_without_bound() -> None:
    for number in range(metrics.MOST_SETS + 50):
        metrics.REFUSALS.add(code=f"code{number}")
    text = metrics.render_exposition()[0].decode()
    assert text.count("agentweb_refusals_total{") == metrics.MOST_SETS + 1
    assert value("refusals_total", code=metrics.OTHER) == 50


def test_switched_off_they_count_nothing_and_load_nothing() -> None:
    metrics.REFUSALS.add(code="budget")
    metrics.CALL_SECONDS.observe(1, purpose="reply", model="x")
    with metrics.TURNS_LIVE.held(), metrics.LOOP_LAG.timed():
        assert not metrics.is_on()
    source = (
        "import sys; from conversations.telemetry import metrics, spans, ids;"
        " metrics.REFUSALS.add(code='x');"
        " assert not [n for n in sys.modules if n.startswith(('prometheus', 'opentelemetry'))]"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


@pytest.mark.usefixtures("counted")
def test_a_gauge_counts_back() -> None:
    with metrics.TURNS_LIVE.held():
        assert value("turns_live") == 1
    assert value("turns_live") == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counted")
def test_a_worker_serves_its_own_on_a_port(settings: Any) -> None:
    settings.METRICS_PORT, settings.METRICS_TOKEN = servers.free_port(), ""
    server = serve_figures()
    assert server is not None
    try:
        where = f"http://127.0.0.1:{settings.METRICS_PORT}"
        assert server.server_address[0] == "127.0.0.1"
        with urlopen(f"{where}/metrics", timeout=60) as answer:
            assert b"agentweb_turns_live" in answer.read()
        with pytest.raises(HTTPError, match="404"):
            urlopen(Request(f"{where}/metrics", headers={"Host": "evil.example"}), timeout=60)
        settings.METRICS_TOKEN = TOKEN
        for path, header in (("/metrics", ""), ("/metrics", "Bearer x"), ("/", f"Bearer {TOKEN}")):
            with pytest.raises(HTTPError, match="404"):
                urlopen(Request(where + path, headers={"Authorization": header}), timeout=60)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.usefixtures("counted")
def test_a_port_that_cannot_be_had_is_refused_by_its_setting(settings: Any) -> None:
    settings.METRICS_PORT, settings.METRICS_TOKEN = servers.free_port(), ""
    server = serve_figures()
    assert server is not None
    try:
        # A second worker of the machine, with the same settings.
        for port in (settings.METRICS_PORT, 70_000, -1):
            settings.METRICS_PORT = port
            with pytest.raises(CommandError, match=f"AGENTWEB_METRICS_PORT: .* port {port}: "):
                serve_figures()
    finally:
        server.shutdown()
        server.server_close()


def test_a_process_without_a_port_serves_none(settings: Any) -> None:
    settings.METRICS_PORT = servers.free_port()
    assert serve_figures() is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counted")
def test_what_is_stored_is_what_is_counted() -> None:
    played = stored_turns.played()
    model = played.conversation.model
    reply = {"purpose": "reply", "model": model}
    results = ApiResult.objects.filter(call__purpose="reply")
    assert value("calls_total", **reply, status="complete") == results.count() > 0
    for kind in ("input", "output", "cache_read", "cache_write"):
        stored = sum(getattr(row, f"{kind}_tokens") or 0 for row in results)
        assert value("tokens_total", **reply, kind=kind) == stored
    assert value("cost_micros_total", **reply) == sum(row.cost_micros for row in results)
    assert value("call_seconds_count", **reply) == results.count()
    tools = ToolCall.objects.filter(state="ok")
    text = metrics.render_exposition()[0].decode()
    counted = re.findall(r'agentweb_tool_calls_total\{state="ok",tool="\w+"\} (\S+)', text)
    assert sum(map(float, counted)) == tools.count() > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counted")
def test_a_turn_counts_once_with_how_it_ended() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    finish_turn(lease=lease, finish=Finish("failed", "", "budget", "The budget is used up."))
    assert value("turns_ended_total", state="failed", reason="budget") == 1
    taken = people_and_turns.started_turn(people_and_turns.person("bob"))
    take_over_turn(turn_id=taken.turn_id, everything=True)
    assert value("turns_ended_total", state="interrupted", reason="crash") == 1
    assert value("lease_takeovers_total", state="interrupted") == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counted")
def test_what_is_rolled_back_is_not_counted() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    with transaction.atomic():
        finish_turn(lease=lease, finish=Finish("done", "end_turn"))
        transaction.set_rollback(True)
    assert value("turns_ended_total", state="done", reason="end_turn") == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("name", "label"), [("recall", "recall"), ("mcp__x__y", "mcp"), ("made up", "unknown")]
)
def test_a_tool_counts_under_a_known_name(name: str, label: str) -> None:
    count_tool(name=name, state="error")
    assert value("tool_calls_total", tool=label, state="error") == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("counted")
def test_without_a_database_the_other_figures_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def down() -> None:
        raise OperationalError

    assert "agentweb_database_up 1.0" in gather_figures()[0].decode()
    monkeypatch.setattr("agentweb.observability.metrics_page.count_waiting_turns", down)
    assert "agentweb_database_up 0.0" in gather_figures()[0].decode()
