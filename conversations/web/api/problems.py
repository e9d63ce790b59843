"""Refusals of the API, as JSON with a sentence (RFC 9457); in English, like all of the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import JsonResponse

CONTENT_TYPE = "application/problem+json"


class ApiRefused(Exception):
    """A request that is not answered; `detail` says why and what would help."""

    code = "api_refused"

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def render_problem(refused: ApiRefused) -> JsonResponse:
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "detail": refused.detail,
    }
    return JsonResponse(
        body, status=refused.status, content_type=CONTENT_TYPE, headers=refused.headers
    )
