"""A failure that no user can fix is logged once for an administrator, without the key."""

from __future__ import annotations

import pytest

from agentweb.emulator.server import EmulatorServer
from conversations.claude.client import QUIET_SECONDS, Claude
from tests.claude.test_wire import BODY
from tests.claude.wire_server import KEY, PATIENT, listen, raw, refuses

pytestmark = pytest.mark.asyncio


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [row.getMessage() for row in caplog.records if row.name == "agentweb.alerts"]


async def test_of_many_failures_one_of_each_code_is_told_in_ten_minutes(
    emulator: EmulatorServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    claude = Claude(api_key=KEY, base_url=emulator.url, deadlines=PATIENT, now=clock)
    for _ in range(3):
        for fault in ("authentication", "permission", "bad_request", "rate_limited:9"):
            await listen(claude, BODY.replace("Héllo", f"emulator:fault={fault}"))
    assert [line.split(":")[0] for line in lines(caplog)] == ["authentication", "permission"]
    clock.now += QUIET_SECONDS
    await listen(claude, BODY.replace("Héllo", "emulator:fault=permission"))
    assert [line.split(":")[0] for line in lines(caplog)][2:] == ["permission"]
    await claude.close()


async def test_a_key_that_can_be_none_is_told_and_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    claude = Claude(api_key="sk-ant\nSECRET", base_url="http://127.0.0.1:9", deadlines=PATIENT)
    assert (await listen(claude, BODY)).code == "authentication"
    assert lines(caplog) == ["authentication: ANTHROPIC_API_KEY is not the form of a key"]
    assert "SECRET" not in caplog.text
    await claude.close()


async def test_the_words_of_the_api_are_one_line_and_hold_no_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = f'{{"type":"error","error":{{"type":"billing_error","message":"no\\nmoney {KEY}"}}}}'
    answer = refuses("402 Payment Required", "content-type: application/json", body=said)
    async with raw(answer) as server:
        claude = Claude(api_key=KEY, base_url=server.url, deadlines=PATIENT)
        assert (await listen(claude, BODY)).code == "billing"
        paused = await listen(claude, BODY)
        assert len(server.bodies) == 1
        await claude.close()
    assert lines(caplog) == ["billing: HTTP 402: no money [key]"]
    assert paused.code == "billing"
    assert paused.failure is not None
    assert "Calls pause for everybody" in paused.failure.text


async def test_an_api_that_is_down_for_everybody_is_told_once(
    emulator: EmulatorServer, caplog: pytest.LogCaptureFixture
) -> None:
    claude = Claude(api_key=KEY, base_url=emulator.url, deadlines=PATIENT)
    body = BODY.replace("Héllo", "emulator:fault=overloaded")
    before = len(emulator.emulator.log)
    codes = [(await listen(claude, body)).code for _ in range(12)]
    assert set(codes) == {"overloaded"}
    assert len(emulator.emulator.log) - before == 8
    assert lines(caplog) == ["overloaded: calls pause for 5 seconds: The model is overloaded."]
    await claude.close()
