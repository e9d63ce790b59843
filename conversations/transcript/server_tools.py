"""Tools that the API itself ran in an answer: a card for each call, a note for each source.

Titles and addresses come from strangers: they are shown as text, and linked only where a link of
the answer itself would be. The rest of a search result is encrypted for the API.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from conversations.context.view.blocks import SERVER_CALLS, is_server_result
from conversations.rendering.links import is_allowed, read_host
from conversations.transcript.shapes import Source, ToolCard
from conversations.transcript.tool_cards import SHOWN, shorten_input

LONGEST_TITLE, LONGEST_QUOTE = 200, 300
_CITED = "web_search_result_location"
#: Errors of a search for people, by the API's code.
_WRONG = {
    "max_uses_exceeded": "Not searched: this answer has used up its searches.",
    "too_many_requests": "Not searched: there were too many searches at the same time.",
    "unavailable": "Not searched: the search of the web is not available now.",
    "invalid_tool_input": "Not searched: the search was not put properly.",
    "query_too_long": "Not searched: the search was too long.",
    "request_too_large": "Not searched: the request was too large.",
}


def build_server_cards(blocks: list[dict[str, Any]]) -> list[ToolCard]:
    """Return a card for each tool call that the API ran, with its result."""
    results = {
        block.get("tool_use_id"): block for block in blocks if is_server_result(block["type"])
    }
    return [
        _build_card(block, results.get(block.get("id")))
        for block in blocks
        if block["type"] in SERVER_CALLS
    ]


def _build_card(use: dict[str, Any], result: dict[str, Any] | None) -> ToolCard:
    asked = use.get("input") if isinstance(use.get("input"), dict) else {}
    output, is_error = _format_output(result.get("content")) if result else ("", False)
    return ToolCard(
        id=str(use.get("id", "")),
        name=str(use.get("name", "")),
        brief=shorten_input(asked or {}),
        input=json.dumps(asked, ensure_ascii=False, indent=2),
        state="error" if is_error else "ok" if result else "cancelled",
        output=output[:SHOWN],
        is_cut=False,
        is_error=is_error,
        milliseconds=None,
        is_served=True,
    )


def _format_output(content: Any) -> tuple[str, bool]:
    """Return the result of a call as text, and whether it is an error."""
    if isinstance(content, dict) and "error_code" in content:
        code = str(content["error_code"])
        return _WRONG.get(code, f"It failed: {code[:80]}."), True
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False, indent=2), False
    return "\n\n".join(map(_format_result, content)) or "Nothing was found.", False


def _format_result(row: Any) -> str:
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
    sources: dict[str, Source] = {}
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
    return [each for each in rows if each.get("type") == _CITED] if isinstance(rows, list) else []


def _number_source(citation: dict[str, Any], sources: dict[str, Source]) -> int:
    url = str(citation.get("url", ""))
    if url not in sources:
        sources[url] = Source(
            number=len(sources) + 1,
            title=_shorten(citation.get("title"), LONGEST_TITLE) or _shorten(url, LONGEST_TITLE),
            url=url if is_allowed(url) else "",
            host=read_host(url),
            quote=_shorten(citation.get("cited_text"), LONGEST_QUOTE),
        )
    return sources[url].number


def _append_numbers(text: str, numbers: list[int]) -> str:
    """Append the numbers to the last word, escaped so that Markdown reads no links in them."""
    said = text.rstrip()
    marks = "".join(rf"\[{number}\]" for number in dict.fromkeys(numbers))
    return f"{said} {marks}{text[len(said) :]}" if marks else text


def _shorten(value: object, most: int) -> str:
    words = " ".join(str(value or "").split())
    return words if len(words) <= most else words[: most - 1] + "…"
