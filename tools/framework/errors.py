"""Errors that the model reads.

The text of a ToolError is sent to the model unchanged: it says what was wrong and how to correct
it, and never holds a path of this machine, an address that a name resolved to, or a secret. Any
other exception is a bug: the model gets its class, the log gets the traceback.
"""

from __future__ import annotations

import errno
from typing import Self


class ToolError(Exception):
    """A refusal or failure the model can act upon."""

    code = "tool_error"
    #: What was wrong, by which a page finds its own words; the model gets neither.
    reason = ""

    def __init__(self, message: str, **data: object) -> None:
        super().__init__(message)
        self.data = data
        self.values: dict[str, str | int] = {}

    def because(self, reason: str, **values: str | int) -> Self:
        """Name the reason and its values for people."""
        self.reason, self.values = reason, values
        return self


class InputError(ToolError):
    code = "bad_input"


class UnknownOriginalError(ToolError):
    code = "unknown_original"


class UnknownZoneError(ToolError):
    code = "unknown_zone"


class PathRefusedError(ToolError):
    code = "path_refused"


class FileMissingError(ToolError):
    code = "file_missing"


class FileRefusedError(ToolError):
    code = "file_refused"


class LockedFileError(FileRefusedError):
    """A password is needed to read the file."""


class OldFormatError(FileRefusedError):
    """An Office file of before 2007."""


class OutlookMailError(FileRefusedError):
    """A mail in the format of Outlook alone."""


class FileChangedError(ToolError):
    code = "file_changed"


class QuotaError(ToolError):
    code = "quota"


class WorkspaceBusyError(ToolError):
    code = "workspace_busy"


class IsolationError(ToolError):
    """Work in a process of its own ended without a result."""

    code = "limits"


class AddressRefusedError(ToolError):
    code = "address_refused"


class RedirectRefusedError(ToolError):
    code = "redirect_refused"


class FetchError(ToolError):
    code = "fetch_failed"


class BodyRefusedError(ToolError):
    code = "body_refused"


def is_of_full_disk(error: BaseException | None) -> bool:
    """Tell whether a write failed because the disk, the user's quota or a file was full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
