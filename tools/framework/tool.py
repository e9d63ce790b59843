"""A tool is one typed async function.

`@tool` turns its signature into the schema the model is given and its first paragraph into the
description, and declares what a crash or an approval must know (`effect`) and what the context
engine may do with its results (`results`). A tool gets everything it may touch from its context:
it takes no user, no root folder and no key from its input, so no input can name another's.
"""

from __future__ import annotations

import inspect
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

#: read: nothing changes. keyed: a repeat with the same input changes nothing more. write: neither.
Effect = Literal["read", "keyed", "write"]
#: head_tail, json: how a long result is shortened. keep: sent whole at first, compacted later.
#: verbatim: never shortened and never summarised away.
Results = Literal["head_tail", "json", "keep", "verbatim"]
Content: TypeAlias = str | list[dict[str, Any]]

P = ParamSpec("P")


class Originals(Protocol):
    """The full texts of this conversation, by tool_use id or message id."""

    async def find(self, id: str) -> str | None: ...


def ignore_progress(_said: str | float) -> None:
    """Take progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may touch: the user's own things and nothing else."""

    user_id: str
    workspace: Workspace
    originals: Originals
    web: WebAccess
    now: Callable[[], datetime]
    cancelled: Callable[[], bool]
    #: what a keyed tool tells the other side, so that a repeat of this very call changes nothing
    key: str = ""
    #: tell people how far a long call is: words, or a share from 0 to 1; nothing of it is stored
    progress: Callable[[str | float], None] = ignore_progress
    #: the mail accounts of the user
    mail: Mailboxes = field(default_factory=NoMailboxes)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Content for the model; details for people, which the model is never given."""

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
    #: seconds until the call is given up
    timeout: float
    #: bytes of result text that are kept
    max_bytes: int
    #: what it gives is the person's own: mail, files
    is_private: bool
    #: who is told something by a call with these arguments ("host:port", "mail:a@b", "mcp:name");
    #: None for a tool that tells nobody
    destination: Callable[[dict[str, Any]], str] | None
    run: Callable[[ToolContext, dict[str, Any]], Awaitable[ToolResult]]
    #: what is checked of a call's arguments against the schema; raises InputError
    check: Callable[[object, dict[str, Any]], dict[str, Any]] = validate_arguments
    #: what a person must have for it, such as "mail": a name that the shell knows how to look up
    needs: str = ""


def tool(
    *,
    icon: Icon,
    effect: Effect,
    results: Results = "head_tail",
    timeout: float = 30,
    max_bytes: int = 1_000_000,
    is_private: bool = False,
    destination: Callable[[dict[str, Any]], str] | None = None,
    needs: str = "",
) -> Callable[[Callable[Concatenate[ToolContext, P], Awaitable[str | ToolResult]]], Tool]:
    """Make a Tool of one async function whose first argument is the context."""

    def make(function: Callable[Concatenate[ToolContext, P], Awaitable[str | ToolResult]]) -> Tool:
        name = getattr(function, "__name__", "")
        description = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
        if not description:
            raise SignatureError(f"{name}: a tool needs a docstring, it is what the model reads")

        if icon not in ICONS:
            raise SignatureError(f"{name}: there is no icon {icon!r}, see tools/framework/icons.py")
        call: Callable[..., Awaitable[str | ToolResult]] = function

        async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolResult:
            answer = await call(context, **arguments)
            return ToolResult(answer) if isinstance(answer, str) else answer

        return Tool(
            name=name,
            description=description,
            input_schema=build_input_schema(function),
            icon=icon,
            effect=effect,
            results=results,
            timeout=timeout,
            max_bytes=max_bytes,
            is_private=is_private,
            destination=destination,
            run=run,
            needs=needs,
        )

    return make
