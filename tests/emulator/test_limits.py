"""Sections 2 and 9: token buckets, what they count, and the text of a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.emulator.app import create_app
from agentweb.emulator.rate_limits import Limits
from tests.emulator.samples import MARK

LONG = "The quick brown fox jumps over the lazy dog, again and again. " * 400
LEFT = "anthropic-ratelimit-{}-remaining"


def limited(ask: Any, clock: Any, **limits: Any) -> Any:
    return type(ask)(create_app(clock=clock, limits=Limits(**limits, enforced=True)))


def left(answered: Any, kind: str) -> int:
    return int(answered.headers[LEFT.format(kind)])


def test_what_is_read_from_the_cache_does_not_count(ask: Any, body: Any, clock: Any) -> None:
    asker = limited(ask, clock, input_tokens=100_000)
    asked = body(system=[{"type": "text", "text": LONG} | MARK])
    first = asker(asked)
    assert first.json["usage"]["cache_creation_input_tokens"] > 5_000
    before = left(first, "input-tokens")
    assert before < 95_000
    again = asker(asked)
    assert again.json["usage"]["cache_read_input_tokens"] > 5_000
    assert left(again, "input-tokens") == before


def test_too_much_input_is_refused_until_the_bucket_is_full_again(
    ask: Any, body: Any, clock: Any
) -> None:
    asker = limited(ask, clock, input_tokens=10_000)
    assert asker(body(LONG)).status == 200
    refused = asker(body(LONG))
    assert (refused.status, refused.json["error"]["type"]) == (429, "rate_limit_error")
    assert "of 10,000 input tokens per minute" in refused.message
    assert refused.headers["anthropic-organization-id"] in refused.message
    clock.advance(int(refused.headers["retry-after"]))
    assert asker(body(LONG)).status == 200


def test_output_counts_after_it_was_made(ask: Any, body: Any, clock: Any) -> None:
    asker = limited(ask, clock, output_tokens=500)
    assert asker(body("Answer in 900 words", max_tokens=4_000)).status == 200
    refused = asker(body())
    assert "of 500 output tokens per minute" in refused.message


def test_a_bucket_is_an_organizations(ask: Any, body: Any, clock: Any) -> None:
    asker = limited(ask, clock, requests=1)
    keys = ("a@acme/blue", "b@acme/red", "a@rival")
    assert [asker(body(), x_api_key=key).status for key in keys] == [200, 429, 200]


def test_a_refused_request_takes_nothing(ask: Any, body: Any, clock: Any) -> None:
    asker = limited(ask, clock, input_tokens=10_000)
    asker(body(LONG))
    waits = [int(asker(body(LONG)).headers["retry-after"]) for _ in range(3)]
    assert len(set(waits)) == 1


def test_counting_takes_nothing(ask: Any, body: Any, clock: Any) -> None:
    asker = limited(ask, clock, requests=1)
    asked = {name: value for name, value in body().items() if name != "max_tokens"}
    for _ in range(3):
        assert asker(asked, path="/v1/messages/count_tokens").status == 200
    assert asker(body()).status == 200


def test_figures_are_rounded_to_thousands_and_times_are_rfc_3339(ask: Any, body: Any) -> None:
    headers = ask(body(LONG)).headers
    for kind in ("input-tokens", "output-tokens", "tokens"):
        assert int(headers[LEFT.format(kind)]) % 1_000 == 0
        assert headers[f"anthropic-ratelimit-{kind}-reset"].endswith("Z")


@pytest.mark.parametrize("kind", ["requests", "input-tokens", "output-tokens", "tokens"])
def test_a_refusal_tells_every_limit(ask: Any, body: Any, clock: Any, kind: str) -> None:
    asker = limited(ask, clock, requests=1)
    asker(body())
    headers = asker(body()).headers
    for figure in ("limit", "remaining", "reset"):
        assert f"anthropic-ratelimit-{kind}-{figure}" in headers
