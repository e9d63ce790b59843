"""`/v1/messages/batches`: create, list, retrieve, results, cancel, delete."""

from __future__ import annotations

from urllib.parse import parse_qs

from agentweb.emulator import api_accounts, json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.asgi import respond
from agentweb.emulator.batch import Batch
from agentweb.emulator.batch_run import advance
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.ids import make_id
from agentweb.emulator.validation.schema import Misfit, listing, mapping, matching, record

PREFIX = "/v1/messages/batches"
_MOST = 100_000
_shape = record(
    {
        "requests": listing(
            record({"custom_id": matching("^[a-zA-Z0-9_-]{1,64}$"), "params": mapping}), most=_MOST
        )
    }
)


async def handle(exchange: HttpExchange, account: Account, nonce: bytes) -> None:
    name, _, part = exchange.path.rstrip("/").removeprefix(PREFIX).strip("/").partition("/")
    match exchange.scope["method"], bool(name), part:
        case "POST", False, "":
            await exchange.answer_json(_create(exchange, account, nonce).as_json(_home(exchange)))
        case "GET", False, "":
            await exchange.answer_json(_page(exchange, account))
        case "GET", True, "":
            await exchange.answer_json(_find(exchange, account, name).as_json(_home(exchange)))
        case "GET", True, "results":
            await _send_results(exchange, _find(exchange, account, name))
        case "POST", True, "cancel":
            batch = _find(exchange, account, name)
            _cancel(exchange, batch)
            await exchange.answer_json(batch.as_json(_home(exchange)))
        case "DELETE", True, "":
            _delete(exchange, _find(exchange, account, name))
            await exchange.answer_json({"id": name, "type": "message_batch_deleted"})
        case _:
            raise ApiError(405, "Method Not Allowed")


def _create(exchange: HttpExchange, account: Account, nonce: bytes) -> Batch:
    emulator = exchange.emulator
    requests = _read_requests(exchange.body)
    now = emulator.clock.now()
    batch = Batch(
        id=make_id("msgbatch", nonce),
        account=account,
        betas=api_accounts.betas(exchange.headers),
        version=api_accounts.find_version(exchange.headers),
        requests=requests,
        created=now,
        ends=now + emulator.batch_seconds,
    )
    emulator.batches[batch.id] = batch
    return batch


def _read_requests(body: bytes) -> list[tuple[str, json_codec.Object]]:
    try:
        value = json_codec.decode_request(body)
    except json_codec.NotJson as error:
        raise Invalid(f"The request body is not valid JSON: {error}") from error
    try:
        _shape(value)
    except Misfit as misfit:
        raise misfit.refusal() from None
    rows = [(row["custom_id"], row["params"]) for row in value["requests"]]
    if not rows:
        raise Invalid("requests: List should have at least 1 item after validation, not 0")
    seen: set[str] = set()
    for at, (custom_id, _) in enumerate(rows):
        if custom_id in seen:
            raise Invalid(f"requests.{at}.custom_id: Duplicate custom_id: {custom_id}")
        seen.add(custom_id)
    return rows


def _find(exchange: HttpExchange, account: Account, name: str) -> Batch:
    batch = exchange.emulator.batches.get(name)
    if batch is None or batch.account != account:
        raise ApiError(404, f"Message batch not found: {name}")
    advance(batch, exchange.emulator)
    return batch


def _cancel(exchange: HttpExchange, batch: Batch) -> None:
    if batch.results:
        raise Invalid(f"Message batch {batch.id} has ended and cannot be canceled")
    batch.canceled = batch.canceled or exchange.emulator.clock.now()


def _delete(exchange: HttpExchange, batch: Batch) -> None:
    if not batch.results:
        raise Invalid(f"Message batch {batch.id} cannot be deleted before it has ended")
    del exchange.emulator.batches[batch.id]


async def _send_results(exchange: HttpExchange, batch: Batch) -> None:
    if not batch.results:
        raise ApiError(404, f"Message batch {batch.id} has no results before it has ended")
    lines = b"".join(json_codec.encode(row) + b"\n" for row in batch.results)
    exchange.note(200)
    headers = exchange.response_headers("application/x-jsonl")
    await respond(exchange.send, 200, lines, headers)


def _page(exchange: HttpExchange, account: Account) -> json_codec.Object:
    """Return a page of the batches of a workspace, newest first."""
    query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
    limit = query.get("limit", ["20"])[0]
    if not limit.isdigit() or not 1 <= int(limit) <= 1000:
        raise Invalid("limit: Input should be between 1 and 1000")
    rows = [b for b in reversed(exchange.emulator.batches.values()) if b.account == account]
    ids = [batch.id for batch in rows]
    if (after := query.get("after_id", [""])[0]) in ids:
        rows = rows[ids.index(after) + 1 :]
    if (before := query.get("before_id", [""])[0]) in ids:
        rows = rows[: ids.index(before)]
    page = rows[: int(limit)]
    for batch in page:
        advance(batch, exchange.emulator)
    return {
        "data": [batch.as_json(_home(exchange)) for batch in page],
        "has_more": len(rows) > len(page),
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def _home(exchange: HttpExchange) -> str:
    return f"http://{exchange.headers.get('host', '127.0.0.1')}"
