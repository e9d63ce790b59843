"""The form of an MCP server: lists as lines; of secrets only the names are shown.

A secret's value is entered here and never shown again: a line whose value is the mask keeps the
stored value, and a missing line removes it. Values that no key of the site opens have no lines, and
stay as long as none is entered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from conversations.conf import conf
from conversations.models import McpServer
from conversations.rendering.numbers import write_number
from conversations.toolbox.secrets import MASK, SecretUnreadable, open_values
from tools.framework.errors import ToolError
from tools.http.targets import format_host_port, parse_url

if TYPE_CHECKING:
    _Form = forms.ModelForm[McpServer]
else:
    _Form = forms.ModelForm

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
#: Headers that the client sets itself.
_OURS = frozenset(
    {"host", "connection", "content-length", "content-type", "transfer-encoding", "accept",
     "accept-encoding", "mcp-session-id", "mcp-protocol-version"}
)  # fmt: skip
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")
MOST_LINES = 100


class _Lines(forms.CharField):
    """A text field of lines; browsers send other line ends than the stored ones."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


def _lines(help_text: Any, label: Any, rows: int = 4) -> _Lines:
    area = forms.Textarea(attrs={"rows": rows, "spellcheck": "false", "autocomplete": "off"})
    return _Lines(
        required=False,
        widget=area,
        label=label,
        help_text=help_text,
        max_length=50_000,
        strip=False,
    )


class ServerForm(_Form):
    argument_lines = _lines(
        _("One per line, passed on as they are: there is no shell. Do not put secrets here."),
        _("Arguments"),
    )
    environment_lines = _lines(
        _(
            "NAME=value, one per line: the whole environment of the process. PATH is /bin:/usr/bin"
            " unless you set it. Values are stored encrypted and never shown again."
        ),
        _("Environment"),
    )
    header_lines = _lines(
        _(
            "Name: value, one per line, such as Authorization: Bearer … Values are stored encrypted"
            " and never shown again."
        ),
        _("Headers"),
    )
    allowed_lines = _lines(
        _("Names of the tools that may be approved at all, one per line; empty: any."),
        _("Tools"),
        3,
    )
    is_superuser = False

    class Meta:
        model = McpServer
        fields = (
            "name",
            "note",
            "transport",
            "command",
            "url",
            "is_enabled",
            "is_private",
            "deadline",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        server = self.instance
        # Kept before validation, which writes into the instance.
        self._origin, self._keeps_secrets = _origin(server.url), False
        self._stored = {
            "environment": _stored(server.sealed_environment),
            "headers": _stored(server.sealed_headers),
        }
        masked = {name: "\n".join(f"{key}{_SIGN[name]}{MASK}" for key in sorted(found or ()))
                  for name, found in self._stored.items()}  # fmt: skip
        initial = {
            "argument_lines": "\n".join(server.arguments),
            "allowed_lines": "\n".join(server.allowed_tools),
            "environment_lines": masked["environment"],
            "header_lines": masked["headers"],
        }
        for name, text in initial.items():
            if name in self.fields:
                self.fields[name].initial = text
        if server.pk and "name" in self.fields:
            # The name of the server is part of its tools' names.
            self.fields["name"].disabled = True

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if not url:
            return ""
        try:
            found = parse_url(url)
        except ToolError as error:
            raise ValidationError(str(error)) from error
        if found.scheme not in ("http", "https") or not found.host or found.userinfo:
            raise ValidationError(
                _("Write http:// or https://, a host, and no user name or password.")
            )
        return url

    def clean_deadline(self) -> int:
        seconds: int = self.cleaned_data["deadline"]
        if seconds > conf.max_tool_seconds:
            words = _(
                "On this site no call of a tool takes more than %(count)s seconds"
                " (AGENTWEB_MAX_TOOL_SECONDS)."
            )
            raise ValidationError(words % {"count": write_number(conf.max_tool_seconds)})
        return seconds

    def clean_environment_lines(self) -> dict[str, str] | None:
        return self._secrets("environment", _variable)

    def clean_header_lines(self) -> dict[str, str] | None:
        return self._secrets("headers", _header)

    def clean_argument_lines(self) -> list[str]:
        return _split(self.cleaned_data["argument_lines"])

    def clean_allowed_lines(self) -> list[str]:
        return [line.strip() for line in _split(self.cleaned_data["allowed_lines"]) if line.strip()]

    def clean(self) -> dict[str, Any]:
        super().clean()
        found = self.cleaned_data
        is_command = found.get("transport") == "stdio"
        wanted, other = ("command", "url") if is_command else ("url", "command")
        if not found.get(wanted) and wanted not in self.errors:
            self.add_error(wanted, _("This transport needs it."))
        if found.get(other):
            self.add_error(other, _("This transport does not use it: leave it empty."))
        touched = {"transport", "command", "argument_lines", "environment_lines"}
        if is_command and touched & set(self.changed_data):
            self._demand_commands()
        if "url" in found and self._keeps_secrets and _origin(found["url"]) != self._origin:
            self.add_error(
                "header_lines",
                _("Another host is not given the stored values: enter them anew."),
            )
        return found

    def _demand_commands(self) -> None:
        if not self.is_superuser:
            self.add_error(
                "transport", _("Only a superuser may have a command run on this machine.")
            )
        if not conf.mcp_commands:
            self.add_error("transport", _("Commands are switched off: AGENTWEB_MCP_COMMANDS."))

    def _secrets(self, kind: str, read: Callable[[str], tuple[str, str]]) -> dict[str, str] | None:
        """Return the values; None where those that cannot be opened stay."""
        stored, found = self._stored[kind], dict[str, str]()
        for line in _split(self.cleaned_data[f"{kind.removesuffix('s')}_lines"]):
            if not line.strip():
                continue
            name, value = read(line)
            if value == MASK:
                if stored is None or name not in stored:
                    raise ValidationError(
                        _("%(name)s has no stored value to keep.") % {"name": name}
                    )
                value = stored[name]
                self._keeps_secrets = True
            found[name] = value
        if stored is None and not found:
            self._keeps_secrets = True
            return None
        return found


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL; "" for an invalid one."""
    if not url:
        return ""
    found = parse_url(url)
    return f"{found.scheme}://{format_host_port(found)}"


_SIGN = {"environment": "=", "headers": ": "}


def _split(text: str) -> list[str]:
    lines = text.split("\n") if text else []
    if len(lines) > MOST_LINES:
        raise ValidationError(_("At most %(count)d lines.") % {"count": MOST_LINES})
    if any("\0" in line for line in lines):
        raise ValidationError(_("No NUL characters."))
    return lines


def _variable(line: str) -> tuple[str, str]:
    name, sign, value = line.partition("=")
    if not sign or not _VARIABLE.fullmatch(name.strip()):
        raise ValidationError(_("Write each line as NAME=value."))
    return name.strip(), value


def _header(line: str) -> tuple[str, str]:
    name, sign, value = line.partition(":")
    name, value = name.strip(), value.strip()
    if not sign or not _HEADER.fullmatch(name):
        raise ValidationError(_("Write each line as Name: value."))
    if name.lower() in _OURS:
        raise ValidationError(_("The header %(name)s is not yours to set.") % {"name": name})
    if value != MASK and not _VALUE.fullmatch(value):
        raise ValidationError(
            _("The value of %(name)s has characters that no header may have.") % {"name": name}
        )
    return name, value


def _stored(sealed: str) -> dict[str, str] | None:
    """Return the stored values; None where they cannot be opened."""
    try:
        return open_values(sealed)
    except SecretUnreadable:
        return None
