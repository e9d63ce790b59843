"""A page as the model can read it: one line that says what it is, then text.

HTML becomes readable text with its links and tables, JSON and other text stay as they are, and
anything else is refused by name. An answer that is not a success is an error result which still
shows the start of its body, because that is where sites say why.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from tools.base import ToolContext, ToolResult, tool
from tools.charset import decode
from tools.errors import BodyRefusedError
from tools.readable import readable
from tools.web import Answer, fetch

MOST_ERROR_CHARACTERS = 2_000
HTML = frozenset({"text/html", "application/xhtml+xml"})
TEXT = re.compile(
    r"text/.*|application/(.*[+.-])?(json|xml|yaml|toml|javascript|ndjson|csv)|image/svg\+xml"
)
SNIFFED = 1_024


@tool(effect="read", results="json", timeout=30, max_bytes=6_000_000)
async def fetch_url(
    context: ToolContext, url: Annotated[str, "full http or https address of a public page"]
) -> ToolResult:
    """Fetch a web page and return its readable text, with links and tables; JSON and plain text are
    returned as they are."""
    answer = await fetch(url, context.web)
    kind = _kind(answer)
    text = await asyncio.to_thread(_text, answer, kind)
    is_error = not 200 <= answer.status <= 299
    if is_error:
        text = text[:MOST_ERROR_CHARACTERS]
    head = f"{answer.url} {answer.status} {kind or 'no content type'}"
    if answer.hops:
        head = f"{head} (redirected from {answer.hops[0]})"
    details = {
        "url": answer.url,
        "status": answer.status,
        "content_type": answer.content_type[:200],
        "bytes": len(answer.body),
        "hops": list(answer.hops),
    }
    return ToolResult(f"{head}\n\n{text}".strip(), is_error=is_error, details=details)


def _kind(answer: Answer) -> str:
    return answer.content_type.split(";")[0].strip().lower()[:100]


def _text(answer: Answer, kind: str) -> str:
    is_text = bool(TEXT.fullmatch(kind)) or (not kind and b"\0" not in answer.body[:SNIFFED])
    if kind in HTML:
        return readable(decode(answer.body, answer.content_type), answer.url)
    if is_text or not answer.body:
        return decode(answer.body, answer.content_type).strip()
    if not 200 <= answer.status <= 299:
        return ""
    raise BodyRefusedError(
        f"{answer.url} is {kind or 'binary'} ({len(answer.body):,} bytes); only text, HTML,"
        " JSON and XML can be read."
    )
