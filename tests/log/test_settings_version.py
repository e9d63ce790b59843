"""What a process keeps of the site's settings never outlives their version."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.cost_centres import find_cost_centre
from conversations.budgets.prices import find_enabled_model, load_price_list
from conversations.budgets.status import list_statuses
from conversations.log import settings_version
from conversations.log.settings_version import (
    _read_present,
    _read_version,
    install_settings_version,
    is_reading,
    reading_settings,
)
from conversations.models import (
    ApiModel,
    Budget,
    Conversation,
    CostCentre,
    EffortRule,
    EgressRule,
    McpServer,
    ModelPrice,
    ToolRule,
    TurnCap,
    User,
)
from conversations.reductions.conversation_settings import find_default_effort
from conversations.toolbox import tool_access
from conversations.toolbox.egress import find_egress_rule
from conversations.toolbox.mcp import servers
from tests.support import people_and_turns, stored_turns
from tools.mcp.connection import ServerStatus
from tools.mcp.definitions import Listed

pytestmark = pytest.mark.django_db

MODEL = stored_turns.MODEL
LISTED = Listed("add", "mcp__demo__add", "{}", "sha256:0")


def _effort(user: User) -> object:
    return find_default_effort(user.pk)


def _price(_: User) -> object:
    return load_price_list(MODEL, timezone.now()).tiers


def _model(_: User) -> object:
    return find_enabled_model(MODEL)


def _caps(user: User) -> object:
    return resolve_turn_caps(user.pk)


def _budgets(user: User) -> object:
    return list_statuses(user.pk)


def _rules(user: User) -> object:
    return tool_access._list_rules(user.pk)


def _egress(user: User) -> object:
    return find_egress_rule(user.pk)


def _centre(user: User) -> object:
    return find_cost_centre(Conversation(owner=user))


def _tag(user: User) -> None:
    user.cost_centre = CostCentre.objects.create(code="4711", name="Sales")


def _ask_group(user: User) -> None:
    group = Group.objects.create(name="lawyers")
    user.groups.add(group)
    EgressRule.objects.create(group=group)


def _change_group(user: User) -> None:
    group = Group.objects.create(name="research")
    EffortRule.objects.create(group=group, effort="high")
    user.groups.add(group)


CHANGES: list[tuple[Callable[[User], object], Callable[[User], object]]] = [
    (_effort, _change_group),
    (_price, lambda _: ModelPrice.objects.filter(model=MODEL).update(micros_per_million=7)),
    (_model, lambda _: ApiModel.objects.filter(pk=MODEL).update(is_enabled=False)),
    (_caps, lambda user: TurnCap.objects.create(user=user, rounds=3)),
    (_budgets, lambda user: Budget.objects.create(user=user, limit=5, period="day")),
    (_centre, _tag),
    (_egress, _ask_group),
    (_rules, lambda _: ToolRule.objects.create(tool="read_file", is_allowed=False)),
]


@pytest.mark.parametrize(("read", "change"), CHANGES)
def test_a_change_counts_from_the_next_reading(
    read: Callable[[User], object], change: Callable[[User], object]
) -> None:
    user = people_and_turns.person()
    with reading_settings():
        before = read(user)
        with CaptureQueriesContext(connection) as queries:
            assert read(user) == before
        assert len(queries) == 0
    with reading_settings(), CaptureQueriesContext(connection) as queries:
        read(user)
    assert len(queries) == 1, "another reading of the same version asks for the version only"
    change(user)
    with reading_settings():
        after = read(user)
    assert after != before
    assert after == read(user), "as without anything kept"


def test_a_change_that_is_taken_back_is_forgotten() -> None:
    user = people_and_turns.person()
    with reading_settings():
        before = _caps(user)
    for rounds in (3, 4):
        with transaction.atomic():
            TurnCap.objects.create(user=user, rounds=rounds)
            with reading_settings():
                assert resolve_turn_caps(user.pk).rounds == rounds
            transaction.set_rollback(True)
        with reading_settings():
            assert _caps(user) == before


def _connect_server() -> McpServer:
    server = McpServer(name="demo", transport="http", url="https://mcp.example/mcp")
    servers.save_server(server=server, actor=people_and_turns.person("root"), changed=["url"])
    servers.record_listing(name="demo", tools=[LISTED])
    return server


def test_the_status_of_a_server_is_no_setting() -> None:
    server = _connect_server()
    before = _read_version()
    servers.request_check(server=server)
    servers.record_status(name="demo", status=ServerStatus("failed", error="refused"))
    servers.record_status(name="demo", status=ServerStatus("connected", says="Demo 1"))
    servers.record_listing(name="demo", tools=[LISTED])
    servers.clear_check_request(server_id=server.pk)
    assert _read_version() == before
    # What its tools are, and whether it is in use, are settings.
    servers.record_listing(name="demo", tools=[])
    listed = _read_version()
    McpServer.objects.update(is_enabled=True)
    assert len({before, listed, _read_version()}) == 3


def test_a_trigger_that_counted_the_status_is_replaced() -> None:
    table = McpServer._meta.db_table
    columns = settings_version._list_settings
    with pytest.MonkeyPatch.context() as before, connection.cursor() as cursor:
        before.setattr(settings_version, "_list_settings", lambda *_: ())
        install_settings_version()
        old = {name for name, of in _read_present(cursor).items() if of == table}
        server = _connect_server()
        counted = _read_version()
        servers.request_check(server=server)
        assert _read_version() != counted
        before.setattr(settings_version, "_list_settings", columns)
        install_settings_version()
        new = {name for name, of in _read_present(cursor).items() if of == table}
    assert not {name for name in old & new if "_settings" in name}
    counted = _read_version()
    servers.clear_check_request(server_id=server.pk)
    assert _read_version() == counted


def test_a_start_without_migrations_changes_nothing() -> None:
    with CaptureQueriesContext(connection) as queries:
        install_settings_version()
    assert not [one for one in queries if one["sql"].startswith(("CREATE", "DROP", "UPDATE"))]


def test_what_a_block_starts_elsewhere_does_not_read_with_it() -> None:
    """A turn that a request starts lives longer than the request."""
    with reading_settings():
        assert is_reading()
        context = copy_context()
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(context.run, is_reading).result()
    assert not is_reading()
