"""Images of a request: as many as the API takes, those of people last of all to go."""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from conversations.context.policy.policy import PRESETS
from conversations.context.view.view import Message, View
from tests.context.samples import (
    THOUGHT,
    Shell,
    answer,
    blocks,
    content,
    prompt,
    result,
    results,
    round_of,
    situation,
    text,
    use,
    view_of,
)
from tests.support import small_files

OFF, CLASSIC = PRESETS["off"], PRESETS["classic"]
MILLION = 1_000_000


@cache
def data(width: int, number: int = 0) -> str:
    return base64.b64encode(small_files.png(width, 2, (number % 160, 3, 5))).decode()


def image(width: int = 300, number: int = 0) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": data(width, number)}
    return {"type": "image", "source": source}


def shots(*widths: int) -> list[Any]:
    """Make a round with one image for each width."""
    return [part for n, width in enumerate(widths) for part in round_of(f"t{n}", [image(width)])]


def images(view: View) -> list[int]:
    """Return the numbers of the messages of all images of the view, in order."""
    found = []
    for at, message in enumerate(view.messages):
        for block in blocks(view, at):
            inside = block["content"] if block["type"] == "tool_result" else []
            parts = [block, *(part for part in inside if isinstance(part, dict))]
            found += [message.seq for part in parts if part["type"] == "image"]
    return found


def sent(view: View, shell: Shell, window: int = MILLION, **more: Any) -> View:
    policy = more.pop("policy", OFF)
    return shell.prepare(view, situation(window=window, **more), policy).view


def test_the_oldest_images_of_tools_go_and_several_at_once() -> None:
    view, shell = view_of(prompt("a"), *shots(*[2_880] * 21)), Shell()
    made = sent(view, shell)
    assert images(made) == images(view)[5:]
    (change,) = shell.records
    assert (change.kind, change.outcome) == ("repair", "applied")
    assert (change.trigger.number, change.trigger.threshold) == (21, 20)
    assert change.note == (
        "Left out 5 images, which you can still see here: of more than 20 in a request none may"
        " have a side of more than 2,000 pixels"
    )
    assert change.reason == "images at messages: 21 images, at most 20 are allowed"
    said = 'left out: too many images for a request; recall "t0" for the original]'
    assert blocks(made, 2) == [result("t0", [text(f"[image, PNG 2880 × 2, {said}")])]


def test_what_was_replaced_stays_so_and_the_next_images_replace_nothing() -> None:
    view, shell = view_of(prompt("a"), *shots(*[2_880] * 20)), Shell()
    counts = []
    for number in range(20, 40):
        for kind, parts in round_of(f"t{number}", [image(2_880)]):
            view = view.append(Message.parse(view.length + 1, kind, content(parts)))
        view = sent(view, shell)
        counts.append(len(images(view)))
    assert counts == [16, 17, 18, 19, 20] * 4
    assert len(shell.records) == 4


def test_of_many_images_the_large_ones_are_enough() -> None:
    view, shell = view_of(prompt("a"), *shots(*[300, 2_880], *[300] * 98)), Shell()
    assert images(sent(view, shell)) == images(view)[2:]
    assert sent(view_of(prompt("a"), *shots(*[300] * 100)), shell, window=200_000).edits == 0
    assert sent(view_of(prompt("a"), *shots(*[300] * 101)), shell, window=200_001).edits == 0
    assert len(shell.records) == 1


@pytest.mark.parametrize("policy", [OFF, CLASSIC])
def test_images_of_people_stay_while_one_of_a_tool_can_go(policy: Any) -> None:
    photos = [image(4_000, number) for number in range(12)]
    view = view_of(prompt("Look.", *photos), *shots(*[300] * 10))
    made = sent(view, Shell(), policy=policy)
    assert made.messages[0] == view.messages[0]
    assert images(made) == images(view)[:12] + images(view)[-7:]


def test_a_new_image_of_a_tool_goes_before_one_of_a_person() -> None:
    photos = [image(4_000, number) for number in range(19)]
    view, shell = view_of(prompt(*photos), *shots(300, 300)), Shell()
    assert images(sent(view, shell)) == images(view)[:19] + images(view)[-1:]
    view = view_of(prompt(*photos, image()), *shots(300))
    assert images(sent(view, shell)) == images(view)[:20]


def test_a_model_that_takes_fewer_images_gets_the_newest_of_a_person() -> None:
    pictures = [image(64, number) for number in range(140)]
    view, shell = view_of(prompt("a", *pictures), answer("b"), prompt("c")), Shell()
    assert sent(view, shell) == view
    made = sent(view, shell, window=200_000)
    assert blocks(made, 0)[41:] == [image(64, number) for number in range(40, 140)]
    said = 'left out: too many images for a request; recall "msg_1" for the original]'
    assert blocks(made, 0)[1] == text(f"[image, PNG 64 × 2, {said}")
    (change,) = shell.records
    assert change.note == (
        "Left out 40 images, which you can still see here: the model takes at most 100 in a request"
    )
    assert sent(made, shell, window=200_000) == made


def test_of_images_that_were_never_sent_no_more_go_than_must() -> None:
    uses = [use(f"t{number}") for number in range(30)]
    given = [result(f"t{number}", [text("seen"), image(2_880)]) for number in range(30)]
    view = view_of(prompt("a"), answer(THOUGHT, *uses), results(*given))
    made = sent(view, Shell())
    assert len(images(made)) == 20
    assert blocks(made, 1) == blocks(view, 1)
    first, *others = blocks(made, 2)
    assert (first["tool_use_id"], first["content"][0]) == ("t0", text("seen"))
    assert others[-20:] == blocks(view, 2)[-20:]


def test_pinned_images_go_after_others_of_the_same_kind() -> None:
    view, shell = view_of(prompt("a"), *shots(*[2_880] * 21)), Shell()
    made = sent(view, shell, pins=frozenset({"t0", 5}))
    kept = images(view)
    assert images(made) == [kept[0], kept[1], *kept[6:]]
    photos = [image(4_000, number) for number in range(11)]
    view = view_of(prompt(*photos), answer("b"), prompt(*photos))
    made = sent(view, shell, pins=frozenset({1}))
    assert images(made) == [1] * 11 + [3] * 9


def test_the_text_beside_a_replaced_image_is_handled_as_before() -> None:
    photos = prompt(*[image(4_000, number) for number in range(20)])
    page = [image(), text("One line of the page.\n" * 3_000)]
    view, shell = view_of(photos, *round_of("t1", page)), Shell()
    made = sent(view, shell, policy=CLASSIC)
    assert shell.kinds == ["repair applied", "ingest applied"]
    assert len(made.messages[2].content) < CLASSIC.max_tool_result_chars + 3_000
    page = [image(), text("One line of the page.\n" * 300)]
    view, shell = view_of(photos, *round_of("t1", page), *round_of("t2", "ok")), Shell()
    policy = replace(CLASSIC, input_token_budget=1_000, verbatim_tools=("fetch_url",))
    made = sent(view, shell, policy=policy)
    assert (shell.kinds, blocks(made, 2)[0]["content"][1]) == (["repair applied"], page[1])


def test_an_image_whose_size_nobody_knows_is_not_large() -> None:
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    view = view_of(prompt(*[linked] * 30))
    assert sent(view, Shell()) == view
