"""What the admin calls tables and their fields, in every language.

Without it they would be called after class and column, in English. Migrations record the names that
tables and fields are defined with, not those given here, so a better word needs no migration.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

#: The names of fields that mean the same in every table.
SHARED: dict[str, Promise] = {
    "actor": _("done by"),
    "begun_at": _("begun"),
    "budget": _("budget"),
    "calls": _("calls"),
    "chain": _("chain hash"),
    "command": _("command"),
    "conversation": _("chat"),
    "cost_centre": _("cost centre"),
    "created_at": _("created"),
    "deleted_at": _("deleted"),
    "digest": _("digest"),
    "ended_at": _("ended"),
    "group": _("group"),
    "groups": _("groups"),
    "is_active": _("active"),
    "is_enabled": _("enabled"),
    "kind": _("kind"),
    "limit": _("limit"),
    "link": _("chain link"),
    "links": _("chain length"),
    "model": _("model"),
    "name": _("name"),
    "note": _("note"),
    "number": _("number"),
    "owner": _("owner"),
    "public_id": _("public ID"),
    "reason": _("reason"),
    "sent_at": _("sent"),
    "source": _("source"),
    "started_at": _("started"),
    "starts_at": _("begins"),
    "state": _("state"),
    "time_zone": _("time zone"),
    "tip": _("last entry"),
    "tool": _("tool"),
    "tool_calls": _("tool calls"),
    "tool_use_id": _("call ID of the API"),
    "transformations": _("transformations"),
    "used_at": _("last used"),
    "user": _("user"),
}
#: The names of the other fields that the admin shows, by table.
OWN: dict[str, dict[str, Promise]] = {
    "AlertDelivery": {
        "alert": _("alert"),
        "attempts": _("attempts"),
        "last_error": _("last error"),
    },
    "ApiCall": {
        "binding": _("binding of the thinking"),
        "body_bytes": _("request size (bytes)"),
        "estimated_tokens": _("whole request"),
        "max_tokens": _("largest answer (tokens)"),
        "overhead_tokens": _("instructions and tools"),
        "purpose": _("purpose"),
        "view_edits": _("changes of the view"),
        "view_tokens": _("messages"),
    },
    "ApiModel": {
        "id": _("model ID"),
        "lifecycle": _("status at the API"),
        "max_output": _("largest answer (tokens)"),
        "retires_at": _("retires"),
        "thinking": _("thinking"),
        "thresholds": _("thresholds"),
        "window": _("context window (tokens)"),
    },
    "ApiResult": {"status": _("result")},
    "ApiToken": {
        "expires_at": _("works until"),
        "last_used_at": _("last used"),
        "revoked_at": _("revoked"),
        "scopes": _("may read"),
    },
    "Approval": {
        "arguments_digest": _("digest of the arguments"),
        "expires_at": _("expires"),
    },
    "ApprovalRule": {"rule": _("rule")},
    "Attachment": {
        "estimate": _("estimate (tokens)"),
        "media_type": _("file type"),
        "size": _("size (bytes)"),
    },
    "Budget": {
        "period": _("period"),
        "scope": _("applies to"),
        "soft_percents": _("warn at (percent)"),
        "unit": _("unit"),
    },
    "BudgetAlert": {"from_percent": _("from percent"), "people": _("people")},
    "Conversation": {
        "archived_at": _("archived"),
        "erase_at": _("to be erased"),
        "head": _("entries"),
        "pinned_at": _("starred"),
        "policy": _("context policy"),
        "removed_by_rule": _("deleted by the rule"),
        "updated_at": _("last changed"),
    },
    "Crossing": {
        "percent": _("percent"),
    },
    "DatabaseMove": {
        "created_at": _("finished"),
        "source": _("from"),
        "target": _("into"),
    },
    "Decision": {"verdict": _("decision")},
    "EffortRule": {"effort": _("effort")},
    "Erasure": {
        "deleted_at": _("deleted"),
        "due_at": _("due"),
        "erased_at": _("erased"),
        "messages": _("messages"),
        "rule": _("deleted by the rule"),
    },
    "ErasureProof": {
        "backup": _("backup"),
        "found": _("found"),
        "phrases": _("phrases searched for"),
        "proven_at": _("searched"),
        "words": _("words searched for"),
    },
    "FailedLogIns": {
        "began_at": _("first attempt"),
        "waits": _("waits in a row"),
    },
    "Grant": {"actor": _("granted by"), "expires_at": _("ends")},
    "HoldRelease": {"hold": _("legal hold")},
    "MailAccount": {
        "auth": _("log-in with"),
        "imap_port": _("IMAP port"),
        "imap_security": _("IMAP encryption"),
        "smtp_port": _("SMTP port"),
        "smtp_security": _("SMTP encryption"),
    },
    "McpDecision": {"kind": _("what happened"), "server": _("server")},
    "McpServer": {"says": _("what it says of itself"), "transport": _("connection")},
    "ModelPrice": {
        "above_tokens": _("for prompts above (tokens)"),
        "effective_from": _("in force from"),
        "effective_to": _("in force until"),
        "micros_per_million": _("price per million (USD)"),
    },
    "Pin": {"is_pinned": _("pinned")},
    "Reservation": {"is_open": _("open")},
    "SharedLink": {
        "audience": _("who may open it"),
        "expires_at": _("works until"),
        "leaf": _("last turn shown"),
        "opened": _("opened by others"),
        "opened_at": _("last opened"),
        "revoked_at": _("revoked"),
        "revoked_by": _("revoked by"),
        "with_tools": _("with tool calls and results"),
    },
    "SitePrompt": {
        "changed_at": _("last changed"),
        "text": _("text"),
        "title": _("title"),
    },
    "ToolCall": {
        "effect": _("effect"),
        "given_id": _("ID as it came"),
        "position": _("place in the answer"),
        "state": _("state"),
    },
    "Transformation": {
        "note": _("what it did"),
        "outcome": _("outcome"),
        "parent": _("previous entry"),
        "seq": _("entry"),
        "setting": _("setting"),
    },
    "Turn": {
        "attempt": _("attempts"),
        "error_code": _("error code"),
        "finish_reason": _("why it ended"),
        "lease_generation": _("number of the lease"),
        "lease_owner": _("holder of the lease"),
        "lease_until": _("lease until"),
        "retry_at": _("next attempt"),
        "stop_requested_at": _("stop asked for"),
    },
    "TurnCap": {"micros": _("money (USD)"), "seconds": _("seconds")},
}

#: What a row of a table is called, and several, where Django's guess is in English.
TABLES: dict[str, tuple[Promise, Promise]] = {
    "AlertDelivery": (_("alert delivery"), _("alert deliveries")),
    "ApiCall": (_("call"), _("calls")),
    "ApiModel": (_("model"), _("models")),
    "ApiToken": (_("API token"), _("API tokens")),
    "Approval": (_("approval"), _("approvals")),
    "ApprovalRule": (_("approval rule"), _("approval rules")),
    "Attachment": (_("attachment"), _("attachments")),
    "Budget": (_("budget"), _("budgets")),
    "BudgetAlert": (_("budget alert"), _("budget alerts")),
    "BudgetWindow": (_("budget window"), _("budget windows")),
    "Conversation": (_("chat"), _("chats")),
    "CostCentre": (_("cost centre"), _("cost centres")),
    "Crossing": (_("crossing"), _("crossings")),
    "DatabaseMove": (_("database move"), _("database moves")),
    "EffortRule": (_("default effort"), _("default efforts")),
    "Erasure": (_("erasure"), _("erasures")),
    "ErasureProof": (_("erasure proof"), _("erasure proofs")),
    "Grant": (_("grant"), _("grants")),
    "HoldRelease": (_("hold release"), _("hold releases")),
    "Invitation": (_("invitation"), _("invitations")),
    "LedgerEntry": (_("ledger entry"), _("ledger entries")),
    "LegalHold": (_("legal hold"), _("legal holds")),
    "MailAccount": (_("mail account"), _("mail accounts")),
    "McpDecision": (_("MCP decision"), _("MCP decisions")),
    "McpServer": (_("MCP server"), _("MCP servers")),
    "ModelPrice": (_("model price"), _("model prices")),
    "MoneyRecord": (_("money record"), _("money records")),
    "Pin": (_("pin"), _("pins")),
    "Reservation": (_("reservation"), _("reservations")),
    "RetentionRule": (_("retention rule"), _("retention rules")),
    "SecondFactorRule": (_("required second factor"), _("required second factors")),
    "SharedLink": (_("shared link"), _("shared links")),
    "SitePrompt": (_("site prompt"), _("site prompts")),
    "ToolCall": (_("tool call"), _("tool calls")),
    "ToolRule": (_("tool rule"), _("tool rules")),
    "Transformation": (_("transformation"), _("transformations")),
    "Turn": (_("turn"), _("turns")),
    "TurnCap": (_("turn cap"), _("turn caps")),
    "User": (_("user"), _("users")),
}

#: What Django's forms of a person say, where its German catalogue is behind.
LACKING = (
    gettext_noop("Disabled"),
    gettext_noop("Enabled"),
    gettext_noop("Password-based authentication"),
    gettext_noop("Raw passwords are not stored, so there is no way to see the user’s password."),
    gettext_noop(
        "Whether the user will be able to authenticate using a password or not. If disabled, they"
        " may still be able to authenticate using other backends, such as Single Sign-On or LDAP."
    ),
)


def name_tables() -> None:
    """Name our tables and their fields; a field that is defined with a name keeps it."""
    for model in apps.get_app_config("conversations").get_models():
        options: Any = model._meta
        if names := TABLES.get(model.__name__):
            options.verbose_name, options.verbose_name_plural = names
        own = OWN.get(model.__name__, {})
        fields: list[Any] = [*options.local_fields, *options.local_many_to_many]
        for field in fields:
            found = own.get(field.name, SHARED.get(field.name))
            if found is not None and (field.name in own or field._verbose_name is None):
                field.verbose_name = found
