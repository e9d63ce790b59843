"""Traces: spans of requests, turns, calls and tools, one trace through the broker, no content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import signals
from celery.app.trace import build_tracer
from django.test import Client
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentweb.celery import app
from agentweb.observability import tracing
from conversations.telemetry import spans
from conversations.telemetry.ids import list_log_ids, use_log_ids
from tests.support import people_and_turns

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def seen() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = tracing.switch_on(exporter)
    yield exporter
    spans.switch_on(None)
    provider.shutdown()


@pytest.mark.django_db
def test_a_request_is_a_span_by_its_route(seen: InMemorySpanExporter, settings: Any) -> None:
    client = Client()
    client.force_login(people_and_turns.person())
    header = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    answer = client.get("/accounts/login/?next=hunter2", headers=header)
    [span] = seen.get_finished_spans()
    assert dict(span.attributes or {}) == {
        "agentweb.request": answer["X-Request-ID"], "http.route": "login",
        "http.request.method": "GET", "http.response.status_code": 302,
    }  # fmt: skip
    assert f"{span.context.trace_id:032x}" != TRACE
    settings.HTTPS = True
    client.get("/accounts/login/", headers=header)
    assert f"{seen.get_finished_spans()[-1].context.trace_id:032x}" == TRACE


def test_a_failure_is_named_by_its_type_alone(seen: InMemorySpanExporter) -> None:
    def fail() -> None:
        with use_log_ids(turn=5), spans.trace_span("tool call", tool="recall"):
            raise ValueError("what somebody wrote")

    with pytest.raises(ValueError, match="somebody"):
        fail()
    [span] = seen.get_finished_spans()
    assert dict(span.attributes or {}) == {
        "agentweb.turn": 5, "agentweb.tool": "recall", "error.type": "ValueError"
    }  # fmt: skip
    assert not span.events
    assert not span.status.is_ok
    assert "somebody" not in span.to_json()


def test_a_span_of_two_ends_belongs_to_the_one_around_it(seen: InMemorySpanExporter) -> None:
    with spans.trace_span("turn") as turn:
        call = spans.begin_span("model call", purpose="reply", model="claude-sonnet-5-5")
        spans.end_span(call, error="overloaded", status="error")
    inner, outer = seen.get_finished_spans()
    assert (inner.name, outer.name) == ("model call", "turn")
    assert inner.parent is not None
    assert inner.parent.span_id == turn.get_span_context().span_id
    assert (inner.attributes or {})["error.type"] == "overloaded"


@pytest.mark.usefixtures("seen")
def test_a_trace_goes_with_a_task_into_its_worker() -> None:
    brought: list[Any] = []

    @app.task(name="tests.traced", ignore_result=True)
    def traced() -> None:
        with spans.trace_span("turn") as span:
            brought.append((list_log_ids(), span.get_span_context().trace_id))

    sent: list[dict[str, Any]] = []

    def keep(headers: dict[str, Any], **_: Any) -> None:
        sent.append(headers)

    signals.after_task_publish.connect(keep)
    try:
        with use_log_ids(request="r-12345678"), spans.trace_span("request") as span:
            traced.apply_async()
            wanted = span.get_span_context().trace_id
    finally:
        signals.after_task_publish.disconnect(keep)
    # As a worker calls it: what came with the message is the request of the task.
    run = build_tracer(traced.name, traced, app=app)
    run(sent[0]["id"], (), {}, request=sent[0])
    assert brought == [({"request": "r-12345678"}, wanted)]
    assert list_log_ids() == {}


def test_switched_off_nothing_is_traced_or_sent() -> None:
    with spans.trace_span("turn") as span, spans.continue_trace({"traceparent": TRACE}):
        assert span is None
        assert spans.begin_span("model call") is None
        assert spans.write_trace_headers() == {}
        spans.end_span(None, status="complete")


def test_an_endpoint_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert not tracing.is_wanted()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert tracing.is_wanted()
    provider = tracing.switch_on()
    assert spans.is_on()
    spans.switch_on(None)
    provider.shutdown()
