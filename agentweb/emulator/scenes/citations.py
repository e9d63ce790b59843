"""Citations: the answer quotes the first sentence of a document and says where it is from.

`cite`, `quote` and `according to` ask for it; only sources with citations enabled are cited, by the
place each kind of source has.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import islice

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.scenes.scene import Block, Reply, Text
from agentweb.emulator.scenes.view import Request, blocks

_WANTED = re.compile(r"\b(?:cite|quote|according to)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?](?=\s|$)|\n|$)")
_SHOWN_IN_PDF = re.compile(rb"\(([^()]*)\)\s*Tj")
_MOST = 4


def cite(request: Request) -> Reply | None:
    if not _WANTED.search(request.prompt) or request.after_results:
        return None
    quotes: list[Block] = []
    for citation in islice(_citations(request), _MOST):
        quotes.append(Text("The source says: " if not quotes else " Another says: "))
        quotes.append(Text(f"“{citation['cited_text'].strip()}”", citations=(citation,)))
    return Reply(tuple(quotes), thinking="I quote what is in view.") if quotes else None


def _citations(request: Request) -> Iterator[json_codec.Object]:
    """Yield citations; documents and search results are counted separately, in request order."""
    counts = {"document": 0, "search_result": 0}
    for source in sources_in(request, "document", "search_result"):
        kind = source["type"]
        made = cite_document(source, counts[kind])
        if made:
            yield made
        counts[kind] += 1


def sources_in(request: Request, *kinds: str) -> Iterator[json_codec.Object]:
    """Yield documents and search results in view, including those in tool results."""
    for message in request.messages:
        for block in blocks(message):
            inner = block.get("content") if block["type"].endswith("tool_result") else None
            if isinstance(inner, dict):
                inner = [inner["content"]] if inner["type"] == "web_fetch_result" else None
            for part in [block, *(inner if isinstance(inner, list) else ())]:
                if part["type"] in kinds:
                    yield part


def cite_document(source: json_codec.Object, index: int) -> json_codec.Object | None:
    """Cite the first words of a source; None where citations are off."""
    if not (source.get("citations") or {}).get("enabled"):
        return None
    kind = source["type"]
    made = _in_document(source) if kind == "document" else _in_result(source)
    return made | {f"{kind}_index": index} if made else None


def _in_document(block: json_codec.Object) -> json_codec.Object | None:
    source, title = block["source"], {"document_title": block.get("title")}
    if "file_id" in source:
        title["file_id"] = source["file_id"]
    match source["type"]:
        case "text":
            if not (found := _SENTENCE.search(source["data"])):
                return None
            place = {"start_char_index": found.start(), "end_char_index": found.end()}
            return {"type": "char_location", "cited_text": found[0], **place, **title}
        case "content":
            texts = [part.get("text", "") for part in as_blocks(source["content"])]
            at = next((at for at, text in enumerate(texts) if text), None)
            if at is None:
                return None
            place = {"start_block_index": at, "end_block_index": at + 1}
            return {"type": "content_block_location", "cited_text": texts[at], **place, **title}
        case "base64":
            words = _pdf_words(source["data"])
            place = {"start_page_number": 1, "end_page_number": 2}
            return {"type": "page_location", "cited_text": words, **place, **title}
        case _:
            return None


def _in_result(block: json_codec.Object) -> json_codec.Object | None:
    if not block["content"]:
        return None
    place = {"start_block_index": 0, "end_block_index": 1}
    kind = {"type": "search_result_location", "cited_text": block["content"][0]["text"]}
    return kind | place | {"source": block["source"], "title": block["title"]}


def _pdf_words(data: str) -> str:
    """Return the first words of a PDF page, if they are stored uncompressed."""
    try:
        raw = base64.b64decode(data + "===")
    except (ValueError, binascii.Error):
        raw = b""
    found = _SHOWN_IN_PDF.search(raw)
    return found[1].decode("latin-1") if found else "the first page"
