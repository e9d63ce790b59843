"""Django's admin under the site's strict policy: records to read, people and prices to set.

The record cannot be edited here: everything of the log is read-only, without bulk actions. Metadata
is for staff with the view permission; content needs `read_content`, and each access to another
person's content is recorded. Lists never load wire text and cost a constant number of queries. Text
written by a model, a tool or a user is escaped, here as everywhere.
"""

from __future__ import annotations

from conversations.admin import (  # noqa: F401  (each registers its pages)
    alerts,
    api_tokens,
    approvals,
    attachments,
    budgets,
    calls,
    catalogue,
    conversations,
    cost_centres,
    effort,
    erasures,
    invitations,
    ledger,
    log_ins,
    mail,
    mcp,
    money_changes,
    moves,
    pins,
    reading_log,
    retention,
    second_factors,
    shared_links,
    site_prompts,
    tool_access,
    tool_calls,
    transformations,
    turns,
    users,
)
from conversations.admin.labels import name_tables

name_tables()
