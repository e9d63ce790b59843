"""What the model may have read on the shown path, by where it came from, and the texts of it.

Derived from the log alone: a prompt's texts were typed and its files attached, each tool call has
the origin that its tool declared when it started, and results without a call came with an import.
So a fork, a later turn, a summary or a recalled text changes nothing: the path still has its
sources. Private are attached files, the workspace, mail, imported results, and MCP servers of which
an administrator says so. What was typed, pages and other MCP servers are watched: their words are
compared, but their being there alone asks nothing.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from django.db.models import Q

from conversations.accounts.people import read_owner_preferences
from conversations.context.errors import WireError
from conversations.context.tokens.media import PDF, TEXT
from conversations.context.view import wire
from conversations.context.view.attachment_refs import find_reference
from conversations.context.view.blocks import read_result_text
from conversations.context.view.stored_blocks import read_blocks, read_content
from conversations.files.workspace.attached import FOLDER
from conversations.log.attachment_texts import read_attachment_texts
from conversations.log.findings import iterate_decodable, read_decodable
from conversations.log.tree import build_path_condition
from conversations.models import Attachment, Conversation, Message, ToolCall
from tools.documents import extract_text
from tools.framework.errors import ToolError
from tools.framework.tool import Origin as ResultOrigin
from tools.http.targets import format_host_port, parse_url

logger = logging.getLogger("agentweb.turns")
Origin = Literal["typed", "attached", "imported", "hidden"] | ResultOrigin
#: Most characters of texts that are compared with a call, newest first, and PDFs read for that.
MOST_COMPARED, MOST_PDFS = 6_000_000, 3
#: Origins of results that others wrote.
_OTHERS = ("page", "mcp", "mail")
_FILES = Q(content__contains='"document"') | Q(content__contains='"image"')
#: The file of a prompt that cannot be read.
_UNREADABLE: dict[str, Any] = {"type": "document", "source": {}}


@dataclass(frozen=True, slots=True)
class Source:
    """Where something came from: a file's name, the host of a page, an MCP server, or no name."""

    origin: Origin
    name: str = ""
    is_private: bool = True

    @property
    def key(self) -> str:
        """Return the source as a record of an approval has it."""
        return f"{self.origin}:{' '.join(self.name.split())}"


@dataclass(frozen=True, slots=True)
class SourceText:
    """What can be compared of a source; without `is_whole` it has more that cannot be.

    `given_at` is the id of the answer whose call brought what others wrote, 0 for what the person
    gave, None for what the model itself may have written.
    """

    source: Source
    text: str
    is_whole: bool = True
    given_at: int | None = None


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """What a call was given by the model, with the answer that made it and the call's origin."""

    answer: int
    origin: str
    arguments: dict[str, Any]


def list_private_sources(conversation: Conversation) -> tuple[Source, ...]:
    """Return what is private on the shown path, in order, each source once."""
    path = build_path_condition("turn", conversation)
    found = [source for source, _ in _list_files(conversation)]
    imported = Message.objects.filter(path, kind="results", turn__tool_calls=None)
    if imported.exists():
        found.append(Source("imported"))
    calls = ToolCall.objects.filter(path, is_private=True).order_by("pk")
    rows = calls.values_list("name", "origin", "input")
    found += [_name_source(*row) for row in read_decodable(lambda: list(rows))]
    return tuple(dict.fromkeys(found))


def _list_files(conversation: Conversation) -> Iterator[tuple[Source, dict[str, Any]]]:
    """Yield the attached files of the path and their blocks, oldest first.

    Of a prompt that cannot be read they are one that cannot be read, without a name.
    """
    path = build_path_condition("turn", conversation)
    prompts = Message.objects.filter(path, _FILES, kind="prompt").order_by("seq")
    contents = read_decodable(lambda: list(prompts.values_list("content", flat=True)))
    if not contents:
        return
    names = dict(Attachment.objects.filter(conversation=conversation).values_list("data", "name"))
    for content in contents:
        for block in read_blocks(content) or [_UNREADABLE]:
            if block["type"] in ("document", "image"):
                # An imported file may be in the message itself.
                named = find_reference(block)
                name = names.get(named.digest) if named else None
                yield Source("attached", name or str(block.get("title") or "")), block


def name_source(name: str, origin: str, arguments: dict[str, Any], *, is_private: bool) -> Source:
    """Return the source that a call of a tool reads, by its arguments."""
    match origin:
        case "workspace":
            path = str(arguments.get("path") or "").removeprefix("./")
            folder, _, file = path.partition("/")
            return Source("attached", file) if folder == FOLDER else Source("workspace", path)
        case "page":
            return Source("page", read_host(str(arguments.get("url") or "")), is_private)
        case "mcp":
            return Source("mcp", name.split("__")[1] if "__" in name else name, is_private)
        case "mail":
            return Source("mail")
        case _:
            # A tool that is gone, or a call from before origins were stored.
            return Source("", name, is_private)


def _name_source(name: str, origin: str, given: str) -> Source:
    return name_source(name, origin, read_arguments(given), is_private=True)


def read_arguments(given: str) -> dict[str, Any]:
    with suppress(WireError):
        value = wire.decode(given)
        if isinstance(value, dict):
            return value
    return {}


def read_host(url: str) -> str:
    """Return `host:port` of a URL as tools do; "" for what is none."""
    with suppress(ToolError):
        if (parsed := parse_url(url)).host:
            return format_host_port(parsed)
    return ""


def iterate_texts(conversation: Conversation, *, with_pdfs: bool) -> Iterator[SourceText]:
    """Yield the texts of all sources, newest of each kind first, MOST_COMPARED characters whole.

    PDFs are read in the limited child process, so only where somebody will be asked anyway.
    """
    room = MOST_COMPARED
    for each in _iterate_all(conversation, with_pdfs=with_pdfs):
        is_whole = each.is_whole and len(each.text) <= room
        yield replace(each, text=each.text[:room], is_whole=is_whole)
        room = max(0, room - len(each.text))
    if room == 0:
        logger.warning("conversation %s: not all of its texts were compared", conversation.pk)


def _iterate_all(conversation: Conversation, *, with_pdfs: bool) -> Iterator[SourceText]:
    for instructions in (
        conversation.instructions,
        read_owner_preferences(conversation).instructions,
    ):
        yield SourceText(Source("typed", is_private=False), instructions, given_at=0)
    yield from _iterate_prompts(conversation, with_pdfs=with_pdfs)
    yield from _iterate_results(conversation)
    path = build_path_condition("turn", conversation)
    imported = Message.objects.filter(path, kind="results", turn__tool_calls=None)
    contents = imported.order_by("-seq").values_list("content", flat=True)
    for content in read_decodable(lambda: list(contents)):
        blocks = [read_result_text(one.get("content", "")) for one in read_blocks(content)]
        yield SourceText(Source("imported"), "\n".join(blocks), is_whole=bool(blocks))


def _iterate_results(conversation: Conversation) -> Iterator[SourceText]:
    path = build_path_condition("turn", conversation)
    calls = ToolCall.objects.filter(path).exclude(output=None).exclude(origin="", is_private=False)
    for call in iterate_decodable(calls.select_related("output").order_by("-pk"), 20):
        if call.output is not None:
            given = read_arguments(call.input)
            source = name_source(call.name, call.origin, given, is_private=call.is_private)
            content = read_content(call.output.text)
            # A failure is told in words of the call, and a file may have been written by one.
            is_theirs = call.state == "ok" and call.origin in _OTHERS
            yield SourceText(
                source,
                read_result_text(content or ""),
                is_whole=content is not None,
                given_at=call.answer_id if is_theirs else None,
            )


def list_arguments(conversation: Conversation) -> list[GivenArguments]:
    """Return the arguments of all calls of the path, whether they ran or not."""
    calls = ToolCall.objects.filter(build_path_condition("turn", conversation))
    rows = calls.order_by("pk").values_list("answer_id", "origin", "input")
    return [
        GivenArguments(answer, origin, read_arguments(given))
        for answer, origin, given in read_decodable(lambda: list(rows))
    ]


def _iterate_prompts(conversation: Conversation, *, with_pdfs: bool) -> Iterator[SourceText]:
    for content in list_typed(conversation):
        yield SourceText(Source("typed", is_private=False), content, given_at=0)
    pdfs = MOST_PDFS if with_pdfs else 0
    documents = (one for one in _list_files(conversation) if one[1]["type"] == "document")
    for source, block in reversed(list(documents)):
        text: str | None = None
        is_pdf = block["source"].get("media_type") == PDF
        if block["source"].get("media_type") == TEXT or (is_pdf and pdfs):
            pdfs -= is_pdf
            text = _read_file(conversation, block, is_pdf=is_pdf)
        yield SourceText(source, text or "", is_whole=text is not None, given_at=0)


def _read_file(conversation: Conversation, block: dict[str, Any], *, is_pdf: bool) -> str | None:
    """Return the text of an attached or imported file; None when it cannot be read."""
    named, data = find_reference(block), block["source"].get("data")
    if named:
        data = read_attachment_texts(conversation.pk, [named.digest]).get(named.digest, data)
    if not isinstance(data, str):
        return None
    try:
        if not is_pdf:
            return data
        person = str(conversation.owner_id)
        return extract_text(base64.b64decode(data), "file.pdf", person=person)
    except (ToolError, ValueError):
        logger.info("an attached PDF could not be compared")
        return None


def list_typed(conversation: Conversation, *, has_run: bool = False) -> list[str]:
    """Return the texts that the person wrote on any path, newest first.

    `has_run`: without those that came with an import, which somebody else may have written.
    """
    # The prompt of a turn that continues a cut answer is generated.
    theirs = Q(turn=None) | Q(turn__continues=None)
    if has_run:
        # A turn that answers again repeats the prompt of its first one, which may be imported.
        theirs &= Q(turn__lease_generation__gt=0, turn__retry_of=None)
    prompts = Message.objects.filter(theirs, conversation=conversation, kind="prompt")
    contents = prompts.order_by("-seq").values_list("content", flat=True)
    return [
        str(block["text"])
        for content in read_decodable(lambda: list(contents))
        for block in read_blocks(content)
        if block["type"] == "text"
    ]


def describe_origin(key: str) -> tuple[Origin, str]:
    """Return origin and name of a recorded source; older records have the name of a tool alone."""
    origin, sign, name = key.partition(":")
    return (cast("Origin", origin), name) if sign else ("", key)
