"""Server tools, which the API itself runs in an answer: a card per call, a note per source.

Titles and URLs are untrusted: they are shown as text, and linked only where a link in the answer
itself would be. The rest of a search result is encrypted for the API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from conversations.context.view.blocks import SERVER_CALLS, is_server_result
from conversations.context.view.server_results import read_server_text
from conversations.rendering.links import is_allowed, read_host
from conversations.toolbox.call_labels import find_subject
from conversations.transcript.shapes import Source, ToolCard
from conversations.transcript.tool_cards import SHOWN, shorten_input

LONGEST_TITLE, LONGEST_QUOTE = 200, 300
#: Error texts of a search for people, by the API's code.
_WRONG = {
    "max_uses_exceeded": "Not searched: this answer has used up its searches.",
    "too_many_requests": "Not searched: there were too many searches at the same time.",
    "unavailable": "Not searched: the search of the web is not available now.",
    "invalid_tool_input": "Not searched: the search was not put properly.",
    "query_too_long": "Not searched: the search was too long.",
    "request_too_large": "Not searched: the request was too large.",
}


def map_results(blocks: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Map the calls that the API ran to their results, which may be in a later answer."""
    return {
        str(block.get("tool_use_id")): block for block in blocks if is_server_result(block["type"])
    }


def build_server_cards(
    blocks: list[dict[str, Any]], results: Mapping[str, dict[str, Any]], *, is_live: bool = False
) -> list[ToolCard]:
    """Return a card for each tool call that the API ran, with its result.

    `results` are those of the whole turn; while that is live a call without one still runs.
    """
    missing = "started" if is_live else "cancelled"
    return [
        _build_card(block, results.get(str(block.get("id"))), missing)
        for block in blocks
        if block["type"] in SERVER_CALLS
    ]


def has_open_call(blocks: list[dict[str, Any]]) -> bool:
    """Return whether the API made a call whose result these blocks do not hold."""
    found = map_results(blocks)
    return any(b["type"] in SERVER_CALLS and str(b.get("id")) not in found for b in blocks)


def _build_card(use: dict[str, Any], result: dict[str, Any] | None, missing: str) -> ToolCard:
    tool_input = use.get("input") if isinstance(use.get("input"), dict) else {}
    output, is_error = _format_output(result) if result else ("", False)
    return ToolCard(
        id=str(use.get("id", "")),
        name=str(use.get("name", "")),
        brief=shorten_input(tool_input or {}),
        input=json.dumps(tool_input, ensure_ascii=False, indent=2),
        state="error" if is_error else "ok" if result else missing,
        output=output[:SHOWN],
        is_cut=len(output) > SHOWN,
        is_error=is_error,
        milliseconds=None,
        is_served=True,
        subject=find_subject(str(use.get("name", "")), tool_input or {}),
    )


def _format_output(result: dict[str, Any]) -> tuple[str, bool]:
    """Return the result of a call as text, and whether it is an error."""
    content, is_error = result.get("content"), result.get("is_error") is True
    match content:
        case {"error_code": code}:
            return _WRONG.get(str(code), f"It failed: {str(code)[:80]}."), True
        case None | []:
            return "Nothing was found.", is_error
        case list():
            return "\n\n".join(map(_format_result, content)), is_error
        case str():
            return content, is_error
        case {"type": "web_fetch_result"}:
            return _format_page(content), is_error
        case {"stdout": _} | {"stderr": _}:
            parts = [str(content.get(name) or "").strip() for name in ("stdout", "stderr")]
            return "\n".join(filter(None, parts)) or "It printed nothing.", is_error
    return read_server_text(content), is_error


def _format_page(page: dict[str, Any]) -> str:
    document = page.get("content")
    document = document if isinstance(document, dict) else {}
    source = document.get("source")
    text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else ""
    title = _shorten(document.get("title"), LONGEST_TITLE)
    parts = (title, _shorten(page.get("url"), 2_000), "\n" + text if text else "")
    return "\n".join(filter(None, parts))


def _format_result(row: Any) -> str:
    if isinstance(row, dict) and row.get("type") == "text":
        return str(row.get("text", ""))
    if not isinstance(row, dict) or row.get("type") != "web_search_result":
        return f"[{row.get('type') if isinstance(row, dict) else 'result'}]"
    age = f" ({_shorten(row['page_age'], 60)})" if row.get("page_age") else ""
    return f"{_shorten(row.get('title'), LONGEST_TITLE)}{age}\n{_shorten(row.get('url'), 2_000)}"


@dataclass(frozen=True, slots=True)
class CitedText:
    """The text of an answer with the numbers of its sources in it, and the sources."""

    text: str
    sources: tuple[Source, ...]


def join_cited_text(blocks: list[dict[str, Any]]) -> CitedText:
    """Join the text of an answer and number its citations by source.

    The API splits a text where a citation begins and ends; such pieces are joined without a break.
    """
    sources: dict[tuple[str, str], Source] = {}
    text, was_text, was_cited = "", False, False
    for block in blocks:
        if block["type"] != "text":
            was_text = False
            continue
        numbers = [_number_source(each, sources) for each in _list_citations(block)]
        is_joined = was_text and (was_cited or bool(numbers))
        text += ("" if is_joined or not text else "\n\n") + _append_numbers(block["text"], numbers)
        was_text, was_cited = True, bool(numbers)
    return CitedText(text, tuple(sources.values()))


def _list_citations(block: dict[str, Any]) -> list[dict[str, Any]]:
    rows = block.get("citations")
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []


def _number_source(citation: dict[str, Any], sources: dict[tuple[str, str], Source]) -> int:
    url = str(citation.get("url") or citation.get("source") or "")
    title = _shorten(citation.get("title") or citation.get("document_title"), LONGEST_TITLE)
    place = _describe_place(citation)
    title = title or _shorten(url, LONGEST_TITLE) or _name_document(citation)
    quote = _shorten(citation.get("cited_text"), LONGEST_QUOTE)
    # A web page is one source; of a document each passage is a source.
    key = (url, "") if url else (title, f"{place} {quote}")
    if key not in sources:
        sources[key] = Source(
            number=len(sources) + 1,
            title=title,
            url=url if is_allowed(url) else "",
            host=read_host(url),
            quote=quote,
            place=place,
        )
    return sources[key].number


def _name_document(citation: dict[str, Any]) -> str:
    """Return a name for an untitled source: its number among the documents that were sent."""
    index = citation.get("document_index", citation.get("search_result_index"))
    if not isinstance(index, int):
        return _("A source")
    return _("Document %(number)d") % {"number": index + 1}


def _describe_place(citation: dict[str, Any]) -> str:
    """Return the cited pages; the API's end is exclusive."""
    first, end = citation.get("start_page_number"), citation.get("end_page_number")
    if not isinstance(first, int):
        return ""
    if isinstance(end, int) and end - 1 > first:
        return _("pages %(first)d to %(last)d") % {"first": first, "last": end - 1}
    return _("page %(number)d") % {"number": first}


def _append_numbers(text: str, numbers: list[int]) -> str:
    """Append the numbers to the last word, escaped so that Markdown reads no links in them."""
    stripped = text.rstrip()
    marks = "".join(rf"\[{number}\]" for number in dict.fromkeys(numbers))
    return f"{stripped} {marks}{text[len(stripped) :]}" if marks else text


def _shorten(value: object, most: int) -> str:
    words = " ".join(str(value or "").split())
    return words if len(words) <= most else words[: most - 1] + "…"
