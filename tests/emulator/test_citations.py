"""Sections 3, 5 and 7: citations in answers, in streams, in history and in the cache."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.emulator.samples import MARK, RESULT, TEXT, TOOL, USE, assistant, user
from tests.emulator.streams import assemble

CITE = {"type": "text", "text": "Please cite what you see."}
ON = {"citations": {"enabled": True}}
PDF = base64.b64encode(b"%PDF-1.4 /Type /Page (Page words.) Tj").decode()


def document(source: Any, **more: Any) -> dict[str, Any]:
    return {"type": "document", "title": "Notes", "source": source} | more


PLAIN = {"type": "text", "media_type": "text/plain", "data": "Tea is old. It is green."}
CONTENT = {"type": "content", "content": [{"type": "text", "text": "First block."}]}
FILE = {"type": "base64", "media_type": "application/pdf", "data": PDF}
FOUND = {
    "type": "search_result",
    "source": "https://a.example",
    "title": "A",
    "content": [{"type": "text", "text": "Found words."}],
}


@pytest.mark.parametrize(
    ("source", "citation"),
    [
        (
            document(PLAIN) | ON,
            {
                "type": "char_location",
                "cited_text": "Tea is old.",
                "document_index": 0,
                "document_title": "Notes",
                "start_char_index": 0,
                "end_char_index": 11,
            },
        ),
        (
            document(CONTENT) | ON,
            {
                "type": "content_block_location",
                "cited_text": "First block.",
                "document_index": 0,
                "document_title": "Notes",
                "start_block_index": 0,
                "end_block_index": 1,
            },
        ),
        (
            document(FILE) | ON,
            {
                "type": "page_location",
                "cited_text": "Page words.",
                "document_index": 0,
                "document_title": "Notes",
                "start_page_number": 1,
                "end_page_number": 2,
            },
        ),
        (
            FOUND | ON,
            {
                "type": "search_result_location",
                "cited_text": "Found words.",
                "source": "https://a.example",
                "title": "A",
                "search_result_index": 0,
                "start_block_index": 0,
                "end_block_index": 1,
            },
        ),
    ],
)
def test_each_kind_of_source_is_cited_by_its_place(
    ask: Any, body: Any, source: Any, citation: Any
) -> None:
    asked = body(messages=[user(source, CITE)])
    content = ask(asked).json["content"]
    (cited,) = [block for block in content if "citations" in block]
    assert cited["citations"] == [citation]
    assert citation["cited_text"] in cited["text"]
    events = ask(asked | {"stream": True}).events
    assert assemble(events) == content
    kinds = [d["delta"]["type"] for n, d in events if n == "content_block_delta"]
    assert kinds.count("citations_delta") == 1
    asked["messages"] += [assistant(*content), user(TEXT)]
    assert ask(asked).status == 200


def test_documents_are_counted_through_messages_and_results(ask: Any, body: Any) -> None:
    nested = RESULT | {"content": [document(PLAIN) | ON]}
    messages = [user(document(PLAIN), TEXT), assistant(USE), user(nested), assistant(TEXT)]
    asked = body(messages=[*messages, user(CITE)], tools=[TOOL])
    (cited,) = [block for block in ask(asked).json["content"] if "citations" in block]
    assert cited["citations"][0]["document_index"] == 1


def test_without_citations_enabled_nothing_is_cited(ask: Any, body: Any) -> None:
    content = ask(body(messages=[user(document(PLAIN), CITE)])).json["content"]
    assert not any("citations" in block for block in content)


def test_what_is_cited_costs_nothing_when_it_is_sent_back(ask: Any, body: Any) -> None:
    asked = body(messages=[user(document(PLAIN) | ON, CITE)])
    content = ask(asked).json["content"]
    bare = [{name: v for name, v in block.items() if name != "citations"} for block in content]
    counts = [
        ask(body(messages=[*asked["messages"], assistant(*said), user(TEXT)])).json["usage"][
            "input_tokens"
        ]
        for said in (content, bare)
    ]
    assert counts[0] == counts[1]


def test_the_switch_spares_the_tools_in_the_cache_and_nothing_else(ask: Any, body: Any) -> None:
    tool = TOOL | {"description": "word " * 2_000} | MARK
    asked = body(tools=[tool], system=[{"type": "text", "text": "word " * 2_000} | MARK])
    ask(asked | {"messages": [user(document(PLAIN), TEXT)]})
    usage = ask(asked | {"messages": [user(document(PLAIN) | ON, TEXT)]}).json["usage"]
    assert usage["cache_read_input_tokens"] > 1_000
    assert usage["cache_creation_input_tokens"] > 1_000


CHAR = {
    "type": "char_location",
    "cited_text": "Tea",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 3,
}


@pytest.mark.parametrize(
    ("citation", "text"),
    [
        (CHAR | {"type": "line_location"}, ": Input tag 'line_location' found using 'type'"),
        (CHAR | {"document_index": -1}, ".char_location.document_index: Input should be greater"),
        (CHAR | {"cited_text": None}, ".char_location.cited_text: Input should be a valid string"),
        (CHAR | {"colour": 1}, ".char_location.colour: Extra inputs are not permitted"),
        (
            {"type": "web_search_result_location", "url": "https://a.example", "title": None},
            ".web_search_result_location.cited_text: Field required",
        ),
    ],
)
def test_a_wrong_citation_in_history_is_refused_by_its_place(
    ask: Any, body: Any, citation: Any, text: str
) -> None:
    said = TEXT | {"citations": [CHAR, citation]}
    answered = ask(body(messages=[user(TEXT), assistant(said), user(TEXT)]))
    assert answered.status == 400
    assert answered.message.startswith(f"messages.1.content.0.text.citations.1{text}")
