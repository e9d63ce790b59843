"""The format of log lines: text or JSON, with the ids of the request, user and turn.

The `fields` of a record (a dict, given as `extra`) follow its message, or become keys.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from django.http import HttpRequest

from conversations.telemetry.ids import list_log_ids

#: Characters that would begin another line or control a terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def name_route(request: HttpRequest) -> str:
    """Return the name of the route that a request took; its path may contain a secret."""
    match = request.resolver_match
    return (match.view_name or "unnamed") if match is not None else "none"


class _Formatter(logging.Formatter):
    def format_message(self, record: logging.LogRecord) -> str:
        """Return the message; Django's lines about a request name its route instead of its path."""
        request = getattr(record, "request", None)
        if isinstance(request, HttpRequest) and record.args and isinstance(record.args, tuple):
            # As Django writes it into its lines.
            path = request.path.encode("unicode_escape").decode("ascii")
            shown = tuple(name_route(request) if one == path else one for one in record.args)
            return str(record.msg) % shown
        return record.getMessage()

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def trace(self, record: logging.LogRecord) -> str:
        found = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            found.append(self.formatStack(record.stack_info))
        return "\n".join(found)


class LineFormatter(_Formatter):
    """`time LEVEL logger name=id ... message`, and a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        ids = [f"{name}={value}" for name, value in list_log_ids().items()]
        more = [f"{name}={value}" for name, value in _read_fields(record).items()]
        message = _plain(" ".join([self.format_message(record), *more]))
        words = self.formatTime(record), record.levelname, record.name, *ids, message
        # Indented: the text of an error may look like one of our lines.
        trace = [f"  {_plain(line)}" for line in self.trace(record).split("\n") if line]
        return "\n".join((" ".join(words), *trace))


def _read_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of a record that have a value."""
    fields = getattr(record, "fields", {})
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _plain(text: str) -> str:
    return _CONTROL.sub(lambda one: repr(one[0])[1:-1], text)


class JsonFormatter(_Formatter):
    """One JSON object a line: time, level, logger, message, ids, and `trace` for a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.format_message(record),
            **_read_fields(record),
            **list_log_ids(),
        }
        if trace := self.trace(record):
            fields["trace"] = trace
        return json.dumps(fields, ensure_ascii=True, default=str)
