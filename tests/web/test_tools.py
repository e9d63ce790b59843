"""The page of a conversation's tools: which are available, switched off or missing, and why."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.test import Client

from conversations.db import run_db
from conversations.models import Conversation, McpServer, McpTool, ToolRule, ToolSwitch, User
from conversations.toolbox.tool_labels import TOOL_LABELS, name_tool
from conversations.toolbox.toolset import build_toolset
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.fold import Page
from tests.web.pages import client_of
from tests.web.tabs import connected
from tests.web.tags import acting, elements
from tools.framework.registry import TOOLS

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def path(played: Played) -> str:
    return f"/c/{played.conversation.public_id}/tools/"


def boxes(client: Client, played: Played) -> dict[str, bool]:
    """Return the tools that can be switched, and whether each is on."""
    html = client.get(path(played)).content.decode()
    assert not acting(html)
    found = [attrs for tag, attrs in elements(html) if tag == "input" and attrs.get("name") == "on"]
    return {str(attrs["value"]): "checked" in attrs for attrs in found}


def test_every_tool_is_there_with_what_it_does(client: Client, played: Played) -> None:
    html = client.get(path(played)).content.decode()
    for tool in TOOLS.values():
        assert f"<bdi>{name_tool(tool.name)}</bdi>" in html
    assert set(TOOLS) == set(TOOL_LABELS)
    assert boxes(client, played)["fetch_url"]
    assert "only reads" in html
    assert "contacts others" in html


def test_what_is_not_ticked_is_off_from_the_next_turn_on(client: Client, played: Played) -> None:
    shown = list(boxes(client, played))
    kept = [name for name in shown if name not in ("fetch_url", "recall")]
    response = client.post(path(played), {"on_was": shown, "on": kept})
    assert response["Location"] == f"/c/{played.conversation.public_id}/"
    assert set(ToolSwitch.objects.values_list("tool", flat=True)) == {"fetch_url", "recall"}
    assert not boxes(client, played)["fetch_url"]
    assert "fetch_url" not in build_toolset(played.conversation).tools
    client.post(path(played), {"on_was": kept, "on": shown})
    assert not ToolSwitch.objects.exists()


@pytest.mark.parametrize(
    "data",
    [{}, {"on": ["fetch_url"]}, {"on_was": ["no_such", "a\0"]}, {"on_was": ["x" * 999], "on": "y"}],
)
def test_only_what_the_page_showed_is_switched(
    data: dict[str, Any], client: Client, played: Played
) -> None:
    client.post(path(played), data)
    assert not ToolSwitch.objects.exists()


def form_of(client: Client, played: Played) -> dict[str, list[str]]:
    """Return what a browser sends when the page is saved as it is."""
    data: dict[str, list[str]] = {}
    for tag, attrs in elements(client.get(path(played)).content.decode()):
        is_kept = attrs.get("type") == "hidden" or "checked" in attrs
        if tag == "input" and is_kept and "disabled" not in attrs:
            data.setdefault(str(attrs["name"]), []).append(str(attrs.get("value") or ""))
    return data


def choices(played: Played) -> tuple[bool, str, set[str]]:
    chat = Conversation.objects.get(pk=played.conversation.pk)
    off = set(ToolSwitch.objects.values_list("tool", flat=True))
    return chat.asks_before_egress, chat.web_search, off


def test_a_form_changes_only_what_its_person_changed(client: Client, played: Played) -> None:
    before = form_of(client, played)
    on = [name for name in before["on"] if name != "fetch_url"]
    client.post(path(played), before | {"egress": "1", "web_search": "beside", "on": on})
    assert choices(played) == (True, "beside", {"fetch_url"})
    after = form_of(client, played)
    # The page of another tab, opened before: saved as it is, and with one tool more switched off.
    for stale in ({}, before, before | {"on": [name for name in before["on"] if name != "recall"]}):
        client.post(path(played), stale)
    assert choices(played) == (True, "beside", {"fetch_url", "recall"})
    client.post(path(played), after | {"egress": [], "web_search": ""})
    assert choices(played) == (False, "", {"fetch_url", "recall"})


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_every_tab_says_whether_nothing_leaves_without_its_person() -> None:
    played = await run_db(stored_turns.played)
    client, tab = await run_db(client_of, played.user), Page()
    async with connected(played.conversation) as found:
        tab.take(await found.receive_from(timeout=60))
        for data in ({"egress_was": "", "egress": "1"}, {"egress_was": "1"}):
            await run_db(client.post, path(played), data)
            tab.take(await found.receive_from(timeout=60))
            page = await run_db(client.get, f"/c/{played.conversation.public_id}/")
            is_said = "egress" in data
            assert tab.text("egress-chip") == ("Nothing leaves without you" if is_said else "")
            assert ("Nothing leaves without you" in page.content.decode()) == is_said
            assert page.content.decode().count('id="egress-chip"') == 1
    assert tab.missed == []


def test_a_form_without_a_choice_in_it_leaves_the_choice(
    client: Client, played: Played, settings: Any
) -> None:
    client.post(path(played), {"egress_was": "", "egress": "1"})
    client.post(path(played), {"web_search_was": "", "web_search": "alone"})
    settings.AGENTWEB_ASK_BEFORE_EGRESS, settings.AGENTWEB_WEB_SEARCH = True, False
    disabled = form_of(client, played)
    settings.AGENTWEB_ASK_BEFORE_EGRESS, settings.AGENTWEB_WEB_SEARCH = False, True
    client.post(path(played), disabled)
    assert choices(played) == (True, "alone", set())


def test_what_an_administrator_took_cannot_be_switched_on(client: Client, played: Played) -> None:
    ToolRule.objects.create(tool="fetch_url", is_allowed=False)
    assert "fetch_url" not in boxes(client, played)
    assert "Not allowed for you" in client.get(path(played)).content.decode()
    client.post(path(played), {"on": ["fetch_url"]})
    assert "fetch_url" not in build_toolset(played.conversation).tools


def test_a_new_chat_names_what_the_person_has(client: Client) -> None:
    ToolRule.objects.create(tool="fetch_url", is_allowed=False)
    html = client.get("/c/new/").content.decode()
    assert "<bdi>Look something up again</bdi>" in html
    assert "<bdi>Read a web page</bdi>" not in html


def test_the_page_is_reached_from_the_menu_and_the_settings(client: Client, played: Played) -> None:
    for page in ("menu", "settings"):
        html = client.get(f"/c/{played.conversation.public_id}/{page}/").content.decode()
        assert f'href="{path(played)}"' in html


def test_staff_set_rules_in_the_admin() -> None:
    client = Client()
    client.force_login(people_and_turns.person("ada", is_staff=True, is_superuser=True))
    group = Group.objects.create(name="research")
    page = "/admin/conversations/toolrule/"
    response = client.post(f"{page}add/", {"tool": "fetch_url", "group": group.pk})
    assert response.status_code == 302
    rule = ToolRule.objects.get()
    assert (rule.tool, rule.group, rule.is_allowed) == ("fetch_url", group, False)
    again = client.post(f"{page}add/", {"tool": "fetch_url", "group": group.pk})
    assert "There is a rule for this tool and group already." in again.content.decode()
    assert "research" in client.get(page).content.decode()
    assert not User.objects.get(username="ada").groups.exists()


@pytest.mark.parametrize("kind", ["toolrule", "approvalrule"])
def test_a_rule_is_for_a_tool_that_there_is(kind: str) -> None:
    client = Client()
    client.force_login(people_and_turns.person("ada", is_staff=True, is_superuser=True))
    server = McpServer.objects.create(name="demo", url="https://mcp.example/", transport="http")
    McpTool.objects.create(server=server, name="look", call_name="mcp_demo_look")
    page, rules = f"/admin/conversations/{kind}/", apps.get_model("conversations", kind).objects

    def add(tool: str) -> str:
        return client.post(f"{page}add/", {"tool": tool, "rule": "ask"}).content.decode()

    for mistyped in ("write_filee", "mcp_demo_lok"):
        assert "There is no tool with this name." in add(mistyped)
    # The API runs the search: it cannot be asked about, and can be withheld.
    assert ("There is no tool with this name." in add("web_search")) is (kind == "approvalrule")
    rules.all().delete()
    for tool in ("write_file", "mcp_demo_look"):
        assert add(tool) == ""
    # A rule for a tool that is gone can still be changed.
    McpTool.objects.all().delete()
    rule = rules.get(tool="mcp_demo_look")
    kept = {"tool": rule.tool, "rule": "never", "is_allowed": "on"}
    assert client.post(f"{page}{rule.pk}/change/", kept).status_code == 302
    rule.refresh_from_db()
    assert getattr(rule, "rule", "never") == "never"
    assert getattr(rule, "is_allowed", True) is True
