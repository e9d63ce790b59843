"""An invented web: pages that a search finds and a fetch reads, and how they are cited."""

from __future__ import annotations

import base64
import re

from agentweb.emulator import json_codec

_FEWEST_WORDS = 12
_PDF = (
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type /Page/Parent 2 0 R>>endobj\n({text}) Tj\n%%EOF"
)
#: Fixed, as the pages are.
_RETRIEVED = "2026-11-24T08:00:00.000000+00:00"


def fetch(tool: json_codec.Object, tool_input: json_codec.Object) -> json_codec.Object:
    """Return the page of an address as a document: a PDF if its name says so, else plain text."""
    url = str(tool_input.get("url", ""))
    if not re.match(r"https?://[^\s/]+", url):
        return _failed("invalid_tool_input")
    host = re.sub(r"^https?://([^/:?#]+).*", r"\1", url, flags=re.DOTALL).lower()
    allowed, blocked = tool.get("allowed_domains"), tool.get("blocked_domains") or ()
    if (allowed and host not in allowed) or host in blocked:
        return _failed("url_not_allowed")
    title = f"The page {url.rstrip('/').rsplit('/', 1)[-1]}"
    text = page_text(url)
    most = tool.get("max_content_tokens")
    text = text[: most * 4] if most else text
    document: json_codec.Object = {"type": "document", "source": _source(url, text), "title": title}
    if tool.get("citations"):
        document["citations"] = {"enabled": bool(tool["citations"].get("enabled"))}
    return {
        "type": "web_fetch_result",
        "url": url,
        "retrieved_at": _RETRIEVED,
        "content": document,
    }


def page_text(url: str) -> str:
    name = re.sub(r"\W+", " ", url.rstrip("/").rsplit("/", 1)[-1]).strip()
    return f"This page is about {name}. Everything else about {name} is said elsewhere."


def _source(url: str, text: str) -> json_codec.Object:
    if url.endswith(".pdf"):
        data = base64.b64encode(_PDF.format(text=text).encode()).decode()
        return {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "text", "media_type": "text/plain", "data": text}


def _failed(code: str) -> json_codec.Object:
    return {"type": "web_fetch_tool_result_error", "error_code": code}


def found_page(
    tool: json_codec.Object, query: str, words: int = _FEWEST_WORDS
) -> json_codec.Object:
    """Return a page of an invented web, on the domains that the request allows."""
    blocked = tool.get("blocked_domains") or ()
    hosts = tool.get("allowed_domains") or [
        host for host in ("pages.example", "library.example") if host not in blocked
    ]
    slug = re.sub(r"\W+", "-", query.lower()).strip("-")
    return {
        "type": "web_search_result",
        "url": f"https://{hosts[0] if hosts else 'elsewhere.example'}/{slug}",
        "title": f"All about {query}",
        "encrypted_content": sealed(f"Everything about {query}. ", words),
        "page_age": None,
    }


def sealed(text: str, words: int) -> str:
    """Return opaque text that only the API reads, about as long as `words` words."""
    return base64.b64encode((text * (1 + words // 3)).encode()[: words * 6]).decode()


def cite_page(page: json_codec.Object, topic: str) -> json_codec.Object:
    """Return the citation of a page that a search found."""
    return {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "encrypted_index": sealed(page["url"], 4),
        "cited_text": f"Everything about {topic}.",
    }
