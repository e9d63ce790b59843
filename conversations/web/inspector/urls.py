"""The inspector's addresses: the owner's, and the same for review."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from conversations.web.inspector import calls, difference, timeline

_PAGES: tuple[tuple[str, Any, str], ...] = (
    ("", timeline.inspect, "inspect"),
    ("now/", timeline.present, "inspect_now"),
    ("kinds/", timeline.kinds, "inspect_kinds"),
    ("answers/<int:seq>/", timeline.answer, "inspect_answer"),
    ("calls/<int:n>/", calls.call, "inspect_call"),
    ("calls/<int:n>/blocks/<int:index>/", calls.block, "inspect_block"),
    ("calls/<int:n>/gone/<int:step>/", calls.gone, "inspect_gone"),
    ("calls/<int:n>/request/", calls.raw, "inspect_request"),
    ("calls/<int:n>/request.json", calls.body, "inspect_body"),
    ("diff/", difference.compare, "inspect_compare"),
    ("diff/<int:a>..<int:b>/", difference.diff, "inspect_diff"),
)


def _routes(before: str, prefix: str, *, is_review: bool) -> list[URLPattern]:
    extra = {"is_review": is_review}
    return [path(before + route, view, extra, prefix + name) for route, view, name in _PAGES]


_REVIEW = "review/c/<uuid:public_id>/inspect/"
urlpatterns: list[URLPattern] = [
    *_routes("c/<uuid:public_id>/inspect/", "", is_review=False),
    *_routes(_REVIEW, "review_", is_review=True),
    path(f"{_REVIEW}events/<int:seq>/", timeline.change, {"is_review": True}, "review_reduction"),
]
