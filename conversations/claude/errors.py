"""Map failures of a call to the closed set of `ModelFailed`: codes, texts, and when to retry.

The API's error type decides; without one (a proxy's page), the HTTP status; and a part of the
message only where the API has no code for a case.

The circuit breaker works for all users of a process: after several failures of the API in a row,
further calls only add to its load and to everybody's wait.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from conversations.agent.ports import ModelFailed
from conversations.context.translation import gettext_noop, mark_recorded

#: Longest `retry-after` that is accepted, in seconds.
MOST_WAIT = 1e7
#: Our code and whether a retry may help, by the API's error type.
_TYPES: dict[str, tuple[str, bool]] = {
    "overloaded_error": ("overloaded", True),
    "rate_limit_error": ("rate_limited", True),
    "api_error": ("upstream", True),
    "timeout_error": ("upstream", True),
    "conflict_error": ("upstream", True),
    "authentication_error": ("authentication", False),
    "permission_error": ("permission", False),
    "billing_error": ("billing", False),
    "not_found_error": ("not_found", False),
    "invalid_request_error": ("invalid_request", False),
    "request_too_large": ("overflow", False),
}
_STATUSES: dict[int, tuple[str, bool]] = {
    401: ("authentication", False),
    402: ("billing", False),
    403: ("permission", False),
    404: ("not_found", False),
    408: ("upstream", True),
    409: ("upstream", True),
    413: ("overflow", False),
    429: ("rate_limited", True),
    529: ("overloaded", True),
}
#: Our code for cases without a code of the API, by a part of its message.
_SENTENCES = {
    "prompt is too long": "overflow",
    "exceed context limit": "overflow",
    # The API key or the model has changed since the block was signed.
    "Invalid `signature` in `thinking` block": "signature",
    "blocks in the latest assistant message cannot be modified": "signature",
    "reached your specified API usage limits": "billing",
    "credit balance is too low": "billing",
}
#: Beginnings of messages about a part of the request's messages, for which the API has no code.
_PART = re.compile(r"messages\.\d|file\b", re.IGNORECASE)
#: Error codes for a compaction block that the API does not accept back.
_BLOCKS = frozenset(
    {
        "compaction_block_misplaced",
        "compaction_signature_invalid",
        "compaction_content_mismatch",
        "compaction_block_ambiguous",
    }
)
_WORDS = {
    "overloaded": gettext_noop("The model is overloaded."),
    "rate_limited": gettext_noop("The rate limit of the API is reached."),
    "upstream": gettext_noop("The API failed."),
    "unreachable": gettext_noop("The API cannot be reached."),
    "timeout": gettext_noop("The API did not answer in time."),
    "cut": gettext_noop("The connection to the API was cut."),
    "protocol_error": gettext_noop("The API sent something that is no answer."),
    "overflow": gettext_noop("The request is too long for the model."),
    "invalid_request": gettext_noop("The API refused the request; an administrator can read why."),
    "signature": gettext_noop("The API does not accept what it signed earlier in this chat."),
    "authentication": gettext_noop("The API key is not accepted; an administrator must check it."),
    "permission": gettext_noop("The API key may not do this; an administrator must check it."),
    "billing": gettext_noop("The API account cannot pay; an administrator must check it."),
    "not_found": gettext_noop(
        "The API does not know this model; an administrator must check AGENTWEB_MODEL."
    ),
}
for _each in _WORDS.values():
    mark_recorded(_each)
_PAUSE = mark_recorded(gettext_noop("Calls pause for everybody; try again in %(wait)s."))
#: Failures that mean the API is down for every caller.
_DOWN = frozenset({"overloaded", "upstream", "unreachable", "timeout", "cut"})
#: Number of consecutive failures, and the seconds within which they pause all calls.
MOST_FAILURES, WITHIN = 8, 60.0
#: Seconds of the first pause in a row, the second and so on; the last value repeats.
PAUSES = (5.0, 10.0, 20.0, 40.0, 60.0)


class Breaker:
    """A circuit breaker: pauses calls of an account that cannot pay, or while the API is down.

    After the pause one call probes; until it is answered the others still fail at once. `opened` is
    called at the start of each pause with its cause and its seconds.
    """

    def __init__(
        self, now: Callable[[], float], opened: Callable[[ModelFailed, float], None]
    ) -> None:
        self._now, self._opened = now, opened
        self._failures: deque[float] = deque(maxlen=MOST_FAILURES)
        self._cause: ModelFailed | None = None
        self._until = 0.0
        self._pauses = 0
        self._is_probed = False

    @contextmanager
    def call(self) -> Iterator[Callable[[], None]]:
        """Make a call, or raise ModelFailed at once; yields a function to call once it answers."""
        is_probe = self._admit()
        is_answered = False

        def answered() -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self._close()

        try:
            yield answered
        except ModelFailed as failure:
            if not is_answered:
                self._count_failure(failure, is_probe=is_probe)
            raise
        finally:
            if is_probe:
                self._is_probed = False

    def _admit(self) -> bool:
        """Return whether the call is a probe; raises ModelFailed while calls are paused."""
        if self._cause is None:
            return False
        wait = max(0.0, self._until - self._now())
        if wait or self._is_probed:
            text = _WORDS[self._cause.code]
            seconds = "1 second" if wait < 1.5 else f"{round(wait)} seconds"
            raise ModelFailed(self._cause.code, " ".join((text, _PAUSE % {"wait": seconds})))
        self._is_probed = True
        return True

    def _count_failure(self, failure: ModelFailed, *, is_probe: bool) -> None:
        if failure.code == "billing":
            self._open(failure, PAUSES[-1])
        elif failure.code not in _DOWN:
            # A refused request shows that the API works.
            self._close()
        elif is_probe:
            self._open(failure, PAUSES[min(self._pauses, len(PAUSES) - 1)])
        elif self._cause is None:
            self._failures.append(self._now())
            is_full = len(self._failures) == MOST_FAILURES
            if is_full and self._now() - self._failures[0] <= WITHIN:
                self._open(failure, PAUSES[0])

    def _open(self, cause: ModelFailed, seconds: float) -> None:
        self._cause, self._until = cause, self._now() + seconds
        self._pauses += 1
        self._opened(cause, seconds)

    def _close(self) -> None:
        self._failures.clear()
        self._cause, self._pauses = None, 0


def build_failure(code: str, *, may_retry: bool, detail: str = "", **facts: Any) -> ModelFailed:
    """Build a failure with the text for its code; `detail` is the API's message for the record."""
    return ModelFailed(code, _WORDS[code], may_retry=may_retry, api_text=detail, **facts)


def classify_error(status: int, type: str, error_code: str, message: str) -> tuple[str, bool]:
    """Return our code for an error response, and whether a retry may help."""
    if status < 400:
        return "protocol_error", False
    found = _TYPES.get(type) or _STATUSES.get(status)
    if found is None:
        found = ("upstream", True) if status >= 500 else ("invalid_request", False)
    if error_code in _BLOCKS:
        return "signature", False
    if found[0] == "invalid_request":
        api_text = (code for sentence, code in _SENTENCES.items() if sentence in message)
        return next(api_text, "invalid_request"), False
    if type == "not_found_error" and _PART.match(message):
        # A file of another account, or a deleted one: any model would refuse the request.
        return "invalid_request", False
    if found[0] == "rate_limited" and error_code == "enforced_spend_limit_reached":
        return "billing", False
    return found


def classify_stream_error(error: object) -> tuple[str, bool]:
    """Return our code for an `error` event in mid-stream, and whether a retry may help."""
    kind = str(error.get("type")) if isinstance(error, dict) else ""
    return _TYPES.get(kind, ("upstream", True))


def read_stream_error(error: object) -> str:
    """Return the message of an `error` event in mid-stream; "" without one."""
    words = error.get("message") if isinstance(error, dict) else ""
    return words if isinstance(words, str) else ""


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from milliseconds, seconds or a date; None when not given."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        text = headers.get(name, "")
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _seconds_until(text)
        if seconds >= 0:
            return min(seconds, MOST_WAIT)
    return None


def _seconds_until(date: str) -> float:
    """Return the seconds from now to an HTTP date, 0 once it has passed, -1 if malformed."""
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return -1
    zoned = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
