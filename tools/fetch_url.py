"""The tool `fetch_url`: a page or document as text, after one line that says what it is.

HTML becomes Markdown with its links and tables, PDF and Office files their text, CSV a table; JSON
and other text stay as they are, and anything else is refused by name. An answer that is not a
success is an error result with the start of its body, because that is where sites say why. The full
text is the result, since the context engine shortens it and can restore the rest; a long page can
also be read in ranges, from the copy that was cached when it was first read.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from tools.documents import has_parts, read_isolated
from tools.documents.document_kind import CSV_TYPES
from tools.documents.document_text import read_document
from tools.framework.clean_text import clean_text
from tools.framework.errors import AddressRefusedError, BodyRefusedError, InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.html.to_markdown import html_to_markdown
from tools.http.charset import decode_bytes
from tools.http.fetch import Answer, fetch_page
from tools.http.page_cache import CachedPage, PageCache, PageText, cache_page
from tools.http.targets import format_host_port, parse_url

MOST_ERROR_CHARACTERS = 2_000
HTML = frozenset({"text/html", "application/xhtml+xml"})
TEXT = re.compile(
    r"text/.*|application/(.*[+.-])?(json|xml|yaml|toml|javascript|ndjson|csv)|image/svg\+xml"
)
SNIFFED = 1_024
MARKUP = re.compile(rb"(?is)\s*(<!--.{0,500}?-->\s*)?<(!doctype html|html|head|body)\b")
DOCUMENT = (b"%PDF-", b"PK\x03\x04")


def _destination(arguments: dict[str, Any]) -> str:
    try:
        return format_host_port(parse_url(str(arguments["url"])))
    except AddressRefusedError:
        # The call will be refused: nothing is sent to anybody.
        return ""


@tool(
    icon="globe",
    effect="read",
    results="json",
    origin="page",
    timeout=45,
    max_bytes=6_000_000,
    destination=_destination,
    action="requested {url:host}",
)
async def fetch_url(
    context: ToolContext,
    url: Annotated[str, "full http or https address of a public page or document"],
    start: Annotated[int, "first character of its text to show, to read on in a long page"] = 0,
    length: Annotated[int, "most characters to show; 0: all"] = 0,
) -> ToolResult:
    """Fetch a web page or document (HTML, PDF, DOCX, XLSX, PPTX, CSV, JSON, text) and return its
    readable text, with links and tables."""
    if start < 0 or length < 0:
        raise InputError("start and length must be 0 or more.")
    reading, copy = await _read_page(context, url, is_continued=start > 0)
    if start and start >= len(reading.text):
        raise InputError(f"{url} has {len(reading.text):,} characters: start must be less.")
    is_error = not 200 <= reading.status <= 299
    details = {
        "url": reading.url,
        "status": reading.status,
        "content_type": reading.content_type,
        "bytes": reading.size,
        "hops": list(reading.hops),
        "kept": copy is not None,
    }
    shown = _format_range(reading, start, MOST_ERROR_CHARACTERS if is_error else length)
    return ToolResult(
        f"{_format_head(reading, copy)}{shown}".strip(), is_error=is_error, details=details
    )


async def _read_page(
    context: ToolContext, url: str, *, is_continued: bool
) -> tuple[PageText, CachedPage | None]:
    """Return the page, and the cached copy if it comes from one."""
    find_pages = context.web.find_pages
    cache, now = find_pages() if find_pages else PageCache(0), context.now()
    copy = cache.find(url, now)
    if copy is not None and (is_continued or now < copy.fresh_until):
        return copy.reading, copy
    conditions = copy.conditions if copy is not None else {}
    answer = await fetch_page(url, context.web, conditions)
    if answer.status == 304 and conditions:
        if copy is not None and not answer.hops:
            cache.confirm(url, answer.headers, now)
            return copy.reading, copy
        answer = await fetch_page(url, context.web)
    reading = await _extract_page(answer)
    cache.keep(url, cache_page(reading, answer.headers, now))
    return reading, None


def _format_head(reading: PageText, copy: CachedPage | None) -> str:
    head = f"{reading.url} {reading.status} {reading.kind or 'no content type'}"
    if reading.hops:
        head = f"{head} (redirected from {reading.hops[0]})"
    return head if copy is None else f"{head} (as read at {copy.since:%H:%M:%S} UTC)"


def _format_range(reading: PageText, start: int, length: int) -> str:
    end = min(start + length, len(reading.text)) if length else len(reading.text)
    is_all = start == 0 and end == len(reading.text)
    if is_all or not 200 <= reading.status <= 299:
        return f"\n\n{reading.text[start:end]}"
    more = f"; continue with start={end}" if end < len(reading.text) else ""
    note = f"[{len(reading.text):,} characters, showing {start:,} to {end:,}{more}]"
    return f"\n{note}\n\n{reading.text[start:end]}"


async def _extract_page(answer: Answer) -> PageText:
    kind = answer.content_type.split(";")[0].strip().lower()[:100]
    is_success, type_ = 200 <= answer.status <= 299, answer.content_type
    text = await read_isolated(extract_body, answer.body, answer.url, type_, kind, is_success)
    return PageText(
        answer.url,
        answer.status,
        kind,
        answer.content_type[:200],
        len(answer.body),
        answer.hops,
        text,
    )


def extract_body(body: bytes, url: str, content_type: str, kind: str, is_success: bool) -> str:
    """Return the text of an answer's body; raises BodyRefusedError for what has none."""
    return clean_text(_extract_text(body, url, content_type, kind, is_success))


def _extract_text(body: bytes, url: str, content_type: str, kind: str, is_success: bool) -> str:
    is_text = bool(TEXT.fullmatch(kind)) or (not kind and b"\0" not in body[:SNIFFED])
    if kind in HTML or (not kind and MARKUP.match(body[:SNIFFED])):
        return html_to_markdown(decode_bytes(body, content_type), url)
    if is_success and _is_document(body, kind, is_text=is_text):
        return read_document(body, url, content_type, "").strip()
    if is_text or not body:
        return decode_bytes(body, content_type).strip()
    if not is_success:
        return ""
    raise BodyRefusedError(
        f"{url} is {kind or 'binary'} ({len(body):,} bytes); only text, HTML, JSON, XML, PDF"
        " and Office files can be read."
    )


def _is_document(body: bytes, kind: str, *, is_text: bool) -> bool:
    if kind in CSV_TYPES or body.startswith(DOCUMENT):
        return True
    return not is_text and has_parts(body, content_type=kind)
