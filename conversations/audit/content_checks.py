"""Checks of content: texts against their digests, tool calls against the log, files of prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.context.view import attachment_refs, wire
from conversations.context.view.envelope import digest_envelope
from conversations.context.view.view import Message as Stored
from conversations.log.findings import DAMAGE, Problem, describe_error, read_rows, split_chunks
from conversations.log.path import Entries, read_entries
from conversations.models import (
    ApiCall,
    Attachment,
    Blob,
    Conversation,
    Envelope,
    Message,
    ToolCall,
)

#: Blocks by the number of the answer that requested the call, and the call's tool_use id.
ToolBlocks = dict[tuple[int, str], dict[str, Any]]


def check_texts(kind: type[Blob | Envelope], keys: list[str]) -> Iterator[Problem]:
    """Compare texts with the digests they are stored under."""
    table = str(kind._meta.model_name)
    for some in split_chunks(keys):
        for key, row in read_rows(kind._base_manager.all(), some).items():
            what = (
                f"cannot be read: {describe_error(row)}"
                if isinstance(row, Exception)
                else _find_flaw(row)
            )
            if what:
                yield Problem(table, key, what)


def _find_flaw(row: Any) -> str:
    try:
        if isinstance(row, Envelope):
            digest = digest_envelope(row.text, row.headers)
        else:
            digest = wire.digest(row.text)
    except DAMAGE as error:
        return f"cannot be read: {describe_error(error)}"
    if digest != row.digest:
        return f"changed: its text has the digest {digest}"
    return ""


def list_text_digests(conversation_id: int) -> tuple[list[str], list[str]]:
    """Return the digests of the envelopes and blobs that a conversation references."""
    calls = ApiCall.objects.filter(conversation=conversation_id)
    kept = calls.exclude(messages=None).values_list("messages_id", flat=True)
    outputs = ToolCall.objects.filter(turn__conversation=conversation_id).exclude(output=None)
    files = Attachment.objects.filter(conversation=conversation_id)
    blobs = {*kept, *outputs.order_by().values_list("output_id", flat=True)}
    blobs.update(key for pair in files.values_list("data_id", "original_id") for key in pair if key)
    envelopes = set(calls.values_list("envelope_id", flat=True))
    return sorted(envelopes), sorted(str(key) for key in blobs)


def check_tools(conversation: Conversation) -> Iterator[Problem]:
    """Compare each tool call with the answer that requested it and the result that was sent."""
    place = str(conversation.public_id)
    rows = ToolCall.objects.select_related("answer", "output").defer("answer__content")
    keys = list(
        rows.filter(turn__conversation=conversation).order_by("pk").values_list("pk", flat=True)
    )
    if not keys:
        return
    try:
        uses, results = _index_tool_blocks(read_entries(conversation))
    except DAMAGE as error:
        yield Problem("toolcall", "", f"cannot be compared: {describe_error(error)}", place)
        return
    for some in split_chunks(keys):
        found = read_rows(rows, some)
        for key in some:
            row = found.get(key, LookupError("the answer it names is not there"))
            try:
                what = (
                    _compare_tool_call(row, uses, results)
                    if isinstance(row, ToolCall)
                    else describe_error(row)
                )
            except DAMAGE as error:
                what = f"cannot be read: {describe_error(error)}"
            if what:
                yield Problem("toolcall", str(key), what, place)


def _index_tool_blocks(log: Entries) -> tuple[ToolBlocks, ToolBlocks]:
    """Return tool_use and tool_result blocks by the number of the requesting answer and call id."""
    uses: ToolBlocks = {}
    results: ToolBlocks = {}
    for seq, (parent, entry) in log.items():
        if not isinstance(entry, Stored) or entry.kind == "prompt":
            continue
        found, at = (uses, seq) if entry.kind == "answer" else (results, parent)
        for block in wire.decode(entry.content):
            if block["type"] in ("tool_use", "tool_result"):
                found[at, block.get("tool_use_id") or block["id"]] = block
    return uses, results


def _compare_tool_call(row: ToolCall, uses: ToolBlocks, results: ToolBlocks) -> str:
    use = uses.get((row.answer.seq, row.tool_use_id))
    if use is None:
        return f"changed: entry {row.answer.seq} asks for no call {row.tool_use_id}"
    if use["name"][:128] != row.name or use["input"] != wire.decode(row.input):
        return f"changed: it is not what entry {row.answer.seq} asks for"
    result = results.get((row.answer.seq, row.tool_use_id))
    if row.output is None:
        is_lost = row.output_id is not None or row.state == ToolCall.State.OK
        return "changed: it ran, and its output is not there" if is_lost else ""
    if result is None:
        return ""
    is_same = result.get("content") == wire.decode(row.output.text)
    return "" if is_same else "changed: its output is not the result in the log"


def check_files(conversation: Conversation) -> Iterator[Problem]:
    """Yield each prompt that references a missing file."""
    place = str(conversation.public_id)
    files = Attachment.objects.filter(conversation=conversation, data__text__isnull=False)
    held = set(files.values_list("data_id", flat=True))
    rows = Message.objects.filter(conversation=conversation, kind="prompt")
    for key, content in rows.order_by("pk").values_list("pk", "content"):
        try:
            missing = {one.digest for one in attachment_refs.list_references(content)} - held
        except DAMAGE as error:
            yield Problem("message", str(key), f"cannot be read: {describe_error(error)}", place)
            continue
        for digest in sorted(missing):
            yield Problem("message", str(key), f"names a file that is not there: {digest}", place)
