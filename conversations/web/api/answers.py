"""Views of the API: a page of rows as JSON, or all of them as CSV or JSON lines, never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from conversations.budgets.usage.cells import Cell
from conversations.web.api.documented import check_parameters, read_count
from conversations.web.api.endpoints import Endpoint
from conversations.web.api.openapi import build_document, list_parameters
from conversations.web.api.problems import ApiRefused, render_problem
from conversations.web.api.rows import MalformedCursor, Rows, iterate_records
from conversations.web.api.token_check import admit_request
from conversations.web.streamed_downloads import has_all_slots, stream_rows

View = Callable[..., HttpResponseBase]
_SECONDS = "10"


def _answer_refusals(view: View) -> View:
    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, **parts: str) -> HttpResponseBase:
        try:
            _demand_reading(request)
            return view(request, **parts)
        except ApiRefused as refused:
            return render_problem(refused)

    return answer


def _demand_reading(request: HttpRequest) -> None:
    if request.method not in ("GET", "HEAD"):
        raise ApiRefused(405, "This address is only read, by GET.", Allow="GET, HEAD")


def build_page_view(endpoint: Endpoint) -> View:
    """Return the view of an endpoint's rows as JSON."""

    @_answer_refusals
    def page(request: HttpRequest) -> HttpResponseBase:
        admit_request(request, endpoint.scope)
        asked = check_parameters(request.GET, list_parameters(endpoint, is_page=True))
        count, rows = read_count(asked.read("limit")), endpoint.read(asked)
        try:
            found, cursor = rows.read_page(asked.read("cursor"), count)
        except MalformedCursor as error:
            raise ApiRefused(400, "The cursor is none of this address.") from error
        return JsonResponse({"rows": found, "next": cursor or None})

    return page


def build_file_view(endpoint: Endpoint, ending: str) -> View:
    """Return the view of all of an endpoint's rows as a file, written while it is read."""

    @_answer_refusals
    def file(request: HttpRequest) -> HttpResponseBase:
        admit_request(request, endpoint.scope)
        rows = endpoint.read(check_parameters(request.GET, list_parameters(endpoint)))
        if has_all_slots(request.user.pk or 0):
            raise ApiRefused(
                429, "Other downloads of the token's owner are on their way.", Retry_After=_SECONDS
            )
        cells = _list_cells(endpoint, rows)
        return stream_rows(request, cells, f"agentweb-{endpoint.name}.{ending}")

    return file


def _list_cells(endpoint: Endpoint, rows: Rows) -> Iterator[tuple[Cell, ...]]:
    names = [field.name for field in endpoint.fields]
    yield tuple(names)
    for record in iterate_records(rows):
        yield tuple(record[name] for name in names)


@_answer_refusals
def show_document(request: HttpRequest) -> HttpResponseBase:
    """Send the description of the API, which is no secret."""
    return JsonResponse(build_document(request.build_absolute_uri("/api/v1")))


@_answer_refusals
def refuse_unknown(request: HttpRequest, rest: str = "") -> HttpResponseBase:
    raise ApiRefused(404, "There is nothing at this address. See /api/v1/openapi.json.")
