"""Searches of the web on pages: the person's choice, a card for each, sources as footnotes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from conversations.context.view import wire
from conversations.models import Conversation, ToolRule, WebSearch
from conversations.transcript.server_tools import build_server_cards, join_cited_text, map_results
from conversations.transcript.shapes import ToolCard
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import client_of
from tests.web.tags import acting, elements

pytestmark = pytest.mark.django_db
EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def path(played: Played) -> str:
    return f"/c/{played.conversation.public_id}/tools/"


def radios(html: str) -> dict[str, dict[str, Any]]:
    found = [attrs for tag, attrs in elements(html) if tag == "input"]
    return {
        str(attrs["value"]): dict(attrs) for attrs in found if attrs.get("name") == "web_search"
    }


def chosen(played: Played) -> str:
    return Conversation.objects.get(pk=played.conversation.pk).web_search


@pytest.mark.parametrize("choice", WebSearch.values)
def test_the_person_chooses_on_the_page_of_the_tools(
    client: Client, played: Played, choice: str
) -> None:
    client.post(path(played), {"web_search_was": "unknown", "web_search": choice})
    assert chosen(played) == choice
    html = client.get(path(played)).content.decode()
    assert not acting(html)
    assert [value for value, attrs in radios(html).items() if "checked" in attrs] == [choice]


def test_a_form_without_the_choice_leaves_it(client: Client, played: Played) -> None:
    client.post(path(played), {"web_search_was": "", "web_search": "beside"})
    client.post(path(played), {"on_was": ["fetch_url"], "on": ["fetch_url"]})
    client.post(path(played), {"web_search": ""})
    client.post(path(played), {"web_search_was": "beside"})
    client.post(path(played), {"web_search_was": "beside", "web_search": "everything"})
    assert chosen(played) == "beside"


def test_what_an_administrator_forbids_cannot_be_chosen(client: Client, played: Played) -> None:
    ToolRule.objects.create(tool="web_search", is_allowed=False)
    client.post(path(played), {"web_search_was": "", "web_search": "beside"})
    assert chosen(played) == WebSearch.OFF
    html = client.get(path(played)).content.decode()
    assert all("disabled" in attrs for attrs in radios(html).values())
    assert "an administrator can change that" in html


def test_a_site_without_it_says_so(client: Client, played: Played, settings: Any) -> None:
    settings.AGENTWEB_WEB_SEARCH = False
    html = client.get(path(played)).content.decode()
    assert all("disabled" in attrs for attrs in radios(html).values())
    assert "Not available with this model." in html


def test_nobody_chooses_for_another(played: Played) -> None:
    stranger = Client()
    stranger.force_login(people_and_turns.person("eve"))
    assert (
        stranger.post(path(played), {"web_search_was": "", "web_search": "beside"}).status_code
        == 404
    )
    assert chosen(played) == WebSearch.OFF


def answered(*blocks: dict[str, Any]) -> Played:
    """Play a turn whose answer has these blocks."""
    played = stored_turns.played("bea")
    lease = people_and_turns.started_turn(played.user, "Search")
    stored_turns.reply(lease, tuple(map(wire.encode, blocks)), "end_turn")
    return Played(played.user, lease_conversation(lease), played.turn, lease)


def lease_conversation(lease: Any) -> Conversation:
    return Conversation.objects.get(pk=lease.conversation_id)


def citation(url: str, title: str | None, quote: str = "said") -> dict[str, Any]:
    return {
        "type": "web_search_result_location",
        "url": url,
        "title": title,
        "encrypted_index": "x",
        "cited_text": quote,
    }


def text_block(text: str, *citations: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": text} | ({"citations": list(citations)} if citations else {})


def cards(blocks: list[dict[str, Any]]) -> list[ToolCard]:
    return build_server_cards(blocks, map_results(blocks))


def test_hostile_titles_queries_and_addresses_are_text() -> None:
    page = {
        "type": "web_search_result",
        "url": "javascript:alert(1)",
        "title": EVIL,
        "encrypted_content": "SEALED",
        "page_age": EVIL,
    }
    played = answered(
        CALL | {"input": {"query": EVIL}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]},
        text_block("It is so.", citation("javascript:alert(1)", EVIL, EVIL)),
        text_block(" And so.", citation("https://a.example/?q=<b>", EVIL)),
    )
    client = Client()
    client.force_login(played.user)
    html = client.get(f"/c/{played.conversation.public_id}/").content.decode()
    assert "onerror=alert(1)&gt;" in html
    assert "<img src=x" not in html
    assert "<script>alert" not in html
    assert "SEALED" not in html
    links = [attrs.get("href", "") for tag, attrs in elements(html) if tag == "a"]
    assert not any(str(link).startswith("javascript") for link in links)
    assert "https://a.example/?q=&lt;b&gt;" in html
    assert '<li value="2">' in html


def test_pieces_of_one_sentence_stay_one_and_get_the_numbers_of_their_sources() -> None:
    a, b = citation("https://a.example/", "A"), citation("https://b.example/", None, "x" * 900)
    cited = join_cited_text(
        [
            text_block("Tea is "),
            text_block("green", a),
            text_block(" and "),
            text_block("black\n", b, a, a),
            {"type": "thinking", "thinking": "", "signature": "s"},
            text_block("Next."),
        ]
    )
    assert cited.text == "Tea is green \\[1\\] and black \\[2\\]\\[1\\]\n\n\nNext."
    assert [(each.number, each.title, each.host) for each in cited.sources] == [
        (1, "A", "a.example"),
        (2, "https://b.example/", "b.example"),
    ]
    assert len(cited.sources[1].quote) == 300


def test_text_without_citations_is_joined_as_ever() -> None:
    assert join_cited_text([text_block("One."), text_block("Two.")]).text == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("max_uses_exceeded", "has used up its searches"),
        ("too_many_requests", "too many searches"),
        ("unavailable", "not available now"),
        ("something_new", "It failed: something_new."),
    ],
)
def test_a_search_that_failed_says_why(code: str, words: str) -> None:
    wrong = {"type": "web_search_tool_result_error", "error_code": code}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": wrong}
    (card,) = cards([CALL | {"input": {"query": "tea"}}, result])
    assert (card.is_error, card.state, card.brief) == (True, "error", "tea")
    assert words in card.output


@pytest.mark.parametrize(
    ("content", "shown"),
    [([], "Nothing was found."), ([{"type": "odd"}, 3], "[odd]\n\n[result]"), ("x", "x"), (7, "7")],
)
def test_whatever_comes_as_a_result_is_shown(content: Any, shown: str) -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}
    (card,) = cards([CALL | {"input": {}}, result])
    assert (card.output, card.is_error) == (shown, False)


def test_a_result_too_long_for_its_card_can_be_opened_as_a_whole() -> None:
    page = "The page goes on. " * 500 + "It ends here."
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": page}
    played = answered(CALL | {"input": {"query": "tea"}}, result, text_block("So."))
    client, chat = client_of(played.user), f"/c/{played.conversation.public_id}/"
    whole = f"{chat}tools/srvtoolu_1/"
    assert f'href="{whole}"' in client.get(chat).content.decode()
    assert "It ends here." in client.get(whole).content.decode()


def test_a_search_without_a_result_was_stopped() -> None:
    (card,) = cards([CALL | {"input": {"query": "tea"}}])
    assert (card.state, card.output) == ("cancelled", "")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "text", "text": "From the server."}], "From the server."),
        (
            {
                "type": "web_fetch_result",
                "url": "https://a.example/",
                "content": {
                    "type": "document",
                    "title": "A",
                    "source": {"type": "text", "media_type": "text/plain", "data": "Its text."},
                },
            },
            "A\nhttps://a.example/\n\nIts text.",
        ),
        ({"type": "code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0}, "1"),
    ],
)
def test_results_of_other_tools_are_shown_as_text(content: Any, shown: str) -> None:
    result = {"type": "x_tool_result", "tool_use_id": "srvtoolu_1", "content": content}
    (card,) = cards([CALL | {"input": {}}, result])
    assert (card.output, card.state) == (shown, "ok")


def test_a_search_whose_result_stands_in_the_next_answer_is_one_card() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    (card,) = build_server_cards([CALL | {"input": {}}], map_results([result]))
    assert (card.state, card.output) == ("ok", "Nothing was found.")
    assert build_server_cards([result], map_results([result])) == []
    (card,) = build_server_cards([CALL | {"input": {}}], {}, is_live=True)
    assert card.state == "started"


def passage(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "cited_text": "said", "document_index": 1} | fields


@pytest.mark.parametrize(
    ("cited", "title", "place", "url"),
    [
        (passage("char_location", document_title="A report"), "A report", "", ""),
        (passage("char_location", document_title=None), "Document 2", "", ""),
        (passage("content_block_location", document_title="Notes"), "Notes", "", ""),
        (
            passage("page_location", document_title="P", start_page_number=3, end_page_number=4),
            "P",
            "page 3",
            "",
        ),
        (
            passage("page_location", document_title="P", start_page_number=3, end_page_number=6),
            "P",
            "pages 3 to 5",
            "",
        ),
        (
            {"type": "search_result_location", "source": "https://a.example/x", "title": "Found"},
            "Found",
            "",
            "https://a.example/x",
        ),
        (
            {"type": "search_result_location", "source": "notes/a.md", "title": ""},
            "notes/a.md",
            "",
            "",
        ),
        ({"type": "search_result_location", "source": "javascript:x"}, "javascript:x", "", ""),
        ({"type": "new_location"}, "A source", "", ""),
    ],
)
def test_a_citation_of_every_kind_is_a_footnote(
    cited: dict[str, Any], title: str, place: str, url: str
) -> None:
    cited = join_cited_text([text_block("So it is.", cited)])
    assert cited.text == "So it is. \\[1\\]"
    (source,) = cited.sources
    assert (source.title, source.place, source.url) == (title, place, url)


def test_each_passage_of_a_document_has_its_own_footnote_and_whitespace_stays_between() -> None:
    one = passage("char_location", document_title="A", start_char_index=0)
    two = one | {"cited_text": "more", "start_char_index": 9}
    cited = join_cited_text(
        [
            text_block("A.", one),
            text_block(" "),
            text_block("B.", two),
            text_block("\n\n"),
            text_block("C.", one),
        ]
    )
    assert cited.text == "A. \\[1\\] B. \\[2\\]\n\nC. \\[1\\]"
    assert [source.quote for source in cited.sources] == ["said", "more"]
