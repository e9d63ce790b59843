"""Files of the Files API, uploaded or generated; each belongs to one workspace."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.clock import rfc3339
from agentweb.emulator.errors import ApiError, Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    id: str
    account: Account
    filename: str
    media_type: str
    content: bytes
    created: float
    #: Made by a tool that ran on the API's side; only such files can be downloaded.
    is_made: bool = False
    expires: float | None = None

    def as_json(self) -> json_codec.Object:
        return {
            "type": "file",
            "id": self.id,
            "filename": self.filename,
            "mime_type": self.media_type,
            "size_bytes": len(self.content),
            "created_at": rfc3339(self.created),
            "downloadable": self.is_made,
            "expires_at": None if self.expires is None else rfc3339(self.expires),
        }


class FileStore:
    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def keep(self, file: StoredFile) -> None:
        self._files[file.id] = file

    def find(self, file_id: str, account: Account, now: float) -> StoredFile:
        """Return the workspace's file; raises ApiError 404 for one that is unknown or deleted."""
        file = self._files.get(file_id)
        if file is None or file.account != account:
            raise ApiError(404, f"File not found: {file_id}")
        if file.expires is not None and file.expires <= now:
            raise ApiError(404, f"File has expired: {file_id}", {"error_code": "file_expired"})
        return file

    def drop(self, file: StoredFile) -> None:
        del self._files[file.id]

    def of(self, account: Account, now: float) -> list[StoredFile]:
        """Return the files of a workspace, newest first."""
        files = [f for f in self._files.values() if f.account == account]
        return [f for f in reversed(files) if f.expires is None or f.expires > now]

    def clear(self) -> None:
        self._files.clear()


def fill_in(
    body: json_codec.Object, store: FileStore, account: Account, now: float
) -> json_codec.Object:
    """Return the body with file ids replaced by the files' contents, as the model reads it."""

    def filled(block: json_codec.Object, where: str) -> json_codec.Object:
        if block["type"] == "container_upload":
            store.find(block["file_id"], account, now)
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            inner = [filled(p, f"{where}.{at}") for at, p in enumerate(block["content"])]
            return block | {"content": inner}
        source = block.get("source")
        if not isinstance(source, dict) or source.get("type") != "file":
            return block
        file = store.find(source["file_id"], account, now)
        return block | {"source": _source(file, block["type"], where)}

    if b'"file_id"' not in json_codec.encode(body["messages"]):
        return body
    messages = [
        message
        | {
            "content": [
                filled(block, f"messages.{index}.content.{at}")
                for at, block in enumerate(as_blocks(message["content"]))
            ]
        }
        for index, message in enumerate(body["messages"])
    ]
    return body | {"messages": messages}


def _source(file: StoredFile, kind: str, where: str) -> json_codec.Object:
    is_image, is_pdf = file.media_type.startswith("image/"), file.media_type == "application/pdf"
    is_text = file.media_type.startswith("text/")
    if is_image != (kind == "image") or not (is_image or is_pdf or is_text):
        raise Invalid(f"{where}.{kind}.source.file: {file.media_type} is not supported here")
    if is_text:
        data = file.content.decode("utf-8", "replace")
        return {"type": "text", "media_type": "text/plain", "data": data, "file_id": file.id}
    data = base64.b64encode(file.content).decode()
    return {"type": "base64", "media_type": file.media_type, "data": data, "file_id": file.id}
