"""MCP servers, the tools they list, and what administrators decided about both.

The model only ever gets `McpTool.approved`, the very text that an administrator approved; what the
server lists now is stored beside it and has no effect until it is approved too. Two texts are equal
if their digests are, which do not depend on the order of keys. The log of decisions is append-only
and contains the text that was decided on, so a server with a history is disabled and never deleted.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Chained

#: No underscore, so that `mcp__<server>__<tool>` is unambiguous.
NAME = RegexValidator(
    r"\A[a-z][a-z0-9-]{0,31}\Z",
    "Use lower case letters, digits and hyphens, a letter first, 32 at most.",
)
LONGEST_DEADLINE = 600


class McpServer(models.Model):
    class Transport(models.TextChoices):
        STDIO = "stdio", _("a command on this machine (stdio)")
        HTTP = "http", _("a URL (streamable HTTP)")

    class State(models.TextChoices):
        IDLE = "idle", _("not started")
        CONNECTING = "connecting", _("Connecting")
        CONNECTED = "connected", _("Connected")
        FAILED = "failed", _("Failed")

    name = models.CharField(max_length=32, unique=True, validators=[NAME])
    note = models.CharField(max_length=200, blank=True)
    transport = models.CharField(max_length=5, choices=Transport.choices)
    #: A program and its arguments; no shell is used.
    command = models.CharField(max_length=1_000, blank=True)
    arguments = models.JSONField(default=list, blank=True)
    url = models.CharField(_("URL"), max_length=2_000, blank=True)
    #: Sealed JSON objects (toolbox/secrets.py). A server gets no other environment variables.
    sealed_environment = models.TextField(blank=True, editable=False)
    sealed_headers = models.TextField(blank=True, editable=False)
    is_enabled = models.BooleanField(_("enabled"), default=False)
    #: Whether its tools return private data: mail, files.
    is_private = models.BooleanField(_("results are private"), default=False)
    #: Names of the tools that may be approved; empty: any.
    allowed_tools = models.JSONField(default=list, blank=True)
    deadline = models.PositiveSmallIntegerField(
        _("seconds a call may take"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_DEADLINE)],
    )
    state = models.CharField(
        max_length=10, choices=State.choices, default=State.IDLE, editable=False
    )
    state_since = models.DateTimeField(null=True, editable=False)
    last_seen_at = models.DateTimeField(null=True, editable=False)
    last_error = models.TextField(blank=True, editable=False)
    last_error_at = models.DateTimeField(null=True, editable=False)
    #: Its description of itself, and the protocol version in use.
    says = models.CharField(max_length=200, blank=True, editable=False)
    check_asked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("MCP server")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="mcpserver_one_place",
                condition=models.Q(transport="stdio", url="") & ~models.Q(command="")
                | models.Q(transport="http", command="") & ~models.Q(url=""),
            ),
            models.CheckConstraint(
                name="mcpserver_deadline",
                condition=models.Q(deadline__gte=1, deadline__lte=LONGEST_DEADLINE),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class McpTool(models.Model):
    class Effect(models.TextChoices):
        WRITE = "write", _("changes things")
        KEYED = "keyed", _("a repeat changes nothing more")
        READ = "read", _("only reads")

    server = models.ForeignKey(McpServer, on_delete=models.PROTECT, related_name="tools")
    #: The server's name for the tool, and the name by which the model calls it.
    name = models.CharField(max_length=200)
    call_name = models.CharField(max_length=128)
    #: JSON text of the definition and its digest: what was approved, and what is listed now.
    approved = models.TextField(blank=True)
    approved_digest = models.CharField(max_length=80, blank=True)
    #: The identity of the server for which it was approved (toolbox/mcp/server_identity.py).
    approved_server = models.CharField(max_length=80, blank=True, default="", db_default="")
    effect = models.CharField(max_length=5, choices=Effect.choices, default=Effect.WRITE)
    listed = models.TextField(blank=True)
    listed_digest = models.CharField(max_length=80, blank=True)
    rejected_digest = models.CharField(max_length=80, blank=True)
    #: Why the listed definition cannot be approved; empty if it can.
    flaw = models.CharField(max_length=300, blank=True)
    listed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("MCP tool")
        ordering = ["server", "name"]
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="mcptool_name"),
            models.CheckConstraint(
                name="mcptool_approved",
                condition=models.Q(approved="", approved_digest="")
                | ~models.Q(approved="") & ~models.Q(approved_digest=""),
            ),
        ]

    def __str__(self) -> str:
        return self.call_name or f"tool {self.pk}"


class McpDecision(Chained):
    """A person's decision about a server or one of its tools, or a change by the server itself."""

    class Kind(models.TextChoices):
        ADDED = "added", _("server added")
        CHANGED = "changed", _("server changed")
        APPROVED = "approved", _("tool approved")
        REJECTED = "rejected", _("tool rejected")
        WITHDRAWN = "withdrawn", _("approval withdrawn")
        DIFFERS = "differs", _("definition changed by the server")
        GONE = "gone", _("tool no longer listed")

    server = models.ForeignKey(McpServer, on_delete=models.PROTECT, related_name="decisions")
    tool = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=9, choices=Kind.choices)
    #: None for changes by a server.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    #: The names of the changed fields, never a secret; or the effect that was approved.
    note = models.CharField(max_length=300, blank=True)
    definition = models.TextField(blank=True)
    digest = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("MCP decision")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"
