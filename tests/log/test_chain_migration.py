"""What was entered before every append-only row stood in a chain is taken into the chains."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.grants import grant_more
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.log.chain import OWNED, SITE, compute_link
from conversations.log.triggers import find_missing_guards
from conversations.models import ApiResult, Conversation, LedgerEntry, SiteChain
from tests.support import stored_turns

BEFORE = "0020"


@pytest.mark.django_db(transaction=True)
def test_older_rows_are_taken_into_the_chains_and_verify() -> None:
    place, other = stored_turns.played(), stored_turns.played("bea")
    grant_more(budget=place.user.budgets.get(), amount=5, reason="a trial")
    delete_everything(owner_id=other.user.pk)
    assert erase_due_conversations(owner_id=other.user.pk) == 1
    counts = (LedgerEntry.objects.count(), SiteChain.objects.get().links)
    forget_chains(Conversation.objects.get())
    assert list(verify_everything(Tally()))
    try:
        call_command("migrate", "conversations", BEFORE, verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
    assert (LedgerEntry.objects.count(), SiteChain.objects.get().links) == counts
    assert find_missing_guards() == []
    assert list(verify_everything(Tally())) == []


def forget_chains(conversation: Conversation) -> None:
    """Leave the chains as they were when no ledger entry stood in one, and the site had none."""
    with connection.cursor() as cursor:
        for kind in {**OWNED, **SITE}:
            table = kind._meta.db_table
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{table}_keep_update"{where}')
    # Results of that time named no bill, and a link covers one that is there.
    ApiResult._base_manager.update(bill="")
    rows: list[Any] = []
    for kind, owner in OWNED.items():
        if kind is not LedgerEntry:
            rows += kind._base_manager.filter(**{owner: conversation.pk})
    links, chain = 0, ""
    for row in sorted(rows, key=lambda row: row.link):
        row.link = links = links + 1
        chain = compute_link(chain, row)
        type(row)._base_manager.filter(pk=row.pk).update(link=links, chain=chain)
    Conversation.objects.filter(pk=conversation.pk).update(links=links, chain=chain)
    for kind in SITE:
        kind._base_manager.update(link=0, chain="")
    SiteChain.objects.all().delete()
