"""Actions of a rig in its installation's environment: each call is a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def people(count: int, limit: int, prefix: str) -> list[dict[str, str]]:
    """Create people with a session each, and a budget of `limit` micro-dollars; 0: none."""
    from django.conf import settings
    from django.test import Client

    from conversations.models import Budget, User

    found = []
    for number in range(count):
        user = User.objects.create(username=f"{prefix}{number}")
        if limit:
            Budget.objects.create(user=user, limit=limit, period="month")
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": user.username, "cookie": settings.SESSION_COOKIE_NAME, "session": session}
        found.append(cookie)
    return found


def allow(tools: Sequence[str]) -> None:
    """Allow tools without approval."""
    from conversations.models import ApprovalRule

    for name in tools:
        ApprovalRule.objects.update_or_create(tool=name, defaults={"rule": "allow"})


def turns(conversation: str = "") -> list[dict[str, Any]]:
    """Return the stored turns of a conversation, or of all."""
    from conversations.models import Turn

    rows = Turn.objects.order_by("pk")
    if conversation:
        rows = rows.filter(conversation__public_id=conversation)
    names = ("pk", "number", "state", "finish_reason", "error_code", "takeovers",
             "lease_generation", "lease_owner")  # fmt: skip
    return list(rows.values(*names))


def run(statement: str, *parameters: Any) -> list[list[Any]]:
    """Run a statement on the installation's database and return its rows, if any."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return [list(row) for row in cursor.fetchall()] if cursor.description else []


def sessions() -> int:
    """Count the other sessions on the database; 0 where it is a file."""
    from django.db import connection

    if connection.vendor == "sqlite":
        return 0
    found = run(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid()"
    )
    return int(found[0][0])


def answers(conversation: str) -> list[str]:
    """Return the text of the answers of each turn of a conversation."""
    from conversations.models import Turn
    from tests.support.running_turns import answer_text

    rows = Turn.objects.filter(conversation__public_id=conversation)
    return [answer_text(row) for row in rows.order_by("number")]


def draft(conversation: str) -> str:
    """Return the stored draft of the running answer."""
    from conversations.models import Draft

    rows = Draft.objects.filter(turn__conversation__public_id=conversation)
    return rows.values_list("text", flat=True).first() or ""


def summaries(conversation: str) -> list[str]:
    """Return the outcomes of the summaries of a conversation."""
    from conversations.models import Transformation

    rows = Transformation.objects.filter(conversation__public_id=conversation, kind="summary")
    return list(rows.order_by("seq").values_list("outcome", flat=True))


def count_summaries() -> int:
    from conversations.models import Transformation

    return Transformation.objects.filter(kind="summary", outcome="applied").count()


def waiting_turns() -> list[str]:
    """Return the pages of the turns that wait for a person's decision."""
    from conversations.models import Turn

    rows = Turn.objects.filter(state="approval_wait")
    return [f"/c/{row}/" for row in rows.values_list("conversation__public_id", flat=True)]


def deactivate(person: str) -> None:
    from conversations.models import User

    User.objects.filter(username=person).update(is_active=False)


def cut_budget(person: str) -> None:
    """Set a person's budget so that they can spend nothing more."""
    from conversations.models import Budget

    for budget in Budget.objects.filter(user__username=person):
        budget.limit = 0
        budget.save()


def take_tool(person: str) -> None:
    """Put a person into a group that may not use the tool `put`."""
    from django.contrib.auth.models import Group

    from conversations.models import ToolRule, User

    group = Group.objects.create(name=f"without {person}")
    ToolRule.objects.create(tool="put", group=group, is_allowed=False)
    User.objects.get(username=person).groups.add(group)


def give_back(person: str) -> None:
    """Undo what was taken from a person, so that the oracle can check everything."""
    from conversations.models import User

    User.objects.filter(username=person).update(is_active=True)


def run_turn(turn: int, times: int) -> None:
    """Deliver the task of a turn `times` times."""
    from conversations.tasks import run_turn as task

    for _ in range(times):
        task.delay(turn)


def anchor() -> None:
    """Anchor new entries, so that no anchor is due for an hour."""
    from conversations.audit.anchors import anchor_heads

    anchor_heads()


def set_password(person: str, password: str) -> None:
    from conversations.models import User

    user = User.objects.get(username=person)
    user.set_password(password)
    user.save()


def another_session(person: str) -> dict[str, str]:
    """Log a person in with another browser; return its cookie."""
    from django.conf import settings
    from django.test import Client

    from conversations.models import User

    client = Client()
    client.force_login(User.objects.get(username=person))
    name = settings.SESSION_COOKIE_NAME
    return {name: client.cookies[name].value}


def forget_log_ins() -> None:
    from conversations.models import FailedLogIns

    FailedLogIns.objects.all().delete()


def everything() -> dict[str, str]:
    """Return a digest of each table, to check that nothing was written."""
    import hashlib

    from tests.support.people_and_turns import everything as rows

    tables = {name: repr(found) for name, found in rows().items()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in tables.items()}


def add_tool_server(folder: str, token: str) -> None:
    """Add an MCP server that is a command, with its own secret in its environment."""
    import sys

    from conversations.models import McpServer, User
    from conversations.toolbox.mcp import servers

    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    line = ["-m", "tests.support.mcp_servers", "stdio"]
    found = McpServer(
        name="demo", is_enabled=True, transport="stdio", command=sys.executable, arguments=line
    )
    environment = {"PYTHONPATH": folder, "TOKEN": token}
    servers.save_server(server=found, actor=root, changed=["name"], environment=environment)


def every_row() -> str:
    """Return everything that is stored, of every table, as text."""
    from django.db import connection

    found = []
    for table in connection.introspection.table_names():
        found += run(f'SELECT * FROM "{table}"')
    return repr(found)


def redis_dump() -> str:
    """Return everything that Redis holds."""
    from django.conf import settings
    from redis import Redis

    with Redis.from_url(settings.REDIS_URL) as client:
        return repr([(key, client.dump(key)) for key in client.keys("*")])
