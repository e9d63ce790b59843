"""OpenTelemetry, if `OTEL_EXPORTER_OTLP_ENDPOINT` is set and the extra is installed.

The headers of a task carry the trace and the request's id into the worker.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from conversations.telemetry import spans
from conversations.telemetry.ids import list_log_ids, use_log_ids

_REQUEST = "agentweb_request"


def is_wanted() -> bool:
    return bool(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"))


def switch_on(exporter: Any = None) -> Any:
    """Trace to the exporter, by default to the OTLP endpoint; raises ImportError without the extra.

    Returns the provider, whose `shutdown` sends what is left.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME", "agentweb")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    else:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.switch_on(provider.get_tracer("agentweb"))
    return provider


def follow_tasks() -> None:
    """Pass ids and trace context on to tasks that are sent, and restore them where these run."""
    from celery import signals

    signals.before_task_publish.connect(_send_on, dispatch_uid="agentweb-trace")
    signals.task_prerun.connect(_take_up, dispatch_uid="agentweb-trace")
    signals.task_postrun.connect(_put_down, dispatch_uid="agentweb-trace")


def _send_on(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None:
        headers.update(spans.write_trace_headers())
        if (request := list_log_ids().get("request")) is not None:
            headers[_REQUEST] = request


def _take_up(task: Any = None, **_: Any) -> None:
    stack = ExitStack()
    brought = {name: value for name, value in _headers(task).items() if isinstance(value, str)}
    stack.enter_context(use_log_ids(request=brought.get(_REQUEST)))
    stack.enter_context(spans.continue_trace(brought))
    task.request.agentweb_stack = stack


def _put_down(task: Any = None, **_: Any) -> None:
    stack: ExitStack | None = getattr(task.request, "agentweb_stack", None)
    if stack is not None:
        stack.close()


def _headers(task: Any) -> dict[str, Any]:
    # Where the protocol puts them depends on whether the message came through a broker.
    found = dict(getattr(task.request, "headers", None) or {})
    for name in (_REQUEST, "traceparent", "tracestate"):
        if (value := getattr(task.request, name, None)) is not None:
            found[name] = value
    return found
