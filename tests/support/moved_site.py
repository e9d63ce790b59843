"""What processes do on a site that is moved: fill it, move it, read its pages."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4


def fill() -> None:
    """Store a little of everything that a database may keep in a form of its own."""
    from django.contrib.auth.models import Group, Permission
    from django.core.files.base import ContentFile
    from django.utils import timezone

    from conversations.audit.anchors import anchor_heads
    from conversations.budgets.usage.closed_days import close_days
    from conversations.files.workspace.objects import find_storage
    from conversations.log.legal_holds import place_hold
    from conversations.models import AccountEvent, McpServer, Turn, User, WorkspaceFile
    from tests.support import people_and_turns, stored_turns

    for name in ("ada", "ben"):
        place = stored_turns.played(name, title="Grüße, 日本語 and \U0001f600")
        for text in ("What is naïve?", "NUL is \ufffd, line is \u2028"):
            people_and_turns.answered(people_and_turns.next_turn(place.conversation, text))
    now = timezone.now()
    user = place.user
    place.conversation.forked_from = Turn.objects.first()
    place.conversation.save(update_fields=["forked_from"])
    group = Group.objects.create(name="Öffentlichkeit")
    group.permissions.set(Permission.objects.order_by("-pk")[:3])
    group.user_set.add(user)
    user.user_permissions.add(Permission.objects.last())
    user.preferences = {"z": [1, 2.5, 1e-7, None, "\\u0000"], "a": {"ü": True}}
    user.save()
    whole = now.replace(microsecond=0)
    AccountEvent.objects.create(user=user, kind="guessed", at=whole)
    AccountEvent.objects.create(user=user, kind="guessed", at=now.replace(microsecond=1))
    McpServer.objects.create(
        name="demo", transport="http", url="https://m.example", sealed_headers="gAAAA-sealed"
    )
    place_hold(owner_id=user.pk, reason="a case", actor_id=user.pk)
    WorkspaceFile.objects.create(
        owner=user, state="trash", path="a/ü.txt", object=f"{user.pk}/x", bytes=1, digest="x",
        changed_at=now, batch=uuid4(),
    )  # fmt: skip
    find_storage().save(f"{user.pk}/x", ContentFile(b"a"))
    # The number of somebody who is gone is not given again.
    User.objects.create(username="gone").delete()
    assert close_days(now + timedelta(3)) == 1
    anchor_heads()


def move_in_small_batches(url: str) -> None:
    """Run the command with batches that are smaller than this site's tables."""
    from conversations.operations.move import site_move
    from tests.support.site_commands import run_command

    site_move.BATCH_ROWS = 40
    run_command(["move", "--to", url])


def move_until_all_is_copied(url: str) -> None:
    """Run the command until keys and triggers are missing only."""
    from conversations.operations.move import half_moved

    def end(_inventory: object) -> None:
        raise SystemExit(3)

    half_moved.finish_tables = end
    move_in_small_batches(url)


def read_pages() -> dict[str, str]:
    """Return pages and exports, by their addresses."""
    from agentweb.bench import site_pages
    from conversations.models import Conversation

    return dict(site_pages.read_pages(Conversation.objects.values_list("pk", flat=True)))


def create_person() -> int:
    """Return the number that the database gives to somebody new."""
    from conversations.models import User

    return int(User.objects.create(username="next").pk)
