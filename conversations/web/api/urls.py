"""Addresses of the API, from the table of what each reads."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, path

from conversations.web.api.answers import (
    build_file_view,
    build_page_view,
    refuse_unknown,
    show_document,
)
from conversations.web.api.endpoints import ENDPOINTS
from conversations.web.api.openapi import FILES


def _list_patterns() -> Iterator[URLPattern]:
    for endpoint in ENDPOINTS:
        yield path(f"v1/{endpoint.name}", build_page_view(endpoint), name=f"api_{endpoint.name}")
        for ending in FILES:
            view = build_file_view(endpoint, ending)
            yield path(f"v1/{endpoint.name}.{ending}", view, name=f"api_{endpoint.name}_{ending}")


urlpatterns = [
    *_list_patterns(),
    path("v1/openapi.json", show_document, name="api_openapi"),
    path("", refuse_unknown, name="api_root"),
    path("<path:rest>", refuse_unknown, name="api_unknown"),
]
