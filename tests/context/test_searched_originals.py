"""What a search for originals reads: prompts, texts, inputs and results, copies left out."""

from __future__ import annotations

from typing import Any

from conversations.context.view import wire
from conversations.context.view.searched_originals import (
    SHOWN_WEIGHT,
    SearchedOriginal,
    list_shown_ids,
    read_other,
    read_prompt,
    write_input,
)
from conversations.context.view.view import Block, Message, View


def call(use: str, name: str, **tool_input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use, "name": name, "input": tool_input}


def result(id: str, content: Any, kind: str = "tool_result") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": id, "content": content}


def test_a_prompt_is_found_by_its_words_and_weighs_fully() -> None:
    one = read_prompt(4, "herons")
    assert one == SearchedOriginal("msg_4", "what the user wrote", "herons")
    assert (one.searched, one.weight) == ("what the user wrote\nherons", 1.0)


def test_inputs_and_results_are_labelled_by_their_call() -> None:
    labels: dict[str, str] = {}
    said = [
        {"type": "text", "text": "I look."},
        call("toolu_1", "read_file", path="a.txt", start=2),
    ]
    texts = [{"type": "text", "text": "herons"}, {"type": "image", "source": {}}]
    found = [*read_other(2, said, labels), *read_other(3, [result("toolu_1", texts)], labels)]
    assert found == [
        SearchedOriginal("msg_2", "what you wrote", "I look."),
        SearchedOriginal(
            "toolu_1/input", "your input for read_file a.txt", "path: a.txt\nstart: 2"
        ),
        SearchedOriginal("toolu_1", "read_file a.txt", "herons\n[image]"),
    ]
    assert [one.weight for one in found] == [0.5, 0.7, 1.0]


def test_what_a_view_shows_as_a_whole_is_known_and_weighs_less() -> None:
    served = call("srvtoolu_1", "web_search", query="x") | {"type": "server_tool_use"}
    pages = result("srvtoolu_1", [], "web_search_tool_result")
    said = [{"type": "text", "text": "I look."}, call("toolu_1", "read_file"), served, pages]
    kept, cut = (Block(wire.encode(result(key, "herons"))) for key in ("toolu_1", "toolu_2"))
    shortened = Block(wire.encode(result("toolu_3", "her")), by="compaction")
    picture = Block('{"type":"image","source":{}}')
    view = View().append(Message.parse(1, "prompt", '[{"type":"text","text":"Look."}]'))
    view = view.append(Message.parse(2, "answer", wire.encode(said)))
    view = view.append(Message.of(3, "results", (kept, cut, shortened, picture)))
    assert list_shown_ids(view.with_cleared(("toolu_2",))) == {
        "msg_1", "msg_2", "toolu_1/input", "srvtoolu_1/input", "srvtoolu_1", "toolu_1",
    }  # fmt: skip
    one = SearchedOriginal("toolu_1", "read_file", "herons", is_shown=True)
    assert one.weight == SHOWN_WEIGHT


def test_a_call_and_a_text_read_again_are_one_entry() -> None:
    page = "herons " * 40
    first, again = (SearchedOriginal(key, "read_file", page) for key in ("toolu_1", "toolu_2"))
    asked = SearchedOriginal("toolu_1/input", "your input", "path: a.txt")
    assert set(first.marks) & set(again.marks)
    assert asked.marks == ("toolu_1",) == first.marks[:1]
    short = (SearchedOriginal(key, "write_file", "done").marks for key in ("toolu_3", "toolu_4"))
    assert list(short) == [("toolu_3",), ("toolu_4",)]


def test_copies_by_recall_are_left_out_and_results_of_the_api_are_not() -> None:
    labels: dict[str, str] = {}
    served = call("srvtoolu_1", "web_search", query="herons") | {"type": "server_tool_use"}
    pages = result("srvtoolu_1", [{"url": "https://a.example"}], "web_search_tool_result")
    blocks = [call("toolu_2", "recall", id="toolu_1"), served, pages]
    found = [*read_other(4, blocks, labels), *read_other(5, [result("toolu_2", "x")], labels)]
    assert [one.id for one in found] == ["srvtoolu_1/input", "srvtoolu_1"]
    assert found[1].text == '[{"url":"https://a.example"}]'


def test_an_input_is_written_as_text_and_any_other_value_as_json() -> None:
    assert write_input({"a": "b\nc", "d": [1]}) == "a: b\nc\nd: [1]"
    assert write_input([1]) == "[1]"
