"""What a search for originals reads: prompts, texts, inputs and results, copies left out."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.context.view import wire
from conversations.context.view.message_shape import Call, Result
from conversations.context.view.searched_originals import (
    SHOWN_WEIGHT,
    SearchedOriginal,
    list_shown_ids,
    read_other,
    read_prompt,
    write_context,
    write_input,
)
from conversations.context.view.server_results import read_server_results, read_server_text
from conversations.context.view.view import Block, Message, View


def call(use: str, name: str, **tool_input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use, "name": name, "input": tool_input}


def prompt(seq: int, text: str) -> SearchedOriginal:
    return read_prompt(seq, text, [{"type": "text", "text": text}])


def result(id: str, content: Any, kind: str = "tool_result") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": id, "content": content}


def test_a_prompt_is_found_by_its_words_and_weighs_fully() -> None:
    one = prompt(4, "herons")
    assert one == SearchedOriginal("msg_4", "what the user wrote", "herons", typed="herons")
    assert (one.searched, one.weight) == ("what the user wrote\nherons", 1.0)


def test_inputs_and_results_are_labelled_by_their_call() -> None:
    calls: dict[str, Call] = {}
    said = [
        {"type": "text", "text": "I look."},
        call("toolu_1", "read_file", path="a.txt", start=2),
    ]
    texts = [{"type": "text", "text": "herons"}, {"type": "image", "source": {}}]
    found = [*read_other(2, said, calls), *read_other(3, [result("toolu_1", texts)], calls)]
    assert found == [
        SearchedOriginal("msg_2", "what you wrote", "I look."),
        SearchedOriginal(
            "toolu_1/input",
            "your input for read_file a.txt",
            "path: a.txt\nstart: 2",
            others="start=2",
        ),
        SearchedOriginal("toolu_1", "read_file a.txt", "herons\n[image]", others="start=2"),
    ]
    assert [one.name for one in found[::2]] == ["what you wrote", "read_file a.txt start=2"]
    assert found[2].searched == "read_file a.txt\nherons\n[image]"
    assert [one.weight for one in found] == [0.5, 0.7, 1.0]


def test_a_damaged_call_without_an_id_is_passed_over() -> None:
    broken = [{"type": "server_tool_use", "name": "web_search", "input": {"query": "a"}}]
    odd = [broken[0] | {"id": ["a"]}]
    assert [*read_other(2, broken, {}), *read_other(3, odd, {})] == []


def test_the_context_is_the_last_answer_with_its_inputs_or_a_prompt_newest_first() -> None:
    calls: dict[str, Call] = {}
    asked = prompt(1, "Count the herons.")
    said = [{"type": "text", "text": "I look."}, call("toolu_1", "read_file", path="a.txt")]
    look = [*read_other(2, said, calls), *read_other(3, [result("toolu_1", "x")], calls)]
    searched = [{"type": "text", "text": "And more?"}, call("toolu_2", "recall", query="file")]
    recall = list(read_other(4, searched, calls))
    assert write_context([]) == write_context(look[-1:]) == ""
    assert write_context([asked]) == write_context([*look, asked]) == "Count the herons."
    assert write_context([asked, *look]) == "path: a.txt\nI look.\nCount the herons."
    assert write_context([asked, *look, *look[:2], look[-1]]) == "path: a.txt\nI look."
    # What the answer says beside the search itself is newer.
    assert write_context([asked, *look, *recall]) == "And more?"
    assert write_context([*look, *read_other(4, searched[1:], calls)]) == "path: a.txt\nI look."
    assert write_context([prompt(1, "a" * 9_000 + "z" * 9_000)]) == f"{'a' * 150}\n{'z' * 150}"


def test_the_context_has_what_the_user_typed_and_not_the_files_before_it() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "larks " * 90}
    blocks: list[dict[str, Any]] = [
        {"type": "document", "source": source, "title": "a.txt"},
        {"type": "text", "text": "Count the herons."},
    ]
    text = f'[document, "a.txt"]\n{source["data"]}\n\nCount the herons.'
    one = read_prompt(1, text, blocks)
    assert (one.text, write_context([one])) == (text, "Count the herons.")
    only_file = read_prompt(1, "[document]\nlarks", blocks[:1])
    assert write_context([only_file]) == "[document]\nlarks"


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
    calls: dict[str, Call] = {}
    served = call("srvtoolu_1", "web_search", query="herons") | {"type": "server_tool_use"}
    row = {"title": "Herons", "url": "https://a.example", "encrypted_content": "SEALED"}
    pages = result("srvtoolu_1", [row], "web_search_tool_result")
    blocks = [call("toolu_2", "recall", id="toolu_1"), served, pages]
    found = [*read_other(4, blocks, calls), *read_other(5, [result("toolu_2", "x")], calls)]
    assert [one.id for one in found] == ["srvtoolu_1/input", "srvtoolu_1"]
    assert found[1].text == "title: Herons\nurl: https://a.example"


def test_an_imported_call_of_the_api_without_name_and_input_hides_nothing() -> None:
    served = {"type": "server_tool_use", "id": "srvtoolu_1"}
    found = list(read_other(4, [served, result("srvtoolu_1", "herons", "x_tool_result")], {}))
    assert found == [SearchedOriginal("srvtoolu_1", "server_tool_use", "herons")]


def test_an_input_is_written_as_text_and_any_other_value_as_json() -> None:
    assert write_input({"a": "b\nc", "d": [1]}) == "a: b\nc\nd: [1]"
    assert write_input([1]) == "[1]"


def test_a_text_deep_in_an_input_has_no_escapes() -> None:
    edits = [{"file": "C:\\src\\main_7.py", "old": "a\nb", "is_all": True}, "ä"]
    written = 'edits: [{"file":"C:\\src\\main_7.py","old":"a\nb","is_all":true},"ä"]'
    assert write_input({"edits": edits}) == written


PAGE = {"type": "text", "media_type": "text/plain", "data": "Herons nest."}
FETCHED = {"type": "document", "title": "Herons", "source": PAGE}
FOUND = {
    "type": "web_search_result", "title": "Herons", "url": "https://a.example",
    "encrypted_content": "SEALED", "page_age": None,
}  # fmt: skip

SHOWN = "title: Herons\nurl: https://a.example"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([FOUND, FOUND | {"page_age": "1 day"}],
         f"{SHOWN}\n\n{SHOWN}\npage_age: 1 day"),
        ([{"type": "text", "text": "From a server."}, FETCHED, "plain", 7],
         'From a server.\n\n[document, "Herons"]\nHerons nest.\n\nplain\n\n7'),
        ({"type": "web_fetch_result", "url": "https://a.example", "content": FETCHED},
         'url: https://a.example\ncontent: [document, "Herons"]\nHerons nest.'),
        ({"type": "bash_code_execution_result", "stdout": "1\n2", "stderr": "", "return_code": 0,
          "content": []}, "stdout: 1\n2\nreturn_code: 0"),
        ({"type": "tool_search_tool_search_result",
          "tool_references": [{"type": "tool_reference", "tool_name": "clock"}]},
         'tool_references: [{"type":"tool_reference","tool_name":"clock"}]'),
        ([], ""), (None, ""), ("as it is", "as it is"),
    ],
)  # fmt: skip
def test_a_result_of_the_api_is_text_without_what_only_the_api_can_read(
    content: Any, text: str
) -> None:
    assert read_server_text(content) == text


def test_results_of_the_api_are_known_by_their_length_and_their_errors() -> None:
    kinds = ("web_search_tool_result", "mcp_tool_result")
    wrong = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    said = [
        *(call(f"srvtoolu_{n}", "web_search") | {"type": "server_tool_use"} for n in range(3)),
        {"type": "text", "text": "So."},
        result("srvtoolu_0", "herons", kinds[0]),
        result("srvtoolu_1", wrong, kinds[0]),
        result("srvtoolu_2", "no", kinds[1]) | {"is_error": True},
    ]
    assert read_server_results(Message.parse(2, "answer", wire.encode(said))) == (
        Result(4, "srvtoolu_0", 6, 0, is_error=False),
        Result(5, "srvtoolu_1", 23, 0, is_error=True),
        Result(6, "srvtoolu_2", 2, 0, is_error=True),
    )
    assert read_server_results(Message.parse(2, "answer", wire.encode(said[:4]))) == ()
