"""Section 13 and the SDK's own types: the Files API, and files in messages."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from agentweb.emulator.server import EmulatorServer
from tests.emulator.samples import TEXT, user
from tests.emulator.test_citations import CITE, ON, PDF
from tests.emulator.test_server_tools import CODE

MODEL = "claude-sonnet-5-5"
BETA = "files-api-2025-04-14"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest_asyncio.fixture
async def client(served: EmulatorServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        api_key="sk-files@one/blue", base_url=served.url, max_retries=0
    ) as opened:
        yield opened


def upload(ask: Any, name: str, kind: str, content: bytes, **more: Any) -> Any:
    head = f'--b\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n'
    body = head.encode() + f"content-type: {kind}\r\n\r\n".encode() + content
    for field, value in more.items():
        body += f'\r\n--b\r\ncontent-disposition: form-data; name="{field}"\r\n\r\n{value}'.encode()
    return ask(
        body + b"\r\n--b--\r\n",
        path="/v1/files",
        content_type="multipart/form-data; boundary=b",
        anthropic_beta=BETA,
    )


def named(kind: str, file_id: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "source": {"type": "file", "file_id": file_id}} | more


@pytest.mark.asyncio
async def test_the_sdk_uploads_lists_reads_and_deletes(client: anthropic.AsyncAnthropic) -> None:
    made = [await client.files.upload(file=(f"{n}.txt", b"Tea.", "text/plain")) for n in range(3)]
    assert (made[0].filename, made[0].size_bytes, made[0].downloadable) == ("0.txt", 4, False)
    listed = [file.id async for file in client.files.list(limit=2)]
    assert listed == [file.id for file in reversed(made)]
    few = await client.files.list(ids=[made[1].id])
    assert [file.id for file in few.data] == [made[1].id]
    assert (await client.files.retrieve_metadata(made[1].id)).mime_type == "text/plain"
    gone = await client.files.delete(made[1].id)
    assert (gone.id, gone.type) == (made[1].id, "file_deleted")
    with pytest.raises(anthropic.NotFoundError):
        await client.files.retrieve_metadata(made[1].id)


@pytest.mark.asyncio
async def test_an_uploaded_file_cannot_be_downloaded_a_made_one_can(
    client: anthropic.AsyncAnthropic,
) -> None:
    sent = await client.files.upload(file=("a.txt", b"Tea.", "text/plain"))
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.files.download(sent.id)
    assert caught.value.error_code == "file_not_downloadable"
    prompt: Any = [user(TEXT | {"text": "run code: echo hello > out/a.txt"})]
    tools: Any = [CODE]
    answer = await client.messages.create(model=MODEL, max_tokens=500, messages=prompt, tools=tools)
    result: Any = next(b for b in answer.content if b.type == "bash_code_execution_tool_result")
    made = result.content.content[0].file_id
    assert (await client.files.retrieve_metadata(made)).filename == "a.txt"
    assert await (await client.files.download(made)).read() == b"hello\n"


@pytest.mark.asyncio
async def test_another_workspace_does_not_see_a_file(
    client: anthropic.AsyncAnthropic, served: EmulatorServer
) -> None:
    sent = await client.files.upload(file=("a.txt", b"Tea.", "text/plain"))
    async with anthropic.AsyncAnthropic(api_key="sk-x@one/red", base_url=served.url) as other:
        with pytest.raises(anthropic.NotFoundError):
            await other.files.retrieve_metadata(sent.id)
        assert (await other.files.list()).data == []


def test_a_file_is_read_and_counted_as_if_it_were_in_the_message(ask: Any, body: Any) -> None:
    data = base64.b64encode(PNG).decode()
    inline = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    }
    file_id = upload(ask, "dot.png", "image/png", PNG).json["id"]
    said = [
        ask(body(messages=[user(image, TEXT)]), anthropic_beta=BETA).json
        for image in (inline, named("image", file_id))
    ]
    assert said[0]["content"] == said[1]["content"]
    assert said[0]["usage"]["input_tokens"] == said[1]["usage"]["input_tokens"]
    assert "1 × 1 pixels" in said[1]["content"][-1]["text"]


@pytest.mark.parametrize(
    ("name", "kind", "content", "place"),
    [
        ("tea.txt", "text/plain", b"Tea is old. It is green.", "char_location"),
        ("tea.pdf", "application/pdf", base64.b64decode(PDF), "page_location"),
    ],
)
def test_a_citation_names_its_file(
    ask: Any, body: Any, name: str, kind: str, content: bytes, place: str
) -> None:
    file_id = upload(ask, name, kind, content).json["id"]
    asked = body(messages=[user(named("document", file_id, **ON), CITE)])
    answer = ask(asked, anthropic_beta=BETA).json
    (cited,) = [block for block in answer["content"] if "citations" in block]
    assert (cited["citations"][0]["type"], cited["citations"][0]["file_id"]) == (place, file_id)
    asked["messages"] += [{"role": "assistant", "content": answer["content"]}, user(TEXT)]
    assert ask(asked, anthropic_beta=BETA).status == 200


def test_before_it_was_part_of_the_api_it_needs_its_header(ask: Any, body: Any) -> None:
    file_id = upload(ask, "tea.txt", "text/plain", b"Tea.").json["id"]
    asked = body(messages=[user(named("document", file_id), TEXT)])
    refused = ask(asked)
    assert refused.status == 400
    assert refused.message == (
        "messages.0.content.0.document.source: Input tag 'file' found using 'type' does not match "
        "any of the expected tags: 'base64', 'content', 'text', 'url'"
    )
    assert ask(asked, anthropic_version="2026-10-21").status == 200
    assert ask(path="/v1/files", method="GET").status == 404
    assert ask(path="/v1/files", method="GET", anthropic_version="2026-10-21").status == 200


def test_what_is_no_file_here_is_refused(ask: Any, body: Any) -> None:
    missing = ask(body(messages=[user(named("image", "file_1"), TEXT)]), anthropic_beta=BETA)
    assert (missing.status, missing.message) == (404, "File not found: file_1")
    file_id = upload(ask, "tea.txt", "text/plain", b"Tea.").json["id"]
    wrong = ask(body(messages=[user(named("image", file_id), TEXT)]), anthropic_beta=BETA)
    assert wrong.status == 400
    assert ask({}, path="/v1/files", anthropic_beta=BETA).status == 400


def test_a_file_expires_when_it_was_told_to(ask: Any, clock: Any) -> None:
    assert upload(ask, "a.txt", "text/plain", b"x", expires_in_seconds=60).status == 400
    made = upload(ask, "a.txt", "text/plain", b"x", expires_in_seconds=3_600).json
    where = {"path": f"/v1/files/{made['id']}", "method": "GET", "anthropic_beta": BETA}
    assert ask(**where).json["expires_at"] == made["expires_at"]
    clock.advance(3_601)
    gone = ask(**where)
    assert (gone.status, gone.json["error"]["details"]) == (404, {"error_code": "file_expired"})


def test_bytes_come_through_an_upload_unchanged(ask: Any) -> None:
    content = bytes(range(256)) * 3 + b"\r\n--c\r\n\n\r"
    made = upload(ask, "all.bin", "application/octet-stream", content).json
    (kept,) = ask.emulator.files.of(next(iter(ask.emulator.files._files.values())).account, 0.0)
    assert (kept.content, made["size_bytes"]) == (content, len(content))
