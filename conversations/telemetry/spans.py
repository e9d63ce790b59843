"""Spans for OpenTelemetry: request, turn, model call, tool call, reduction.

A no-op until a tracer is set. Attributes are ids, names from closed sets and figures. Of an
exception only the type is recorded, because its message may contain content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conversations.telemetry.ids import list_log_ids

_tracer: Any = None


def switch_on(tracer: Any) -> None:
    """Start tracing, or stop it with None."""
    global _tracer  # noqa: PLW0603
    _tracer = tracer


def is_on() -> bool:
    return _tracer is not None


@contextmanager
def trace_span(name: str, **attributes: str | int | bool) -> Iterator[Any]:
    """Trace a block; yields the span, or None."""
    if _tracer is None:
        yield None
        return
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with _tracer.start_as_current_span(
        name, attributes=_build_attributes(attributes), **quiet
    ) as one:
        try:
            yield one
        except BaseException as error:
            mark_span_failed(one, type(error).__name__)
            raise


def begin_span(name: str, **attributes: str | int | bool) -> Any:
    """Start a span that `end_span` ends elsewhere in the same task."""
    return (
        None
        if _tracer is None
        else _tracer.start_span(name, attributes=_build_attributes(attributes))
    )


def end_span(one: Any, *, error: str = "", **attributes: str | int | bool) -> None:
    if one is not None:
        one.set_attributes(_prefix_names(attributes))
        if error:
            mark_span_failed(one, error)
        one.end()


def mark_span_failed(one: Any, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    one.set_attribute("error.type", kind)
    one.set_status(Status(StatusCode.ERROR))


def _build_attributes(attributes: Mapping[str, str | int | bool]) -> dict[str, Any]:
    return _prefix_names({**list_log_ids(), **attributes})


def _prefix_names(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {f"agentweb.{name}": value for name, value in attributes.items()}


def write_trace_headers() -> dict[str, str]:
    """Return the headers that carry this trace to another process."""
    if _tracer is None:
        return {}
    from opentelemetry import propagate

    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


@contextmanager
def continue_trace(headers: Mapping[str, str]) -> Iterator[None]:
    """Continue the trace of such headers within a block."""
    if _tracer is None:
        yield
        return
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)
