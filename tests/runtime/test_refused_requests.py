"""Requests that the API refuses: what was done is remembered, and imported chats go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.script import Script, after, call, fail, when
from agentweb.emulator.server import EmulatorServer
from conversations.audit.verify import Tally, verify_everything
from conversations.db import run_db
from conversations.models import ApiResult, Conversation, Transformation, Turn
from conversations.reductions.conversation_settings import change_model
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from tests.support import attached_files, small_files
from tests.support.people_and_turns import person
from tests.support.running_turns import ended, run, supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
ORDER = [when("order", call("write_file", path="order-4711.txt", content="paid"))]


@pytest.fixture
def emulator(settings: Any, tmp_path: Any) -> Iterator[EmulatorServer]:
    settings.DATA_DIR = tmp_path
    settings.AGENTWEB_TITLE_MODEL = "off"
    with server.start(pace=0, record=True) as found:
        settings.ANTHROPIC_BASE_URL = found.url
        yield found


def sent(emulator: EmulatorServer) -> str:
    """Give the messages of the last request for an answer."""
    rows = [row for row in emulator.emulator.log if row.path == "/v1/messages"]
    return json.dumps(json.loads(rows[-1].body)["messages"])


@pytest.mark.parametrize("fault", ["refusal", "bad_request"])
async def test_the_model_knows_what_it_did_in_a_turn_that_was_refused(
    fault: str, settings: Any, emulator: EmulatorServer
) -> None:
    script = Script([*ORDER, after("write_file", fail(fault))])
    with server.start(pace=0, record=True, script=script) as scripted:
        settings.ANTHROPIC_BASE_URL = scripted.url
        async with supervising() as supervisor:
            turn = await run(supervisor, "Please place the order")
            again = await run(supervisor, "Did you do it?", turn.conversation)
        assert again.state == "done"
        assert "wrote order-4711.txt" in sent(scripted)
        assert "Please place" not in sent(scripted)
    assert await run_db(lambda: list(verify_everything(Tally()))) == []


def imported(*blocks: dict[str, Any]) -> Conversation:
    """Import a chat with one of these blocks in each prompt."""
    messages: list[Any] = []
    for block in blocks:
        messages.append({"role": "user", "content": [{"type": "text", "text": "?"}, block]})
        messages.append({"role": "assistant", "content": "!"})
    recording = parse_recording({"id": "r1", "messages": messages})
    return import_recording(user=person("ada"), recording=recording, model="claude-sonnet-5-5")


async def test_a_chat_with_many_parts_that_only_the_api_refuses_goes_on(
    emulator: EmulatorServer,
) -> None:
    letter = {"type": "text", "media_type": "text/plain", "data": "Dear"}
    wrong = {"type": "document", "source": letter, "context": 7}
    chat = await run_db(lambda: imported(wrong, wrong, wrong))
    async with supervising() as supervisor:
        for prompt in ("Hello?", "Still there?"):
            turn = await run(supervisor, prompt, chat)
            assert (turn.state, turn.finish_reason) == ("done", "end_turn")
    changes = await run_db(lambda: list(Transformation.objects.values_list("kind", flat=True)))
    assert changes == ["repair"] * 3
    refused = ApiResult.objects.filter(error_type="invalid_request")
    assert await run_db(refused.count) == 3
    assert '"document"' not in sent(emulator)
    assert await run_db(lambda: list(verify_everything(Tally()))) == []


async def test_a_chat_with_more_images_than_its_new_model_takes_goes_on(
    settings: Any, emulator: EmulatorServer
) -> None:
    settings.AGENTWEB_MAX_ATTACHMENTS = settings.AGENTWEB_MAX_UNSENT_FILES = 110

    def start() -> Turn:
        user = person("ada")
        pictures = [small_files.png(1, 1, (number, 3, 5)) for number in range(110)]
        return attached_files.started(user, *(attached_files.kept(user, one) for one in pictures))

    async with supervising() as supervisor:
        first = await run_db(start)
        supervisor.wake(first.pk)
        chat = (await ended(first)).conversation
        assert sent(emulator).count('"image"') == 110
        await run_db(lambda: change_model(conversation_id=chat.pk, model="claude-haiku-4-5"))
        for text in ("Which was the first?", "Are you there?"):
            assert (await run(supervisor, text, chat)).state == "done"
            assert sent(emulator).count('"image"') == 100
    kinds = Transformation.objects.values_list("kind", flat=True)
    assert await run_db(lambda: list(kinds)) == ["repair"]
    assert await run_db(lambda: list(verify_everything(Tally()))) == []
