"""What a tool is: one typed async function, and what `@tool` declares of it.

The signature becomes the input schema, the first paragraph of the docstring the description.
`effect` decides what happens after a crash and whether a person must approve, `results` what the
context engine may do with the results, `action` what the record of actions keeps of a call when its
messages are removed. A tool gets the user, the root folder and the key from its context and never
from its input, so no input can name those of another person.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias

from tools.framework.icons import ICONS, Icon
from tools.framework.outside_access import WebAccess
from tools.framework.schema import SignatureError, build_input_schema
from tools.framework.validation import validate_arguments
from tools.mail.accounts import Mailboxes, NoMailboxes
from tools.workspace.workspace import Workspace

#: read: changes nothing. keyed: a repeat with the same key changes nothing more. write: neither.
Effect = Literal["read", "keyed", "write"]
#: head_tail, json: how a long result is shortened. keep: sent in full at first, compacted later.
#: verbatim: never shortened and never replaced by a summary.
Results = Literal["head_tail", "json", "keep", "verbatim"]
#: Where results come from: the person's workspace or mail, a page of the web, an MCP server; "":
#: neither, such as the time of day, or texts of the conversation itself.
Origin = Literal["", "workspace", "mail", "page", "mcp"]
#: Origins whose results are the person's own, so private; of an MCP server its settings say that.
PRIVATE: frozenset[Origin] = frozenset({"workspace", "mail"})
Content: TypeAlias = str | list[dict[str, Any]]

P = ParamSpec("P")
_SLOT = re.compile(r"\{(\w+)(?::host)?\}")


@dataclass(frozen=True, slots=True)
class FoundOriginal:
    """An original that a search found: its id, one line that names it, and its best passage.

    `is_shown`: the model has it in view as a whole. `also` is the id of the other half of a call,
    its input or its result; "" if there is none. `copies` are the ids of near copies of it.
    """

    id: str
    label: str
    chars: int
    passage: str
    is_shown: bool = False
    also: str = ""
    copies: tuple[str, ...] = ()


class Originals(Protocol):
    """The full texts of this conversation: by the id of a call or a message, or by their words."""

    async def find(self, id: str) -> str | None: ...

    async def search(self, query: str, most: int) -> list[FoundOriginal]: ...


def ignore_progress(_progress: str | float) -> None:
    """Do nothing with the progress of a call."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may touch: what belongs to its user, and nothing else."""

    user_id: str
    workspace: Workspace
    originals: Originals
    web: WebAccess
    now: Callable[[], datetime]
    cancelled: Callable[[], bool]
    #: idempotency key of the call, for keyed tools
    key: str = ""
    #: when the call was first started, if it may have been done then: the server stopped meanwhile
    repeats: datetime | None = None
    #: shows people the progress of a long call: a text, or a share from 0 to 1; not stored
    progress: Callable[[str | float], None] = ignore_progress
    #: the mail accounts of the user
    mail: Mailboxes = field(default_factory=NoMailboxes)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Content for the model, and details for people, which are never sent to the model."""

    content: Content
    is_error: bool = False
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    input_schema: dict[str, Any]
    icon: Icon
    effect: Effect
    results: Results
    #: seconds until a call is cancelled
    timeout: float
    #: bytes of a result that are kept
    max_bytes: int
    #: where its results come from, and whether they are the person's own: mail, files
    origin: Origin
    is_private: bool
    #: names who receives data by a call with these arguments ("host:port", "mail:a@b",
    #: "mcp:name"); None for a tool that sends nothing
    destination: Callable[[dict[str, Any]], str] | None
    run: Callable[[ToolContext, dict[str, Any]], Awaitable[ToolResult]]
    #: returns the arguments of a call, checked against the schema; raises InputError
    check: Callable[[object, dict[str, Any]], dict[str, Any]] = validate_arguments
    #: what a person must have set up first, such as "mail"; the application checks it
    needs: str = ""
    #: names of the arguments that may hold long texts; None: all of them
    long_arguments: frozenset[str] | None = frozenset()
    #: what a call did, for the record of actions, with inputs in braces (`sent mail to {to}`;
    #: `{url:host}`: the host of a URL); "": nothing is recorded; None: the call's input is
    action: str | None = None


def tool(
    *,
    icon: Icon,
    effect: Effect,
    results: Results = "head_tail",
    timeout: float = 30,
    max_bytes: int = 1_000_000,
    origin: Origin = "",
    destination: Callable[[dict[str, Any]], str] | None = None,
    needs: str = "",
    long_arguments: tuple[str, ...] = (),
    action: str | None = None,
) -> Callable[[Callable[Concatenate[ToolContext, P], Awaitable[str | ToolResult]]], Tool]:
    """Make a Tool of an async function that takes the context first; raises SignatureError."""

    def make(function: Callable[Concatenate[ToolContext, P], Awaitable[str | ToolResult]]) -> Tool:
        name = getattr(function, "__name__", "")
        _demand_known_icon(name, icon)
        return Tool(
            name=name,
            description=_read_description(name, function),
            input_schema=_build_schema(name, function, action),
            icon=icon,
            effect=effect,
            results=results,
            timeout=timeout,
            max_bytes=max_bytes,
            origin=origin,
            is_private=origin in PRIVATE,
            destination=destination,
            run=_make_runner(function),
            needs=needs,
            long_arguments=frozenset(long_arguments),
            action="" if effect == "read" and not action else action,
        )

    return make


def _make_runner(
    function: Callable[..., Awaitable[str | ToolResult]],
) -> Callable[[ToolContext, dict[str, Any]], Awaitable[ToolResult]]:
    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolResult:
        answer = await function(context, **arguments)
        return ToolResult(answer) if isinstance(answer, str) else answer

    return run


def _demand_known_icon(name: str, icon: str) -> None:
    if icon not in ICONS:
        raise SignatureError(f"{name}: there is no icon {icon!r}, see tools/framework/icons.py")


def _build_schema(name: str, function: Callable[..., Any], action: str | None) -> dict[str, Any]:
    """Build the schema of the inputs; the action must name some of them."""
    schema = build_input_schema(function)
    if unknown := set(_SLOT.findall(action or "")) - schema["properties"].keys():
        raise SignatureError(f"{name}: its action names no input {', '.join(sorted(unknown))}")
    return schema


def _read_description(name: str, function: Callable[..., Any]) -> str:
    """Return the first paragraph of the docstring on one line."""
    description = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    if not description:
        raise SignatureError(f"{name}: a tool needs a docstring, it is what the model reads")
    return description
