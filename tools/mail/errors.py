"""Errors of mail, worded for the model and for the page of mail accounts.

Of a server's message only a short piece is quoted, and nothing of its answer to a log-in: some
servers repeat the command they refuse, password included.
"""

from __future__ import annotations

from tools.framework.errors import ToolError


class NoAccountError(ToolError):
    code = "no_mail_account"


class MailRefusedError(ToolError):
    """The server refused a command."""

    code = "mail_refused"


class LoginError(ToolError):
    code = "mail_login"


class MailError(ToolError):
    """The server could not be reached, or violated the protocol."""

    code = "mail_failed"


class MessageMissingError(ToolError):
    code = "mail_missing"
