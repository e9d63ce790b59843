"""What people read of a tool: its label and a sentence; the model reads the tool's own words.

A tool of a server has no label here: it is shown by its own name, written as words, beside that
of its server.
"""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TOOL_LABELS: dict[str, tuple[Promise, Promise]] = {
    "current_time": (_("Look at the clock"), _("Tells the date and time in any time zone.")),
    "delete_file": (
        _("Delete a file"),
        _("Moves a file of your workspace to the trash; you can bring it back for a while."),
    ),
    "draft_mail": (
        _("Draft an e-mail"),
        _("Puts a draft into your mailbox. You change it and send it yourself."),
    ),
    "edit_file": (_("Edit a file"), _("Changes part of a text file of your workspace.")),
    "fetch_url": (
        _("Read a web page"),
        _("Fetches a page or document from the web and reads its text."),
    ),
    "list_files": (_("List files"), _("Shows which files are in your workspace.")),
    "list_mail_folders": (_("List mail folders"), _("Shows your mail accounts and their folders.")),
    "move_file": (_("Move a file"), _("Moves or renames a file or folder of your workspace.")),
    "read_file": (
        _("Read a file"),
        _("Reads a file of your workspace: text, tables, PDF and Word files."),
    ),
    "read_mail": (_("Read an e-mail"), _("Reads one e-mail and lists what is attached to it.")),
    "recall": (
        _("Look something up again"),
        _("Searches what was shortened, summarised or left out of this chat, and reads it again."),
    ),
    "save_attachment": (
        _("Save an attachment"),
        _("Saves what is attached to an e-mail in your workspace."),
    ),
    "search_files": (_("Search files"), _("Finds text in the files of your workspace.")),
    "search_mail": (_("Search e-mails"), _("Finds e-mails by sender, subject, words or date.")),
    "send_mail": (_("Send an e-mail"), _("Sends an e-mail once you have agreed to it.")),
    "write_file": (_("Write a file"), _("Creates a text file in your workspace or replaces one.")),
}


#: Tools that the API runs; they are in no list of tools.
_SERVED: dict[str, Promise] = {
    "bash_code_execution": _("Run code"),
    "code_execution": _("Run code"),
    "text_editor_code_execution": _("Run code"),
    "web_fetch": _("Read a web page"),
    "web_search": _("Search the web"),
}


def name_tool(name: str) -> str | Promise:
    """Return the label of a tool, or its name written as words and the server that has it."""
    if name in TOOL_LABELS:
        return TOOL_LABELS[name][0]
    if name in _SERVED:
        return _SERVED[name]
    match name.split("__", 2):
        case ["mcp", server, tool] if server and tool:
            return f"{_write_as_words(tool)} ({server})"
    return _write_as_words(name)


def has_label(name: str) -> bool:
    """Return whether the label of a tool is ours, not made of its name."""
    return name in TOOL_LABELS or name in _SERVED


def _write_as_words(name: str) -> str:
    words = " ".join(name.replace("_", " ").replace("-", " ").split()) or name
    return words[:1].upper() + words[1:]


def describe_tool(name: str, description: str) -> str | Promise:
    """Return the sentence of a tool, or the words of its server."""
    return TOOL_LABELS[name][1] if name in TOOL_LABELS else description
