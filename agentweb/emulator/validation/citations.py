"""The shapes of citations from documents, search results and the web."""

from __future__ import annotations

from agentweb.emulator.validation.schema import (
    Check,
    integer,
    nullable,
    one_of,
    record,
    string,
    tagged,
)

_place = integer(0)


def _in_document(kind: str, unit: str) -> Check:
    return record(
        {
            "type": one_of(kind),
            "cited_text": string,
            "document_index": _place,
            "document_title": nullable(string),
            f"start_{unit}": _place,
            f"end_{unit}": _place,
        },
        # Answers contain it, so it is accepted when sent back.
        {"file_id": nullable(string)},
    )


citation = tagged(
    {
        "char_location": _in_document("char_location", "char_index"),
        "page_location": _in_document("page_location", "page_number"),
        "content_block_location": _in_document("content_block_location", "block_index"),
        "search_result_location": record(
            {
                "type": one_of("search_result_location"),
                "cited_text": string,
                "source": string,
                "title": nullable(string),
                "search_result_index": _place,
                "start_block_index": _place,
                "end_block_index": _place,
            }
        ),
        "web_search_result_location": record(
            {
                "type": one_of("web_search_result_location"),
                "cited_text": string,
                "encrypted_index": string,
                "title": nullable(string),
                "url": string,
            }
        ),
    }
)
