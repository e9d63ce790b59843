"""What people read of a tool call: one short sentence that says what is done.

It is in the present while the call runs and in the past once it has ended. A call that did not end
well is named by its tool alone, so that nothing is said to be done that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from conversations.rendering.links import read_host
from conversations.toolbox.tool_labels import has_label, name_tool

LONGEST = 80
_RUNNING, _WHAT = frozenset({"planned", "started"}), "%(what)s"

Words = tuple[str | Promise, str | Promise]


@dataclass(frozen=True, slots=True)
class CallLabel:
    """A sentence with what the call is about, the words before that and after it."""

    before: str
    what: str = ""
    after: str = ""


#: The sentences about a call and what they name; first while it runs, then once it ended.
_ABOUT: dict[str, Words] = {
    "delete_file": (_("Deleting %(what)s"), _("Deleted %(what)s")),
    "draft_mail": (_("Drafting an e-mail to %(what)s"), _("Drafted an e-mail to %(what)s")),
    "edit_file": (_("Editing %(what)s"), _("Edited %(what)s")),
    "fetch_url": (_("Reading a page of %(what)s"), _("Read a page of %(what)s")),
    "list_files": (_("Listing the files in %(what)s"), _("Listed the files in %(what)s")),
    "move_file": (_("Moving %(what)s"), _("Moved %(what)s")),
    "read_file": (_("Reading %(what)s"), _("Read %(what)s")),
    "recall": (_("Looking up “%(what)s” again"), _("Looked up “%(what)s” again")),
    "search_files": (
        _("Searching the workspace for “%(what)s”"),
        _("Searched the workspace for “%(what)s”"),
    ),
    "search_mail": (_("Searching the mail for “%(what)s”"), _("Searched the mail for “%(what)s”")),
    "send_mail": (_("Sending an e-mail to %(what)s"), _("Sent an e-mail to %(what)s")),
    "web_search": (_("Searching the web for “%(what)s”"), _("Searched the web for “%(what)s”")),
    "write_file": (_("Writing %(what)s"), _("Wrote %(what)s")),
}
_ABOUT["web_fetch"] = _ABOUT["fetch_url"]
#: The sentences about a call that names nothing.
_ALONE: dict[str, Words] = {
    "current_time": (_("Looking at the clock"), _("Looked at the clock")),
    "list_files": (_("Listing the files of the workspace"), _("Listed the files of the workspace")),
    "list_mail_folders": (_("Listing the mail folders"), _("Listed the mail folders")),
    "read_mail": (_("Opening an e-mail"), _("Opened an e-mail")),
    "recall": (_("Reading an earlier result again"), _("Read an earlier result again")),
    "save_attachment": (_("Saving an attachment"), _("Saved an attachment")),
    "search_files": (_("Searching the workspace"), _("Searched the workspace")),
    "search_mail": (_("Searching the mail"), _("Searched the mail")),
}
_OTHER: Words = (_("Using %(what)s"), _("Used %(what)s"))
#: The sentences about several calls of one tool.
_SEVERAL: dict[str, Words] = {
    "edit_file": (
        ngettext_lazy("Making %(n)s change to files", "Making %(n)s changes to files", "n"),
        ngettext_lazy("Made %(n)s change to files", "Made %(n)s changes to files", "n"),
    ),
    "fetch_url": (
        ngettext_lazy("Reading %(n)s page", "Reading %(n)s pages", "n"),
        ngettext_lazy("Read %(n)s page", "Read %(n)s pages", "n"),
    ),
    "read_file": (
        ngettext_lazy("Reading %(n)s file", "Reading %(n)s files", "n"),
        ngettext_lazy("Read %(n)s file", "Read %(n)s files", "n"),
    ),
    "read_mail": (
        ngettext_lazy("Reading %(n)s e-mail", "Reading %(n)s e-mails", "n"),
        ngettext_lazy("Read %(n)s e-mail", "Read %(n)s e-mails", "n"),
    ),
    "web_search": (
        ngettext_lazy("Making %(n)s search of the web", "Making %(n)s searches of the web", "n"),
        ngettext_lazy("Made %(n)s search of the web", "Made %(n)s searches of the web", "n"),
    ),
    "write_file": (
        ngettext_lazy("Writing %(n)s file", "Writing %(n)s files", "n"),
        ngettext_lazy("Wrote %(n)s file", "Wrote %(n)s files", "n"),
    ),
}
_SEVERAL["web_fetch"] = _SEVERAL["fetch_url"]
#: The sentences about several pages of one site.
_OF_SITE: Words = (
    ngettext_lazy("Reading %(n)s page of %(what)s", "Reading %(n)s pages of %(what)s", "n"),
    ngettext_lazy("Read %(n)s page of %(what)s", "Read %(n)s pages of %(what)s", "n"),
)
_MIXED: Words = (
    ngettext_lazy("Using %(n)s tool", "Using %(n)s tools", "n"),
    ngettext_lazy("Used %(n)s tool", "Used %(n)s tools", "n"),
)


def _first(*names: str) -> Callable[[dict[str, Any]], str]:
    def find(given: dict[str, Any]) -> str:
        return next((text for name in names if (text := _line(given.get(name)))), "")

    return find


def _host(given: dict[str, Any]) -> str:
    return read_host(_line(given.get("url")))


_SUBJECTS: dict[str, Callable[[dict[str, Any]], str]] = {
    **dict.fromkeys(("delete_file", "edit_file", "list_files", "move_file"), _first("path")),
    **dict.fromkeys(("read_file", "write_file"), _first("path")),
    **dict.fromkeys(("draft_mail", "send_mail"), _first("to")),
    **dict.fromkeys(("fetch_url", "web_fetch"), _host),
    "recall": _first("query"),
    "search_files": _first("text", "names"),
    "search_mail": _first("text", "subject", "sender", "recipient"),
    "web_search": _first("query"),
}


def find_subject(name: str, given: dict[str, Any]) -> str:
    """Return what a call is about, on one line; "" where its sentence names nothing."""
    find = _SUBJECTS.get(name)
    return find(given) if find else ""


def _line(value: object) -> str:
    """Return a text, or a list of texts, on one line that is not too long."""
    texts = value if isinstance(value, list) else [value]
    words = " ".join(", ".join(each for each in texts if isinstance(each, str)).split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def phrase_call(name: str, subject: str, state: str) -> CallLabel:
    """Return the sentence of one call in the language of the reader."""
    label = str(name_tool(name))
    if state not in _RUNNING and state != "ok":
        return CallLabel(f"{label} · " if subject else label, subject)
    if subject and name in _ABOUT:
        return _put(_ABOUT[name], state, subject)
    if name in _ALONE:
        return _put(_ALONE[name], state, "")
    return CallLabel(label) if has_label(name) else _put(_OTHER, state, label)


def phrase_calls(names: Sequence[str], subjects: Sequence[str], *, is_running: bool) -> CallLabel:
    """Return the sentence of several calls: what they do together, or how many they are."""
    state, first = "started" if is_running else "ok", names[0]
    words, site = _SEVERAL.get(first, _MIXED), ""
    if len(set(names)) > 1:
        words = _MIXED
    elif first in ("fetch_url", "web_fetch") and subjects[0] and len(set(subjects)) == 1:
        words, site = _OF_SITE, subjects[0]
    return _put(words, state, site, len(names))


def name_calls(names: Sequence[str]) -> CallLabel:
    """Return the names of the tools of several calls, none of which ended well."""
    return CallLabel(" · ".join(dict.fromkeys(str(name_tool(name)) for name in names)))


def is_counted(names: Sequence[str]) -> bool:
    """Return whether the sentence of several calls says what they do, not only how many."""
    return len(set(names)) == 1 and names[0] in _SEVERAL


def _put(words: Words, state: str, what: str, n: int = 0) -> CallLabel:
    # The place stays a place: what stands there is isolated from the direction of the sentence.
    text = words[0] if state in _RUNNING else words[1]
    before, _place, after = str(text % {"what": _WHAT, "n": n}).partition(_WHAT)
    return CallLabel(before, what, after)
