"""Tables and their constraints, nothing else."""

from __future__ import annotations

from conversations.models.account_events import AccountEvent
from conversations.models.alerts import AlertDelivery, BudgetAlert
from conversations.models.api_tokens import ApiToken
from conversations.models.approvals import Approval, ApprovalRule, Decision, EgressRule
from conversations.models.attachments import Attachment
from conversations.models.budgets import Budget, BudgetWindow, Grant
from conversations.models.calls import ApiCall, ApiResult, Envelope
from conversations.models.caps import TurnCap
from conversations.models.catalogue import ApiModel, ModelPrice
from conversations.models.closed_days import ClosedDay, PersonDay
from conversations.models.cost_centres import CostCentre
from conversations.models.effort import EffortRule
from conversations.models.erasures import ErasedDigests, Erasure, ErasureProof
from conversations.models.folders import Folder
from conversations.models.impersonations import Impersonation, ImpersonationEnd
from conversations.models.invitations import Invitation, InvitationDecision
from conversations.models.ledger import (
    BookedDifference,
    Crossing,
    LedgerEntry,
    MoneyRecord,
    Reservation,
)
from conversations.models.log import (
    AppendOnly,
    Blob,
    Chained,
    Conversation,
    Message,
    Transformation,
    WebSearch,
)
from conversations.models.log_ins import FailedLogIns
from conversations.models.mail import MailAccount
from conversations.models.mcp import McpDecision, McpServer, McpTool
from conversations.models.people import User
from conversations.models.pins import Pin
from conversations.models.proposals import Proposal
from conversations.models.retention import HoldRelease, LegalHold, RetentionRule
from conversations.models.saved_prompts import SavedPrompt, SitePrompt
from conversations.models.search import SearchText
from conversations.models.second_factors import SecondFactorRule
from conversations.models.sessions import Session, SessionStore
from conversations.models.shared_links import SharedLink
from conversations.models.site_chain import AnchorMark, DatabaseMove, SiteChain
from conversations.models.tool_access import ToolRule, ToolSwitch
from conversations.models.turns import (
    ALLOWED,
    IS_LIVE,
    LIVE,
    Draft,
    QueuedPrompt,
    ToolCall,
    Turn,
    TurnState,
)
from conversations.models.view_checkpoints import ViewCheckpoint
from conversations.models.workspace import FileState, WorkspaceFile

__all__ = [
    "ALLOWED",
    "IS_LIVE",
    "LIVE",
    "AccountEvent",
    "AlertDelivery",
    "AnchorMark",
    "ApiCall",
    "ApiModel",
    "ApiResult",
    "ApiToken",
    "AppendOnly",
    "Approval",
    "ApprovalRule",
    "Attachment",
    "Blob",
    "BookedDifference",
    "Budget",
    "BudgetAlert",
    "BudgetWindow",
    "Chained",
    "ClosedDay",
    "Conversation",
    "CostCentre",
    "Crossing",
    "DatabaseMove",
    "Decision",
    "Draft",
    "EffortRule",
    "EgressRule",
    "Envelope",
    "ErasedDigests",
    "Erasure",
    "ErasureProof",
    "FailedLogIns",
    "FileState",
    "Folder",
    "Grant",
    "HoldRelease",
    "Impersonation",
    "ImpersonationEnd",
    "Invitation",
    "InvitationDecision",
    "LedgerEntry",
    "LegalHold",
    "MailAccount",
    "McpDecision",
    "McpServer",
    "McpTool",
    "Message",
    "ModelPrice",
    "MoneyRecord",
    "PersonDay",
    "Pin",
    "Proposal",
    "QueuedPrompt",
    "Reservation",
    "RetentionRule",
    "SavedPrompt",
    "SearchText",
    "SecondFactorRule",
    "Session",
    "SessionStore",
    "SharedLink",
    "SiteChain",
    "SitePrompt",
    "ToolCall",
    "ToolRule",
    "ToolSwitch",
    "Transformation",
    "Turn",
    "TurnCap",
    "TurnState",
    "User",
    "ViewCheckpoint",
    "WebSearch",
    "WorkspaceFile",
]
