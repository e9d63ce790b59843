"""Addresses within the inspector, and its numbers as people read them."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.utils.translation import gettext as _

from conversations.rendering.numbers import write_number

register = template.Library()


@register.simple_tag(takes_context=True)
def inspected(context: Context, name: str, *args: Any) -> str:
    """Return the address of an inspector page, for its owner or for review."""
    return str(context["subject"].address(name, *args))


@register.filter
def signed(number: int) -> str:
    """Format a difference with its sign."""
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return sign + write_number(abs(number))


@register.filter
def status_words(status: str) -> str:
    """Return the status of a call for people."""
    words = {
        "complete": _("complete"),
        "stopped": _("stopped"),
        "truncated": _("cut off"),
        "refused": _("refused"),
        "error": _("error"),
        "lost": _("lost"),
        "running": _("running"),
        "in doubt": _("in doubt"),
    }
    return words.get(status, status)


@register.filter
def error_words(code: str) -> str:
    """Return why a call failed for people."""
    words = {
        "invalid_request": _("not accepted"),
        "overflow": _("too long"),
        "signature": _("earlier thinking not accepted"),
    }
    return words.get(code, code.replace("_", " "))


@register.filter
def purpose_words(purpose: str) -> str:
    """Return the purpose of a call for people."""
    words = {"reply": _("Reply"), "summary": _("Summary"), "title": _("Title")}
    return words.get(purpose, purpose)
