"""F66: a database restored to an earlier moment, under pages that have seen later entries."""

from __future__ import annotations

import pytest

from tests.rig.database_copy import DatabaseCopy
from tests.rig.installations import Installation
from tests.rig.model import Model
from tests.rig.scenes import started_chat

pytestmark = pytest.mark.asyncio


async def test_f66_pages_of_a_database_that_went_back_show_what_it_holds_and_go_on(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    assert await chat.say("This is kept") == "done"
    other = await chat.person.open(chat.path)
    copy, kept = DatabaseCopy(rig), list(chat.person.acknowledged)
    await copy.keep()
    for number, text in enumerate(("This is lost", "And this"), 3):
        assert await chat.say(text) == "done"
        assert await other.ended(number) == "done"
    lost = chat.text(3)
    await copy.put_back()
    chat.person.acknowledged = kept
    rig.look_from_here()
    for tab in (chat, other):
        await tab.shows(lambda tab=tab: tab.number == 2)
    # The next turn has the number of a lost one, and nothing of its text.
    assert await chat.say("This is new") == "done"
    for tab in (chat, other):
        assert await tab.ended(3) == "done"
        assert "This is new" in tab.text(3)
        assert tab.text(3) != lost
    await rig.check()
