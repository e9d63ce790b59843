"""The text columns with content, and a marker word put into all of them."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.db import connection
from django.db.models import CharField, JSONField, Model, TextField
from django.utils import timezone

from conversations.log.triggers import list_guarded_tables
from conversations.models import (
    ApiCall,
    Approval,
    Attachment,
    Blob,
    Conversation,
    Draft,
    Folder,
    MailAccount,
    Proposal,
    QueuedPrompt,
    SavedPrompt,
    SearchText,
    ToolCall,
    Turn,
    User,
    ViewCheckpoint,
    WorkspaceFile,
)

WORD = "QxCanaryzeQ"
_BLOCKS = json.dumps([{"type": "text", "text": WORD}])
#: Columns with what people or models wrote, what is derived from it, and what may quote it; and the
#: value in which the marker word is put there.
CONTENT = {
    "Approval.destination": WORD,
    "Approval.sources": f"attached:{WORD}",
    "Approval.words": json.dumps([[WORD, f"attached:{WORD}"]]),
    "Attachment.name": WORD,
    "ApiResult.error_message": WORD,
    "Blob.text": json.dumps(WORD),
    "Conversation.instructions": WORD,
    "Conversation.title": WORD,
    "Draft.text": WORD,
    "Draft.thinking": WORD,
    "Envelope.text": json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 9, "system": WORD}),
    "Folder.key": WORD,
    "Folder.name": WORD,
    "MailAccount.address": WORD,
    "MailAccount.folder": WORD,
    "MailAccount.imap_host": WORD,
    "MailAccount.login": WORD,
    "MailAccount.name": WORD,
    "MailAccount.problem": WORD,
    "MailAccount.sealed_secret": WORD,
    "MailAccount.smtp_host": WORD,
    "Message.content": _BLOCKS,
    "Proposal.reason": WORD,
    "Proposal.text": WORD,
    "QueuedPrompt.content": _BLOCKS,
    "SavedPrompt.command": WORD,
    "SavedPrompt.text": WORD,
    "SavedPrompt.title": WORD,
    "SearchText.text": WORD,
    "ToolCall.flaw": WORD,
    "ToolCall.details": json.dumps({"word": WORD}),
    "ToolCall.input": json.dumps({"path": WORD}),
    "Transformation.edits": json.dumps([WORD]),
    "Transformation.reason": WORD,
    "Turn.error_text": WORD,
    "ViewCheckpoint.view": WORD,
    "WorkspaceFile.path": WORD,
}
#: Names, numbers, codes, digests, and what staff write themselves.
FACTS = {
    "AccountEvent": "peer",
    "AlertDelivery": "last_error",
    "AnchorMark": "digest",
    "ApiCall": "binding body_digest chain model",
    "ApiModel": "id lifecycle thresholds",
    "ApiResult": "bill chain cost_basis error_type request_id stop_reason usage",
    "ApiToken": "digest name scopes",
    "Approval": "arguments_digest chain",
    "ApprovalRule": "tool",
    "Attachment": "ending media_type",
    "Blob": "digest",
    "BookedDifference": "chain model reason unit",
    "Budget": "model note soft_percents time_zone",
    "BudgetAlert": "name origin sealed_secret url",
    "Conversation": "chain model policy removed_by_rule titled_by",
    "CostCentre": "code name",
    "Crossing": "chain",
    "DatabaseMove": "chain digest source target",
    "Decision": "chain",
    "Envelope": "digest headers",
    "ClosedDay": "sums",
    "Erasure": "chain rule tail usage",
    "ErasureProof": "backup chain places",
    "FailedLogIns": "name_digest peer",
    "Grant": "chain reason",
    "HoldRelease": "chain reason",
    "Impersonation": "chain reason",
    "ImpersonationEnd": "chain",
    "Invitation": "digest email",
    "InvitationDecision": "chain note",
    "LedgerEntry": "chain reason",
    "LegalHold": "chain reason",
    "McpDecision": "chain definition digest note tool",
    "McpServer": "allowed_tools arguments command last_error name note says sealed_environment"
    " sealed_headers url",
    "McpTool": "approved approved_digest approved_server call_name flaw listed listed_digest name"
    " rejected_digest",
    "MailAccount": "provider",
    "Message": "chain",
    "ModelPrice": "source",
    "MoneyRecord": "chain content reason table",
    "Pin": "chain tool_use_id",
    "QueuedPrompt": "payload_digest",
    "SearchText": "kind",
    "Session": "device network session_data session_key",
    "SharedLink": "digest",
    "SiteChain": "chain",
    "SitePrompt": "command text title",
    "ToolCall": "effect given_id name origin tool_use_id",
    "ToolRule": "tool",
    "ToolSwitch": "tool",
    "Transformation": "chain decision note policy setting source",
    "Turn": "error_code finish_reason lease_owner payload_digest waits_for",
    "WorkspaceFile": "digest done_by object",
    "ViewCheckpoint": "summaries",
    "User": "email first_name last_name password policy policy_limits preferences username",
}


def texts() -> set[str]:
    """Return every text column of every table without fixed choices."""
    return {
        f"{kind.__name__}.{field.name}"
        for kind in apps.get_app_config("conversations").get_models()
        for field in kind._meta.fields
        if isinstance(field, CharField | TextField | JSONField) and not field.choices
    }


def plant(conversation: Conversation) -> None:
    """Put the word into every content column, past all guards."""
    turn = Turn.objects.filter(conversation=conversation).latest("pk")
    user = User.objects.get(pk=conversation.owner_id)
    blob = Blob.objects.create(digest=f"sha256:{uuid4().hex}", text="x")
    Draft.objects.create(turn=turn)
    ViewCheckpoint.objects.create(conversation=conversation, seq=1, answers=0)
    Approval.objects.create(
        conversation=conversation,
        call=ToolCall.objects.filter(turn__conversation=conversation).latest("pk"),
        expires_at=conversation.created_at,
        link=conversation.links + 1,
    )
    QueuedPrompt.objects.create(conversation=conversation, client_id=uuid4(), payload_digest="x")
    call = ApiCall.objects.filter(conversation=conversation).latest("pk")
    MailAccount.objects.create(owner=user, name="x", imap_host="x")
    SavedPrompt.objects.create(owner=user, title="x", command="x", text="x")
    Conversation.objects.filter(pk=conversation.pk).update(
        folder=Folder.objects.create(owner=user, name="x", key="x", opened_at=timezone.now())
    )
    Proposal.objects.create(conversation=conversation, tip=1, actor=user, call=call)
    for place in (conversation, None):
        Attachment.objects.create(
            owner=user, conversation=place, media_type="text/plain", size=1, estimate=1, data=blob
        )
    WorkspaceFile.objects.create(
        owner=user, path="x", object=uuid4().hex, bytes=1, digest="x", changed_at=timezone.now()
    )
    assert SearchText.objects.exists()
    with connection.cursor() as cursor:
        for table in list_guarded_tables():
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_update"{where}')
        for name, value in CONTENT.items():
            kind, field = _field(name)
            table = kind._meta.db_table
            column = field.column
            # A transformation that changed nothing has no edits, and must have none.
            cursor.execute(
                f'UPDATE "{table}" SET "{column}" = %s WHERE "{column}" <> %s', [value, "[]"]
            )
            assert cursor.rowcount, name


def _field(name: str) -> tuple[type[Model], Any]:
    model, field = name.split(".")
    kind = apps.get_model("conversations", model)
    return kind, kind._meta.get_field(field)
