"""`/v1/files`: upload, list, metadata, content, delete.

Part of the API since 2026-10-21, a beta before: an older version without its header finds nothing
there, and a message that names a file is refused.
"""

from __future__ import annotations

import mimetypes
from urllib.parse import parse_qs

from agentweb.emulator import api_accounts, json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.asgi import respond
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.file_store import StoredFile
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.ids import make_id
from agentweb.emulator.multipart import Part, read_parts

PREFIX = "/v1/files"
BETA = "files-api-2025-04-14"
_FIRST_VERSION = "2026-10-21"
_FEWEST_SECONDS, _MOST_SECONDS = 3_600, 7_776_000
_NOT_MADE = "Only files that a tool made can be downloaded"


def is_offered(exchange: HttpExchange) -> bool:
    version = exchange.headers.get("anthropic-version", "")
    return version >= _FIRST_VERSION or BETA in api_accounts.betas(exchange.headers)


async def handle(exchange: HttpExchange, account: Account, nonce: bytes) -> None:
    store, now = exchange.emulator.files, exchange.emulator.clock.now()
    if not is_offered(exchange):
        raise ApiError(404, "Not Found")
    name, _, part = exchange.path.rstrip("/").removeprefix(PREFIX).strip("/").partition("/")
    match exchange.scope["method"], bool(name), part:
        case "POST", False, "":
            await exchange.answer_json(_upload(exchange, account, nonce).as_json())
        case "GET", False, "":
            await exchange.answer_json(_page(exchange, store.of(account, now)))
        case "GET", True, "":
            await exchange.answer_json(store.find(name, account, now).as_json())
        case "GET", True, "content":
            await _download(exchange, store.find(name, account, now))
        case "DELETE", True, "":
            store.drop(store.find(name, account, now))
            await exchange.answer_json({"id": name, "type": "file_deleted"})
        case _:
            raise ApiError(405, "Method Not Allowed")


def check_sources(exchange: HttpExchange, body: json_codec.Object) -> None:
    """Refuse sources of type `file` in a request without the Files API beta."""
    if is_offered(exchange):
        return
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(as_blocks(message["content"])):
            source = block.get("source")
            if isinstance(source, dict) and source.get("type") == "file":
                kinds = ("base64", "content", "text", "url")
                known = kinds if block["type"] == "document" else ("base64", "url")
                raise Invalid(
                    f"messages.{index}.content.{at}.{block['type']}.source: Input tag 'file' "
                    f"found using 'type' does not match any of the expected tags: "
                    f"{', '.join(repr(kind) for kind in known)}"
                )


def _upload(exchange: HttpExchange, account: Account, nonce: bytes) -> StoredFile:
    parts = read_parts(exchange.headers.get("content-type", ""), exchange.body)
    sent = next((part for part in parts if part.name == "file"), None)
    if sent is None:
        raise Invalid("file: Field required")
    now, lasts = exchange.emulator.clock.now(), _lifetime(parts)
    kind = sent.media_type or mimetypes.guess_type(sent.filename)[0] or "application/octet-stream"
    name = sent.filename.replace("\\", "/").rsplit("/", 1)[-1]
    file = StoredFile(
        id=make_id("file", nonce),
        account=account,
        filename=name or f"unnamed{mimetypes.guess_extension(kind) or ''}",
        media_type=kind,
        content=sent.content,
        created=now,
        expires=None if lasts is None else now + lasts,
    )
    exchange.emulator.files.keep(file)
    return file


def _lifetime(parts: list[Part]) -> int | None:
    requested = next((part.content for part in parts if part.name == "expires_in_seconds"), None)
    if requested is None:
        return None
    if not requested.isdigit() or not _FEWEST_SECONDS <= int(requested) <= _MOST_SECONDS:
        raise Invalid(
            f"expires_in_seconds: Input should be between {_FEWEST_SECONDS} and {_MOST_SECONDS}"
        )
    return int(requested)


def _page(exchange: HttpExchange, files: list[StoredFile]) -> json_codec.Object:
    """Return a cursor page as the API does today, with the fields of the beta's pages as well."""
    query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
    wanted = {*query.get("ids", ()), *query.get("ids[]", ())}
    if wanted:
        files = [file for file in files if file.id in wanted]
    size = _size(query)
    after = query.get("page", [""])[0].removeprefix("page_") or query.get("after_id", [""])[0]
    ids = [file.id for file in files]
    start = ids.index(after) + 1 if after in ids else 0
    rows = files if wanted else files[start : start + size]
    more = not wanted and start + size < len(files)
    return {
        "data": [file.as_json() for file in rows],
        "next_page": f"page_{rows[-1].id}" if more else None,
        "has_more": more,
        "first_id": rows[0].id if rows else None,
        "last_id": rows[-1].id if rows else None,
    }


def _size(query: dict[str, list[str]]) -> int:
    limit = query.get("limit", ["20"])[0]
    if not limit.isdigit() or not 1 <= int(limit) <= 1000:
        raise Invalid("limit: Input should be between 1 and 1000")
    return int(limit)


async def _download(exchange: HttpExchange, file: StoredFile) -> None:
    if not file.is_made:
        raise ApiError(400, _NOT_MADE, {"error_code": "file_not_downloadable"})
    exchange.note(200)
    await respond(exchange.send, 200, file.content, exchange.response_headers(file.media_type))
