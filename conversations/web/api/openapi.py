"""The description of the API in OpenAPI 3.1, made from the table of its addresses."""

from __future__ import annotations

from typing import Any

from conversations.accounts.api_tokens import MOST_A_MINUTE
from conversations.web.api.documented import CURSOR, Parameter
from conversations.web.api.endpoints import ENDPOINTS, Endpoint
from conversations.web.api.problems import CONTENT_TYPE
from conversations.web.api.rows import MOST_ROWS, USUAL_ROWS

#: The endings of an address that is a file, with their media types.
FILES = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
_LIMIT = Parameter("limit", "How many rows a page has.")
_NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": USUAL_ROWS}
_TEXT = {"type": "string"}
_SAID = {
    "400": "A parameter is not as described.",
    "401": "No token, or one that does not work.",
    "403": "The token or its owner may not read this.",
    "404": "There is nothing of this name.",
    "405": "Another method than GET or HEAD.",
    "429": f"More than {MOST_A_MINUTE} requests of a token in a minute, or too many files at once.",
}
_HEADERS = {
    "401": {"WWW-Authenticate": "What is asked for (RFC 6750)."},
    "403": {"WWW-Authenticate": "The scope that is needed (RFC 6750)."},
    "405": {"Allow": "The methods that there are."},
    "429": {"Retry-After": "Seconds to wait."},
}
_ABOUT = (
    "Figures to read for programs. Make a token in the admin under API tokens and send it as"
    " `Authorization: Bearer <token>`. A token reads what its scopes name, as long as its owner may"
    " see it. Amounts are integers; times are in ISO 8601 with their offset."
)


def list_parameters(endpoint: Endpoint, *, is_page: bool = False) -> tuple[Parameter, ...]:
    """Return what an address takes; pages of rows take a cursor and a number of rows, too."""
    if is_page and endpoint.is_paged:
        return (*endpoint.parameters, CURSOR, _LIMIT)
    return endpoint.parameters


def build_document(server: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        page = {"application/json": {"schema": _refer("schemas", f"{endpoint.name}_page")}}
        paths[f"/{endpoint.name}"] = _describe(endpoint, "", page)
        for ending, media_type in FILES.items():
            content = {media_type: {"schema": _TEXT}}
            paths[f"/{endpoint.name}.{ending}"] = _describe(endpoint, ending, content)
    return {
        "openapi": "3.1.0",
        "info": {"title": "agentweb", "version": "1", "description": _ABOUT},
        "servers": [{"url": server}],
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _build_schemas(),
            "responses": {status: _describe_refusal(status) for status in _SAID},
        },
    }


def _describe(endpoint: Endpoint, ending: str, content: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {status: _refer("responses", status) for status in _SAID}
    responses["200"] = {"description": endpoint.title, "content": content}
    how = f"all rows as {ending.upper()}" if ending else "JSON"
    read = {
        "operationId": f"read_{endpoint.name}{'_' if ending else ''}{ending}",
        "summary": f"{endpoint.title} ({how})",
        "description": f"Needs the scope `{endpoint.scope}`.",
        "parameters": [
            _describe_parameter(each) for each in list_parameters(endpoint, is_page=not ending)
        ],
        "responses": dict(sorted(responses.items())),
    }
    return {"get": read}


def _describe_parameter(parameter: Parameter) -> dict[str, Any]:
    found = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.says,
        "required": parameter.is_needed,
        "schema": _NUMBER if parameter is _LIMIT else parameter.schema,
    }
    return found | ({"style": "form", "explode": False} if parameter.is_list else {})


def _build_schemas() -> dict[str, Any]:
    problem = {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}
    schemas = {"problem": _describe_object(problem)}
    for endpoint in ENDPOINTS:
        row = {field.name: field.schema for field in endpoint.fields}
        page = {
            "rows": {"type": "array", "items": _refer("schemas", f"{endpoint.name}_row")},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        }
        schemas[f"{endpoint.name}_row"] = _describe_object(row)
        schemas[f"{endpoint.name}_page"] = _describe_object(page)
    return schemas


def _describe_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


def _describe_refusal(status: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": _SAID[status],
        "content": {CONTENT_TYPE: {"schema": _refer("schemas", "problem")}},
    }
    headers = _HEADERS.get(status, {})
    if headers:
        found["headers"] = {
            name: {"description": says, "schema": _TEXT} for name, says in headers.items()
        }
    return found


def _refer(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}
