"""Known refusals, word for word and over HTTP, under the API version they were observed with."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from agentweb.emulator.server import EmulatorServer
from tests.emulator.known_refusals import KNOWN, Known

SAMPLING = {"temperature", "top_p", "top_k"}
IDS = [f"{row.rule} {row.model} {row.version}" for row in KNOWN]


def ask(url: str, known: Known, path: str) -> tuple[int, Any]:
    size = {"max_tokens": 2_000} if path == "/v1/messages" else {}
    headers = {
        "x-api-key": "sk-a",
        "anthropic-version": known.version,
        "anthropic-beta": known.beta,
    }
    body = json.dumps({"model": known.model} | size | known.change).encode()
    try:
        asked = urllib.request.Request(url + path, body, headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def judge(known: Known, status: int, told: Any) -> None:
    where = f"{known.source}, {known.date}"
    if not known.words:
        assert status == 200, f"{told} ({where})"
        return
    assert status == 400, where
    error = told["error"]
    assert error["type"] == "invalid_request_error"
    message = error["message"]
    if known.words.endswith("…"):
        message = message[: len(known.words) - 1] + "…"
    assert message == known.words, where


@pytest.mark.parametrize("known", KNOWN, ids=IDS)
def test_what_is_known_to_be_refused_is_refused_in_the_same_words(
    served: EmulatorServer, known: Known
) -> None:
    judge(known, *ask(served.url, known, "/v1/messages"))


@pytest.mark.parametrize("known", KNOWN, ids=IDS)
def test_a_count_is_judged_like_its_message(served: EmulatorServer, known: Known) -> None:
    """Fields that only concern sampling are unknown to the count."""
    if not {*SAMPLING, "inference_geo", "stop_sequences"} & set(known.change):
        judge(known, *ask(served.url, known, "/v1/messages/count_tokens"))


def test_every_row_has_its_source_and_date() -> None:
    assert all(row.source and "2025-01-01" < row.date <= "2026-11-24" for row in KNOWN)
    assert {row.version for row in KNOWN} == {"2023-06-01", "2026-10-21"}
