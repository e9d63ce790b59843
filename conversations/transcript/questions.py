"""Open questions as a person sees them: who would be told what, why it asks, the whole call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.utils.translation import gettext as _

from conversations.log.findings import read_leniently
from conversations.models import Approval, Turn
from conversations.rendering.visible import reveal_hidden
from conversations.toolbox.approvals import is_intact, read_words
from conversations.toolbox.sources import describe_origin, read_arguments
from conversations.toolbox.tool_labels import name_tool

#: Sources that one sentence names.
MOST_SOURCES = 4
#: What receives something by a call: a site, readers of a mail, an MCP server; "": nobody outside.
Receiver = Literal["", "site", "mail", "server"]
_PLAIN_PORTS = (":443", ":80")


@dataclass(frozen=True, slots=True)
class LeavingWord:
    """A word of something private that the call carries, and where that is from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a person.

    `arguments` are complete, hidden characters made visible: each has a name and its value in
    pieces, True for those that are words of something private. With `is_damaged` it can only be
    denied.
    """

    id: int
    tool: str
    digest: str
    reason: str
    receiver: Receiver
    destination: str
    why: str
    words: tuple[LeavingWord, ...]
    arguments: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    expires_at: datetime
    is_damaged: bool = False

    @property
    def tool_label(self) -> str:
        return str(name_tool(self.tool))


def list_open_questions(turns: Iterable[Turn]) -> dict[int, tuple[Question, ...]]:
    """Return the open questions of waiting turns, by the turn's key."""
    waiting = [turn.pk for turn in turns if turn.state == "approval_wait"]
    found: dict[int, tuple[Question, ...]] = {}
    if not waiting:
        return found
    rows = Approval.objects.filter(call__turn__in=waiting, decision=None)
    rows = rows.select_related("call").order_by("call__answer_id", "call__position")
    for row in read_leniently(lambda: list(rows)):
        turn = row.call.turn_id
        found[turn] = (*found.get(turn, ()), _build_question(row))
    return found


def _build_question(row: Approval) -> Question:
    is_damaged = not is_intact(row)
    arguments = read_arguments(row.call.input)
    receiver, destination = _name_receiver(row.destination)
    words = name_words(read_words(row.words) or ())
    marks = _compile_marks(word.text for word in words)
    return Question(
        id=row.pk,
        tool=row.call.name,
        digest=row.arguments_digest,
        reason=row.reason,
        receiver=receiver,
        destination=destination,
        why=_explain_damage() if is_damaged else _explain(row, receiver),
        words=words,
        arguments=tuple(
            (reveal_hidden(name), _mark(_format_value(value), marks))
            for name, value in arguments.items()
        ),
        expires_at=row.expires_at,
        is_damaged=is_damaged,
    )


def name_words(words: Iterable[tuple[str, str]]) -> tuple[LeavingWord, ...]:
    """Return words and the keys of their sources as people read them."""
    return tuple(LeavingWord(reveal_hidden(word), describe_source(key)) for word, key in words)


def _name_receiver(destination: str) -> tuple[Receiver, str]:
    """Return the kind of receiver, and its name for people: a host without its usual port."""
    kind, _sign, name = destination.partition(":")
    match kind:
        case "":
            return "", ""
        case "mail":
            return "mail", reveal_hidden(", ".join(name.split(",")))
        case "mcp":
            return "server", reveal_hidden(name)
        case _:
            for port in _PLAIN_PORTS:
                destination = destination.removesuffix(port)
            return "site", reveal_hidden(destination)


def describe_source(key: str) -> str:
    """Return a recorded source in words that complete "The chat has read"."""
    origin, name = describe_origin(key)
    shown = reveal_hidden(name)
    match origin:
        case "typed":
            return _("what you typed")
        case "attached":
            return shown or _("an attached file")
        case "workspace":
            return shown or _("your workspace")
        case "mail":
            return _("your mail")
        case "page":
            return _("a page of %(host)s") % {"host": _name_receiver(name)[1]}
        case "mcp":
            return _("the server %(name)s") % {"name": shown}
        case "hidden":
            return _("characters in it that nobody can read")
        case "imported":
            return _("results of an imported chat")
        case _:
            return shown


def _explain_damage() -> str:
    return _("This question is damaged in the database. It can only be denied.")


def _explain(row: Approval, receiver: Receiver) -> str:
    """Return why it asks, as one or two sentences."""
    reason, sources = row.reason, row.sources.splitlines()
    typed = any(describe_origin(key)[0] == "typed" for key in sources)
    read = [describe_source(key) for key in sources if describe_origin(key)[0] != "typed"]
    facts = []
    if read:
        facts.append(_("the chat has read %(sources)s") % {"sources": _join(read)})
    if typed:
        facts.append(_("the request carries what you typed"))
    if reason == Approval.Reason.PRIVATE:
        facts.append(_UNNAMED[receiver]())
    said = "; ".join(facts)
    said = f"{said[:1].upper()}{said[1:]}." if said else ""
    match reason:
        case Approval.Reason.WRITE:
            return " ".join(filter(None, (_("What this does cannot be undone."), said)))
        case Approval.Reason.EGRESS:
            return " ".join(filter(None, (_("Nothing leaves this chat without you."), said)))
        case Approval.Reason.RULE:
            return " ".join(filter(None, (_("This site asks before this tool is used."), said)))
        case _:
            return said


_UNNAMED = {
    "": lambda: _("you have not mentioned who would be told"),
    "site": lambda: _("you have not mentioned this site"),
    "mail": lambda: _("you have not mentioned this address"),
    "server": lambda: _("this server would be told"),
}


def _join(names: list[str]) -> str:
    more = len(names) - MOST_SOURCES
    if more > 0:
        names = [*names[:MOST_SOURCES], _("%(count)s more") % {"count": more}]
    if len(names) == 1:
        return names[0]
    return _("%(first)s and %(last)s") % {"first": ", ".join(names[:-1]), "last": names[-1]}


def _compile_marks(words: Iterable[str]) -> re.Pattern[str] | None:
    found = sorted({re.escape(word) for word in words}, key=len, reverse=True)
    return re.compile("|".join(found), re.IGNORECASE) if found else None


def _mark(text: str, marks: re.Pattern[str] | None) -> tuple[tuple[str, bool], ...]:
    """Return a text in pieces, with True for what the pattern finds."""
    if marks is None:
        return ((text, False),)
    pieces, at = list[tuple[str, bool]](), 0
    for match in marks.finditer(text):
        pieces += [(text[at : match.start()], False), (match[0], True)]
        at = match.end()
    return tuple(piece for piece in [*pieces, (text[at:], False)] if piece[0])


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return reveal_hidden(value)
    return reveal_hidden(json.dumps(value, ensure_ascii=False, indent=2))
