"""Sections 2 and 9: keys, versions, sizes, models, ids and headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentweb.emulator.app import create_app
from agentweb.emulator.errors import ApiError
from agentweb.emulator.model_catalogue import MODELS, find_model
from agentweb.emulator.prices import PRICES
from agentweb.emulator.rate_limits import Limits


@pytest.mark.parametrize(
    ("key", "status", "kind"),
    [
        (None, 401, "authentication_error"),
        ("", 401, "authentication_error"),
        ("sk-invalid", 401, "authentication_error"),
        ("sk-unpaid", 402, "billing_error"),
        ("sk-forbidden", 403, "permission_error"),
    ],
)
def test_a_bad_key_fails_in_its_own_way(
    ask: Any, body: Any, key: str | None, status: int, kind: str
) -> None:
    answered = ask(body(), x_api_key=key)
    assert (answered.status, answered.json["error"]["type"]) == (status, kind)


def test_a_key_can_be_scripted_to_fail(ask: Any, body: Any) -> None:
    ask.emulator.bad_keys["sk-mine"] = ApiError(403, "Not today.")
    assert ask(body(), x_api_key="sk-mine").message == "Not today."


@pytest.mark.parametrize("version", [None, "1999-01-01"])
def test_a_version_is_required_and_known(ask: Any, body: Any, version: str | None) -> None:
    answered = ask(body(), anthropic_version=version)
    assert answered.status == 400
    assert answered.message.startswith("anthropic-version: ")


def test_an_unknown_model_is_not_found(ask: Any, body: Any) -> None:
    answered = ask(body(model="claude-nobody"))
    assert answered.status == 404
    assert answered.json["error"] == {"type": "not_found_error", "message": "model: claude-nobody"}


@pytest.mark.parametrize("raw", [b"{", b"[]", b'"a"', b'{"a": NaN}', b"[" * 100_000, b"\xff"])
def test_what_is_no_json_object_is_a_400(ask: Any, raw: bytes) -> None:
    assert ask(raw).status == 400


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (r'{"a":"x \ud83d"}', "no low surrogate in string: line 1 column 15 (char 14)"),
        ('{\n"é":"\\uD83D\\n"}', "no low surrogate in string: line 2 column 12 (char 13)"),
        (r'{"\ud83d":1}', "no low surrogate in string: line 1 column 9 (char 8)"),
        (r'{"a":"\\\ud83d\\ude00"}', "no low surrogate in string: line 1 column 15 (char 14)"),
        (r'{"a":"\ud83d\u0041"}', "invalid low surrogate in string: line 1 column 13 (char 12)"),
        (
            r'{"a":"\ud83d\ude00\ude00"}',
            "invalid high surrogate in string: line 1 column 19 (char 18)",
        ),
    ],
)
def test_half_a_surrogate_pair_in_a_request_is_no_json(ask: Any, raw: str, words: str) -> None:
    """The words and places are those of the parser orjson 3.11."""
    for path in ("/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"):
        answered = ask(raw.encode(), path=path)
        assert (answered.status, answered.json["error"]["type"]) == (400, "invalid_request_error")
        assert answered.message == f"The request body is not valid JSON: {words}"


def test_more_than_32_megabytes_are_refused_by_the_edge_with_a_page(ask: Any) -> None:
    answered = ask(b" " * (32 * 1_048_576 + 1))
    assert answered.status == 413
    assert answered.headers["content-type"] == "text/html"
    with pytest.raises(json.JSONDecodeError):
        _ = answered.json


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/v1/nothing", "POST", 404), ("/v1/messages", "GET", 405)]
)
def test_other_endpoints_are_closed(ask: Any, path: str, method: str, status: int) -> None:
    assert ask(path=path, method=method).status == status


def test_every_answer_has_a_request_id_and_says_whose_it_is(ask: Any, body: Any) -> None:
    first, second = ask(body(), x_api_key="k@acme/blue"), ask(body(), x_api_key="k@acme/red")
    assert first.headers["request-id"].startswith("req_01")
    assert first.headers["request-id"] != second.headers["request-id"]
    names = ("anthropic-organization-id", "anthropic-workspace-id")
    (org, blue), (same, red) = ([a.headers[name] for name in names] for a in (first, second))
    assert org == same
    assert blue != red


def test_a_second_run_with_the_same_seed_gives_the_same_bytes(body: Any, ask: Any) -> None:
    answers = [type(ask)(create_app(seed=7)).say("Show me a table", stream=True).body for _ in "ab"]
    assert answers[0] == answers[1]
    assert type(ask)(create_app(seed=8)).say("Show me a table", stream=True).body != answers[0]


def test_requests_are_recorded_byte_for_byte(ask: Any, body: Any) -> None:
    raw = json.dumps(body("Grüße"), indent=1, ensure_ascii=False).encode()
    ask(raw)
    entry = ask.emulator.log[-1]
    assert (entry.body, entry.status, entry.path) == (raw, 200, "/v1/messages")


def test_rate_headers_tell_limits_and_round_tokens_to_thousands(ask: Any, body: Any) -> None:
    headers = ask(body()).headers
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for figure in ("limit", "remaining", "reset"):
            assert f"anthropic-ratelimit-{kind}-{figure}" in headers
    assert int(headers["anthropic-ratelimit-input-tokens-remaining"]) % 1_000 == 0
    assert headers["anthropic-ratelimit-requests-remaining"] == "999"
    assert headers["anthropic-ratelimit-requests-reset"].endswith("Z")


def test_an_enforced_bucket_refuses_and_says_when_to_come_back(
    ask: Any, body: Any, clock: Any
) -> None:
    limits = Limits(requests=2, input_tokens=1_000_000, output_tokens=100_000, enforced=True)
    limited = type(ask)(create_app(clock=clock, limits=limits))
    statuses = [limited(body()).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = limited(body())
    assert refused.json["error"]["type"] == "rate_limit_error"
    clock.advance(float(refused.headers["retry-after"]))
    assert limited(body()).status == 200


def test_models_are_listed_newest_first_with_windows_and_abilities(ask: Any) -> None:
    page = ask(path="/v1/models", method="GET", query="limit=5").json
    assert page["has_more"]
    assert page["data"][0]["id"] == "claude-fable-5-2"
    rest = ask(path="/v1/models", method="GET", query=f"limit=50&after_id={page['last_id']}").json
    assert len(page["data"]) + len(rest["data"]) == len(MODELS)


def test_one_model_is_found_by_its_alias(ask: Any) -> None:
    model = ask(path="/v1/models/claude-haiku-4-5", method="GET").json
    assert (model["id"], model["max_input_tokens"], model["max_tokens"]) == (
        "claude-haiku-4-5-20251001",
        200_000,
        64_000,
    )
    assert model["capabilities"]["thinking"]["types"]["enabled"] == {"supported": True}
    assert ask(path="/v1/models/claude-nobody", method="GET").status == 404


def test_every_model_has_a_price() -> None:
    assert set(PRICES) == {model.id for model in MODELS}
    assert find_model("claude-opus-4-5") is not None


def test_models_are_paged_in_both_directions(ask: Any) -> None:
    ids = [
        row["id"] for row in ask(path="/v1/models", method="GET", query="limit=100").json["data"]
    ]
    after = ask(path="/v1/models", method="GET", query=f"limit=3&after_id={ids[4]}").json
    assert [row["id"] for row in after["data"]] == ids[5:8]
    assert (after["first_id"], after["last_id"], after["has_more"]) == (ids[5], ids[7], True)
    before = ask(path="/v1/models", method="GET", query=f"limit=3&before_id={ids[4]}").json
    assert [row["id"] for row in before["data"]] == ids[1:4]
    assert before["has_more"]
    first = ask(path="/v1/models", method="GET", query=f"limit=3&before_id={ids[2]}").json
    assert ([row["id"] for row in first["data"]], first["has_more"]) == (ids[:2], False)
    none = ask(path="/v1/models", method="GET", query=f"after_id={ids[-1]}").json
    assert none == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize("limit", ["0", "1001", "many", "-1"])
def test_a_page_has_between_one_and_a_thousand_models(ask: Any, limit: str) -> None:
    answered = ask(path="/v1/models", method="GET", query=f"limit={limit}")
    assert (answered.status, answered.message) == (
        400,
        "limit: Input should be between 1 and 1000",
    )


@pytest.mark.parametrize(
    ("model", "path", "supported"),
    [
        ("claude-opus-5-5", ("thinking", "types", "disabled"), False),
        ("claude-sonnet-5-5", ("thinking", "types", "between_tools"), True),
        ("claude-haiku-4-5", ("thinking", "types", "adaptive"), False),
        ("claude-haiku-4-5", ("compaction",), False),
        ("claude-sonnet-5-5", ("compaction", "summarize"), True),
        ("claude-opus-5", ("context_management", "compact_20260112"), True),
        ("claude-haiku-4-5", ("context_management", "compact_20260112"), False),
        ("claude-haiku-4-5", ("effort",), False),
        ("claude-opus-4-5", ("effort", "max"), False),
        ("claude-sonnet-5-5", ("server_tools", "web_search"), True),
    ],
)
def test_a_model_says_what_it_is_able_to(
    ask: Any, model: str, path: tuple[str, ...], supported: bool
) -> None:
    found = ask(path=f"/v1/models/{model}", method="GET").json["capabilities"]
    for name in path:
        found = found[name]
    assert found["supported"] is supported


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("claude-sonnet-5-5", None, "global"),
        ("claude-sonnet-5-5", "us", "us"),
        ("claude-haiku-4-5", None, "not_available"),
    ],
)
def test_usage_says_where_and_on_what_tier_it_was_made(
    ask: Any, body: Any, model: str, asked: str | None, told: str
) -> None:
    answered = ask(body(model=model, inference_geo=asked, service_tier="auto"))
    usage = answered.json["usage"]
    assert (usage["service_tier"], usage["inference_geo"]) == ("standard", told)


def test_one_country_costs_a_tenth_more(ask: Any, body: Any) -> None:
    costs = [
        int(ask(body("Hello " * 2_000, model="claude-opus-4-6", inference_geo=geo)).headers[COST])
        for geo in ("global", "us")
    ]
    assert abs(costs[1] * 10 - costs[0] * 11) < 20


COST = "agentweb-emulator-cost-micros"
