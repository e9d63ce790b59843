"""The table of roles, walked: every address by every role and method does what the table says.

Addresses and tables come from the URLconf and the admin's registry, permissions from the table. The
reference is the database: what a response is allowed to be follows from Django's own permissions of
the group, and content is a planted word in the bytes of the response.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import SuspiciousOperation
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse

from conversations.accounts.api_tokens import SCOPES
from conversations.accounts.reading_log import READ
from conversations.accounts.roles import READING, ROLES, Role, install_roles
from conversations.models import User
from tests.attacks.sites import View, World, address, choose_methods, views, world
from tests.attacks.test_matrix import METHODS, OWN, PUBLIC, answer, client_of, keep_logged_in
from tests.support import people_and_turns
from tests.support.api_tokens import token_of
from tests.support.one_database import ON_SQLITE, with_slice
from tests.web.canary import WORD
from tests.web.test_admin_lookups import ENDINGS, address_of, field_paths
from tests.web.test_ownership import OF_REVIEW

pytestmark = pytest.mark.django_db
ALL = list(views())
SPENDING = ("view_budget", "view_budgetwindow", "view_user")
#: What the pages of the admin that are no table need; superuser: no permission is enough.
SPECIAL = {
    "overview": ("view_apicall", "view_transformation", "view_turn"),
    "overview_csv": ("view_apicall", "view_transformation", "view_turn"),
    **dict.fromkeys(("spending", "spending_csv", "api_spending", "api_budgets"), SPENDING),
    "bulk_budgets": (*SPENDING, "add_grant"),
    "provider_report": ("view_apicall", "view_ledgerentry"),
    "budgets_import": ("add_budget", "change_budget"),
    "alert_test": ("change_budgetalert",),
    "alert_secret": ("change_budgetalert",),
    "budget_grant": ("add_grant", "view_budget"),
    "apicall_body": ("view_apicall",),
    "apicall_correct": ("add_ledgerentry", "view_apicall"),
    "prices_import": ("add_modelprice", "change_modelprice"),
    "conversation_read": ("view_conversation",),
    "conversation_lab": ("view_conversation", "read_content"),
    "window_correct": ("add_ledgerentry", "view_budgetwindow"),
    **dict.fromkeys(("mcp_health", "mcp_tools"), ("view_mcpserver",)),
    "mcp_decide": ("view_mcpserver", "change_mcptool"),
    "mcp_check": ("change_mcpserver",),
    "user_usage": ("view_user", "view_apicall"),
    "user_exempt": ("superuser",),
    **dict.fromkeys(("user_reset_link", "user_lost_factors"), ("superuser",)),
    "user_impersonate": ("superuser",),
    "auth_user_password_change": ("superuser",),
    "api_usage": ("view_apicall", "view_user"),
    "api_ledger": ("view_ledgerentry",),
    "api_reductions": ("view_transformation",),
}
#: Open to whoever may enter the admin; what they show follows from the permissions of tables.
SHARED = {
    "index", "login", "logout", "password_change", "password_change_done", "jsi18n", "app_list",
    "autocomplete", "view_on_site", "None",
}  # fmt: skip
TABLE = re.compile(r"^admin/(\w+)/(\w+)/.*$")
VERBS = {"changelist": "view", "history": "view", "change": "view", "add": "add"}
#: The last of them has no rights: the admin is closed to it, whatever the database.
ROLE = pytest.mark.parametrize(
    "role",
    [*with_slice(ROLES[:-1]), pytest.param(ROLES[-1], marks=ON_SQLITE)],
    ids=lambda role: role.name,
)
LINK = re.compile(r'href="\?([^"#]*)"')


@pytest.fixture
def ada() -> World:
    return world()


def person_of(role: Role) -> User:
    """Return a new member of staff whose only rights are those of the role's group."""
    user = User.objects.create(username=role.name.lower().replace(" ", "-"), is_staff=True)
    user.groups.add(Group.objects.get(name=role.name))
    return user


def asks_all(role: Role) -> bool:
    """Tell whether a role asks by every method for what it is shown, too: one does, Auditors."""
    return READING in role.rights


def list_needs(view: View) -> tuple[str, ...]:
    """Return the permissions that a page of the admin needs, of which some may be enough."""
    if view.name in SPECIAL:
        return SPECIAL[view.name]
    found = TABLE.match(view.route)
    assert found, f"say in SPECIAL what {view} needs"
    verb = view.name.rpartition("_")[2]
    if view.route.rpartition("/")[2] in ("export.csv", "export.jsonl"):
        verb = "view"
    # A row's own page of its readings and changes is part of the log of them.
    of_the_log = ("view_logentry",) if verb == "history" else ()
    return (f"{VERBS.get(verb, verb)}_{found[2]}", *of_the_log)


def is_allowed(user: User, view: View) -> bool:
    names = {name.partition(".")[2] for name in user.get_all_permissions()}
    return all(need in names for need in list_needs(view))


def test_the_groups_have_the_permissions_of_the_table_and_no_other() -> None:
    for role in ROLES:
        held = Group.objects.get(name=role.name).permissions.select_related("content_type")
        named = {f"{each.content_type.app_label}.{each.codename}" for each in held}
        assert named == role.permissions, role.name
    assert not ROLES[-1].permissions
    readers = [role.name for role in ROLES if READING in role.rights]
    assert readers == ["Auditor"]


def test_what_an_operator_changed_stays() -> None:
    group = Group.objects.get(name="Reviewer")
    group.permissions.set(Permission.objects.filter(codename="view_turn"))
    Group.objects.get(name="Member").delete()
    for _ in range(2):
        install_roles()
    assert [each.codename for each in group.permissions.all()] == ["view_turn"]
    assert Group.objects.filter(name="Member").count() == 1
    assert Group.objects.count() == len(ROLES)


@ROLE
def test_a_page_of_the_admin_is_shown_to_the_roles_of_the_table_alone(
    role: Role, ada: World
) -> None:
    user = person_of(role)
    client, asked, shown = client_of(user), 0, set()
    # Some tables take no row from anybody.
    root = client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))
    for at, view in enumerate(ALL, ROLES.index(role)):
        if not view.is_admin or view.name in SHARED:
            continue
        url, missing = address(view, ada), address(view, ada, is_nobodys=True)
        # Of the roles that are not asked by every method, each page meets all of them.
        for method in METHODS if asks_all(role) else choose_methods(METHODS, at):
            asked += 1
            if view in shown and method not in ("get", "post") and not asks_all(role):
                continue
            response, body = read_recorded(client, method, url)
            assert response.status_code < 500, (view, method)
            assert WORD.encode() not in body or READING in role.rights, (view, method)
            is_open = response.status_code not in (403, 404, 405)
            shown |= {view} if is_open else set()
            if method in ("get", "head") and is_open and url != missing:
                assert is_allowed(user, view), (role.name, view, response.status_code)
            if method == "get" and not is_open and is_allowed(user, view):
                is_closed_to_all = root.get(f"/{view.route}").status_code in (403, 404, 405)
                assert is_closed_to_all or response.status_code == 404, (role.name, view)
            if method == "post" and is_open:
                assert is_allowed(user, view), (role.name, view)
    assert asked > 400


@ON_SQLITE
@ROLE
def test_the_log_of_a_row_is_linked_for_those_alone_who_may_see_it(role: Role) -> None:
    user = person_of(role)
    page = client_of(user).get(reverse("admin:conversations_user_change", args=[user.pk]))
    is_linked = "historylink" in page.content.decode()
    assert is_linked == (role.name in ("Administrator", "Auditor"))


def read_recorded(client: Client, method: str, url: str) -> tuple[Any, bytes]:
    """Ask for an address; content of others is in no answer that left no entry behind."""
    before = LogEntry.objects.filter(action_flag=READ).count()
    response, body = answer(client, method, url)
    if WORD.encode() in body:
        assert LogEntry.objects.filter(action_flag=READ).count() > before, (method, url)
    return response, body


@ROLE
def test_a_role_is_a_stranger_to_the_chats_of_others(role: Role, ada: World) -> None:
    client, before = client_of(person_of(role)), people_and_turns.everything()
    asked = 0
    for view in ALL:
        if view.is_admin or not view.is_of_somebody or view.name in OF_REVIEW:
            continue
        for method in METHODS:
            response, body = answer(client, method, address(view, ada))
            asked += 1
            assert response.status_code in (403, 404, 405), (view, method)
            assert WORD.encode() not in body
    assert asked > 350
    assert people_and_turns.everything() == before


@ROLE
def test_the_inspector_of_others_is_open_to_auditors_alone(role: Role, ada: World) -> None:
    client = client_of(person_of(role))
    for view in ALL:
        if view.name in OF_REVIEW:
            response, body = read_recorded(client, "get", address(view, ada))
            is_open = READING in role.rights
            assert response.status_code < 500
            assert is_open or (response.status_code in (403, 404) and WORD.encode() not in body)


@ROLE
def test_the_other_pages_show_a_role_nothing_of_others(role: Role, ada: World) -> None:
    user, client = person_of(role), Client()
    for view in ALL:
        if view.is_admin or view.is_api or view.is_of_somebody or view.name in OF_REVIEW:
            continue
        assert view.name in OWN | PUBLIC, view
        methods = METHODS if asks_all(role) else ("get", "post")
        for method in methods if view.name in OWN else ("get", "head"):
            keep_logged_in(client, user)
            response, body = answer(client, method, address(view, ada))
            assert response.status_code < 500, (view, method)
            assert WORD.encode() not in body, (view, method)


@ROLE
def test_a_token_reads_what_the_role_of_its_owner_sees_and_a_session_nothing(
    role: Role, ada: World
) -> None:
    user = person_of(role)
    secret = token_of(user, *SCOPES)
    for view in ALL:
        if not view.is_api or view.name in ("api_openapi", "api_root", "api_unknown"):
            continue
        url = address(view, ada) + ("?person=ada" if view.name.startswith("api_budgets") else "")
        response, body = answer(Client(), "get", url, Authorization=f"Bearer {secret}")
        kind = View("", view.name.removesuffix("_csv").removesuffix("_jsonl"))
        assert response.status_code == (200 if is_allowed(user, kind) else 403), view
        assert WORD.encode() not in body, view
        assert answer(client_of(user), "get", url)[0].status_code == 401, view


@ROLE
def test_an_action_on_a_list_needs_its_permission(role: Role, ada: World) -> None:
    """Whatever a list offers anybody, and the deletion that some do not offer."""
    user = person_of(role)
    client, held = client_of(user), user.get_all_permissions()
    for kind, shown in admin.site._registry.items():
        rows = kind._default_manager.order_by("pk")
        if not rows or f"{kind._meta.app_label}.delete_{kind._meta.model_name}" in held:
            continue
        before = list(rows.values())
        for action in {"delete_selected", *(str(one) for one in shown.actions or ())}:
            posted = {"action": action, "_selected_action": rows[0].pk, "post": "yes"}
            response = client.post(address_of(kind), posted)
            assert response.status_code < 500, kind
        if kind is not User:
            assert list(rows.values()) == before, (role.name, kind)
        assert rows.filter(pk=before[0][kind._meta.pk.attname]).exists()


# Look-ups.

ASKED = 10_000
#: Of what a list's view refuses so many times, one is asked for by its address.
ONE_IN = 40


def list_offered(client: Client, kind: type[Model]) -> set[str]:
    """Return the parameters in the links of a list's own page."""
    page = client.get(address_of(kind)).content.decode()
    return {
        name
        for link in LINK.findall(page)
        for name, _ in parse_qsl(urlsplit(f"?{unescape(link)}").query)
    }


def generate_look_ups(kind: type[Model], chance: random.Random) -> Iterator[str]:
    paths = [path for path, _ in field_paths(kind)]
    while True:
        yield chance.choice(paths) + chance.choice([*ENDINGS, "__icontains", "__iregex", "__in"])


def is_refused(root: User, kind: type[Model], query: dict[str, str]) -> bool:
    """Ask the view of a list alone: through all of the middleware it takes ten times as long."""
    request = RequestFactory().get(address_of(kind), query)
    request.user = root
    try:
        admin.site.admin_view(admin.site._registry[kind].changelist_view)(request)
    except SuspiciousOperation:
        return True
    return False


@ON_SQLITE
def test_ten_thousand_look_ups_find_nothing_that_is_not_shown(ada: World) -> None:
    """By a superuser, whom no permission holds back: what is not offered is a bad request."""
    chance = random.Random(27)
    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    client, asked, refused = client_of(root), 0, 0
    kinds = list(admin.site._registry.items())
    for kind, shown in kinds:
        offered = list_offered(client, kind)
        names = generate_look_ups(kind, chance)
        # A filter by a field is offered with the values that there are, and takes others, too.
        fields = {one for one in shown.list_filter if isinstance(one, str)}
        fields |= {one[0] for one in shown.list_filter if isinstance(one, tuple)}
        for _ in range(ASKED // len(kinds) + 1):
            name = next(names)
            asked += 1
            if is_refused(root, kind, {name: "Qx"}):
                refused += 1
                assert name not in offered, (kind, name)
                if refused % ONE_IN == 0:
                    assert client.get(address_of(kind), {name: "Qx"}).status_code == 400
                continue
            response = client.get(address_of(kind), {name: "Qx"})
            is_filter = {name, name.rpartition("__")[0]} & {*fields, shown.date_hierarchy}
            assert name in offered or is_filter, (kind, name)
            assert response.status_code in (200, 302)
            assert WORD.encode() not in response.content
    assert asked >= ASKED
    assert refused > ASKED * 9 // 10


# The reason for a reading.


def test_an_auditor_says_why_before_anything_is_shown(ada: World, settings: Any) -> None:
    settings.AGENTWEB_READING_REASONS = True
    auditor = next(role for role in ROLES if READING in role.rights)
    user = person_of(auditor)
    client, asked = client_of(user), 0
    ask = reverse("review_reason", args=[ada.conversation.public_id])
    content = [view for view in ALL if view.is_admin or view.name in OF_REVIEW]
    for view in content:
        if view.name not in SHARED:
            response, body = answer(client, "get", address(view, ada))
            asked += response.status_code == 302 and response["Location"].startswith(ask)
            assert WORD.encode() not in body, view
    assert asked > 12
    entries = LogEntry.objects.filter(user=user, action_flag=READ)
    assert not entries.exists()
    read = reverse("review_inspect", args=[ada.conversation.public_id])
    hinted = client.get(read, headers={"HX-Request": "true"})
    assert hinted["HX-Redirect"].startswith(ask)
    assert client.post(f"{ask}?next={read}", {"reason": "  why  "}).status_code == 400
    assert client.get(f"{ask}?next={read}").status_code == 200
    told = client.post(f"{ask}?next={read}", {"reason": "Complaint 4711 of the owner"})
    assert (told.status_code, told["Location"]) == (302, read)
    for foreign in ("//evil.example/", "evil.example", "login"):
        assert client.post(f"{ask}?next={foreign}", {"reason": "Complaint 4711"}).url == "/admin/"
    assert WORD in b"".join([client.get(read).content]).decode() or entries.exists()
    assert all("Reason: Complaint 4711" in entry.change_message for entry in entries)
    assert entries.count() == 1
    # Of another conversation it is asked for again, and in another session, too.
    other = reverse("review_inspect", args=[ada.trashed.public_id])
    assert client.get(other).status_code == client_of(user).get(read).status_code == 302
