"""How things ended, in words for people."""

from __future__ import annotations

from django.utils.translation import gettext as _


def chip(state: str, reason: str) -> str:
    """Say how a turn ended when it did not end plainly; "" when it did."""
    match state, reason:
        case "cancelled", _reason:
            return _("Stopped")
        case "interrupted", _reason:
            return _("Interrupted. What was written is kept.")
        case "failed", "budget":
            return _("Over budget")
        case "failed", "context":
            return _("Too long for the model")
        case "failed", _reason:
            return _("Failed")
        case _state, "max_tokens":
            return _("Cut at the length limit")
        case _state, "refusal":
            return _("The model declined to answer")
        case _state, "loop_limit":
            return _("Stopped at the limit of steps for one turn")
        case _state, "context":
            return _("The context is full")
        case _state, "truncated":
            return _("The answer ended unexpectedly")
        case _:
            return ""


def explained(kind: str) -> str:
    """Say what a kind of transformation does."""
    words = {
        "ingest": _("shortened a tool result before it was first sent"),
        "compaction": _("shortened old tool results"),
        "rounds": _("summarised finished tool rounds"),
        "summary": _("replaced messages by a summary"),
        "trim": _("dropped whole exchanges"),
        "shrink": _("shortened the largest blocks"),
        "rebind": _("dropped thinking that another request signed"),
        "restore": _("brought an original back"),
    }
    return f"{kind}: {words[kind]}"
