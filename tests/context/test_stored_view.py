"""A view that was written is read back as it was, and holds what transformations wrote alone."""

from __future__ import annotations

import pytest

from conversations.context.errors import WireError
from conversations.context.view.stored_view import read_view, write_view
from conversations.context.view.view import Message, View
from tests.context.story import Story


@pytest.mark.parametrize("part", range(3))
def test_every_view_of_a_story_is_read_back_as_it_was(part: int) -> None:
    inlined = 0
    for seed in range(part * 20, part * 20 + 20):
        story = Story(seed)

        def check(view: View, story: Story = story) -> None:
            nonlocal inlined
            originals = {one.seq: one for _, one in story.path() if isinstance(one, Message)}
            read: list[int] = []

            def read_originals(numbers: list[int]) -> dict[int, Message]:
                read.extend(numbers)
                return {number: originals[number] for number in numbers}

            found = read_view(write_view(view, originals), read_originals)
            assert found == view
            assert found.body == view.body
            inlined += view.length - len(read)

        story.sends = check
        story.live()
    assert inlined


@pytest.mark.parametrize("text", ["{}", "[1,2,3]", "[0,[],[[1,2]]]", "", "[0,[],[[]]]"])
def test_what_is_no_view_is_refused(text: str) -> None:
    with pytest.raises(WireError):
        read_view(text, lambda _: {})


def test_an_entry_that_is_missing_is_a_lookup_error() -> None:
    view = View().append(Message(7, "prompt", "[]", 1))
    with pytest.raises(LookupError):
        read_view(write_view(view, {7: view.messages[0]}), lambda _: {})
