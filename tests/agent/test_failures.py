from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from conversations.agent.finish import finish_failure, finish_stop
from conversations.agent.ports import Refused
from conversations.claude.errors import (
    MOST_WAIT,
    classify_error,
    classify_stream_error,
    read_retry_after,
)
from conversations.claude.errors import build_failure as meant


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", MOST_WAIT),
        ("1e99", MOST_WAIT),
        ("9" * 400, MOST_WAIT),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        (f"Wed, 21 Oct {10**20} 07:28:00 GMT", None),
    ],
)
def test_a_wait_is_read_in_every_form_or_not_at_all(text: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": text}) == seconds


def test_a_date_is_a_wait_until_then() -> None:
    then = datetime.now(UTC) + timedelta(seconds=40)
    seconds = read_retry_after({"retry-after": format_datetime(then, usegmt=True)})
    assert seconds is not None
    assert 35 < seconds <= 40


def test_milliseconds_are_more_exact_and_win() -> None:
    assert read_retry_after({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert read_retry_after({"retry-after-ms": "x", "retry-after": "1"}) == 1.0


def test_no_header_is_no_wait() -> None:
    assert read_retry_after({}) is None


@pytest.mark.parametrize(
    ("status", "kind", "code", "may_retry"),
    [
        (400, "invalid_request_error", "invalid_request", False),
        (400, "", "invalid_request", False),
        (401, "authentication_error", "authentication", False),
        (401, "", "authentication", False),
        (402, "billing_error", "billing", False),
        (402, "", "billing", False),
        (403, "permission_error", "permission", False),
        (403, "", "permission", False),
        (404, "not_found_error", "not_found", False),
        (404, "", "not_found", False),
        (408, "", "upstream", True),
        (409, "conflict_error", "upstream", True),
        (409, "", "upstream", True),
        (413, "request_too_large", "overflow", False),
        (413, "", "overflow", False),
        (418, "", "invalid_request", False),
        (429, "rate_limit_error", "rate_limited", True),
        (429, "", "rate_limited", True),
        (500, "api_error", "upstream", True),
        (502, "", "upstream", True),
        (503, "novel_error", "upstream", True),
        (504, "timeout_error", "upstream", True),
        (529, "overloaded_error", "overloaded", True),
        (529, "", "overloaded", True),
        (307, "", "protocol_error", False),
    ],
)
def test_every_refusal_has_one_meaning(status: int, kind: str, code: str, may_retry: bool) -> None:
    assert classify_error(status, kind, "", "") == (code, may_retry)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("prompt is too long: 217570 tokens > 200000 maximum", "overflow"),
        ("input length and `max_tokens` exceed context limit: 1 + 2 > 2", "overflow"),
        ("You have reached your specified API usage limits.", "billing"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "signature"),
        ("messages: text content blocks must be non-empty", "invalid_request"),
    ],
)
def test_what_has_no_code_is_told_by_its_sentence(message: str, code: str) -> None:
    assert classify_error(400, "invalid_request_error", "", message) == (code, False)


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        ("not_found_error", "model: claude-nobody", "not_found"),
        ("not_found_error", "Not Found", "not_found"),
        ("", "File not found", "not_found"),
        ("not_found_error", "File not found: file_011CNha8iCJcU1wXNR6q4V8w", "invalid_request"),
        ("not_found_error", "messages.0.content.1: file not found", "invalid_request"),
    ],
)
def test_a_missing_file_is_no_missing_model(kind: str, message: str, code: str) -> None:
    assert classify_error(404, kind, "", message) == (code, False)


def test_a_spend_limit_is_no_rate_limit() -> None:
    found = classify_error(429, "rate_limit_error", "enforced_spend_limit_reached", "")
    assert found == ("billing", False)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ({"type": "overloaded_error"}, ("overloaded", True)),
        ({"type": "invalid_request_error"}, ("invalid_request", False)),
        ({"type": ["odd"]}, ("upstream", True)),
        ({}, ("upstream", True)),
        ("text", ("upstream", True)),
        (None, ("upstream", True)),
    ],
)
def test_an_error_in_mid_stream_has_one_meaning(error: object, found: tuple[str, bool]) -> None:
    assert classify_stream_error(error) == found


def test_endings_name_what_ended_the_turn() -> None:
    assert (
        finish_failure("overflow", "Too long.").reason
        == finish_failure("context_full", "").reason
        == "context"
    )
    assert finish_failure("upstream", "No.").reason == ""
    assert finish_stop("user").state == "cancelled"
    assert finish_stop("time").code == "turn_time"
    assert finish_stop("crash").state == "interrupted"
    assert str(Refused("budget", "Used up.")) == "Used up."


def test_a_failure_says_its_own_words_and_the_record_those_of_the_api() -> None:
    failure = meant("invalid_request", may_retry=False, detail="bad field", http_status=400)
    assert "bad field" not in str(failure)
    assert failure.recorded == f"{failure} It said: bad field"
    assert str(meant("cut", may_retry=True)) == "The connection to the API was cut."
