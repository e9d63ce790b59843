"""What can go wrong with mail, in words for the model and for the page where accounts are set.

The words of a server are quoted short, and never what it says about a log-in: some repeat the
command they refuse, password and all.
"""

from __future__ import annotations

from tools.framework.errors import ToolError


class NoAccountError(ToolError):
    code = "no_mail_account"


class MailRefusedError(ToolError):
    """The server understood and said no."""

    code = "mail_refused"


class LoginError(ToolError):
    code = "mail_login"


class MailError(ToolError):
    """The server could not be reached, or spoke as none should."""

    code = "mail_failed"


class MessageMissingError(ToolError):
    code = "mail_missing"
