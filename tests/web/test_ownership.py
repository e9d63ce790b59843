"""What the owner can open, and that reading changes nothing; for others: tests/attacks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from conversations.library.conversations import delete_conversation
from conversations.models import FailedLogIns, User
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import summarise, talk
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db
UNKNOWN = "00000000-0000-4000-8000-000000000000"
#: Views of manual context changes, besides the preview and its confirmation.
OF_HAND = {
    "ask_summary", "discard_summary", "edit_summary", "rewrite_summary", "exclude", "include",
    "compact_now", "choose_full",
}  # fmt: skip
#: Views that change something, and those that anybody may read.
POSTS = {
    "show", "continue", "send_queued", "withdraw", "fork", "decide",
    "start", "send", "stop", "retry", "logout", "pin", "unpin", "restore", "undo", "rename",
    "star_chat", "archive", "delete", "bring_back", "erase", "empty_trash", "import", "delete_data",
    "import_prompts",
    "choose_model",
    "copy_prompt", "delete_prompt", "unshare", "revoke_links",
    "open_folder", "rename_folder", "delete_folder",
    "change_mail", "remove_mail", "remove_file", "dismiss_notice", "own_limit", "move_file",
    "delete_file",
    "restore_files", "empty_files", "log_out_elsewhere",
    "log_out_one", "log_out_everywhere", "stop_impersonation", *OF_HAND,
}  # fmt: skip
OF_THE_TRASH = {"bring_back", "erase"}
OF_A_RESET = {"password_reset", "password_reset_confirm"}
PUBLIC = {
    "login",
    "log_in_again",
    "logout",
    "live",
    "ready",
    "setup",
    "favicon",
    "metrics",
    "invitation",
    "offline",
    "service_worker",
}
OF_SECOND_FACTORS = {
    "mfa_activate_totp", "mfa_deactivate_totp", "add_passkey", "remove_passkey",
    "mfa_generate_recovery_codes", "account_reauthenticate",
}  # fmt: skip
OF_A_SECOND_STEP = {"account_login", "mfa_authenticate", "log_in_with_passkey"}
OF_A_PROVIDER = {"openid_connect_login", "openid_connect_callback"}
PUBLIC |= OF_A_SECOND_STEP | OF_A_RESET | OF_A_PROVIDER | {"password_reset_sent"}
#: Public pages that refuse a stranger in their own words.
REFUSING = {"log_in_with_passkey"}
#: A link that does not work is counted like a wrong password.
COUNTING = {"password_reset_confirm", "invitation"}
OF_A_PERSON = {"appearance_settings", "chat_settings", "shortcuts_settings", "account_settings"}
OF_A_PERSON |= {"mail_settings", "change_email", "confirm_email", "new_prompt", "new_folder"}
BOTH = (
    {
        "review_reason",
        "compact",
        "edit",
        "files",
        "workspace",
        "login",
        "log_in_again",
        "setup",
        "invitation",
        "favicon",
        "lab",
        "settings",
        "share",
        "tools",
        "change_prompt",
        "use_prompt",
        "move_chat",
    }
    | OF_A_PERSON
    | OF_A_RESET
    | OF_A_SECOND_STEP
    | OF_SECOND_FACTORS
)


def views(patterns: Any = None, before: str = "") -> list[tuple[str, str]]:
    """Return (route, name) of every view outside the admin and the API (test_api.py)."""
    found: list[tuple[str, str]] = []
    for each in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver) and not route.startswith(("admin/", "api/")):
            found += views(each.url_patterns, route)
        elif isinstance(each, URLPattern):
            found.append((route, str(each.name)))
    return found


VIEWS = views()
INSPECTOR = {
    "inspect", *(f"inspect_{page}" for page in (
        "now", "kinds", "answer", "call", "block", "gone", "request", "body", "compare", "diff",
    )),
}  # fmt: skip
#: For staff who may read content; each access is recorded (tests/web/test_inspector.py).
OF_REVIEW = {f"review_{name}" for name in INSPECTOR} | {"review_reduction", "review_reason"}
OF_A_CONVERSATION = [(route, name) for route, name in VIEWS if "<uuid:public_id>" in route]


def address(route: str, public_id: Any, seq: int = 1) -> str:
    values = {
        "<uuid:public_id>": str(public_id), "<int:number>": "1", "<int:seq>": str(seq),
        "<str:id>": "toolu_1", "<str:token>": "token", "<str:form>": "md",
        "<uuid:account_id>": UNKNOWN, "<uuid:file_id>": UNKNOWN, "<uuid:client_id>": UNKNOWN,
        "<uuid:batch>": UNKNOWN, "<uuid:prompt_id>": UNKNOWN, "<uuid:folder_id>": UNKNOWN,
        "<str:uidb64>": "MQ", "<int:pk>": "9",
        "<str:provider_id>": "none",
        "<int:n>": "1", "<int:index>": "0", "<int:step>": "1", "<int:a>": "1", "<int:b>": "3",
    }  # fmt: skip
    if "/answers/" in route:
        route = route.replace("<int:seq>", "2")
    for part, value in values.items():
        route = route.replace(part, value)
    assert "<" not in route, "a new kind of URL: say here what stands in it"
    return f"/{route}"


def visitor(user: User | None) -> Client:
    client = Client(raise_request_exception=True)
    if user is not None:
        client.force_login(user)
    return client


def ask(client: Client, method: str, url: str) -> Any:
    form = {"text": "hello", "id": "toolu_1", "title": "Hello", "choice": "full_once"}
    data = form if method == "post" else None
    return getattr(client, method)(url, data) if data else getattr(client, method)(url)


@pytest.fixture(scope="module")
def once_played(module_database: None) -> Played:
    return stored_turns.played()


@pytest.fixture
def played(once_played: Played) -> Played:
    return deepcopy(once_played)


def test_the_urls_are_those_that_this_file_knows() -> None:
    assert {name for _, name in VIEWS} == {
        "updates",
        "home", "new_chat", "start", "chat", "send", "stop", "retry", "reduction", "tool_output",
        "edit", "show", "continue", "send_queued", "withdraw", "fork", "decide",
        "preferences", *OF_A_RESET, "password_reset_sent", "log_in_again", "log_out_elsewhere",
        "mfa_index", "mfa_view_recovery_codes", *OF_SECOND_FACTORS, *OF_A_SECOND_STEP,
        "largest", *OF_A_PERSON, *OF_A_PROVIDER,
        "usage", "usage_csv", "own_limit", "budget_notices", "dismiss_notice", "context_settings",
        "lab", "settings", "choose_model", "new_model", "tools", "pin", "unpin", "restore", "undo",
        "login", "logout", "setup", "invitation", "live", "ready", "favicon", "metrics",
        "offline", "service_worker",
        "chat_menu", "rename", "star_chat", "archive", "delete", "export", "list", "search",
        "trash", "empty_trash", "bring_back", "erase", "data", "export_all", "import",
        "delete_data", "files", "files_waiting", "file", "file_text", "remove_file",
        "workspace", "workspace_file", "workspace_download", "move_file", "delete_file",
        "restore_files", "empty_files", "change_mail", "remove_mail",
        "saved_prompts", "prompt_choices", "use_prompt", "change_prompt", "copy_prompt",
        "delete_prompt", "import_prompts",
        "share", "unshare", "shared", "shared_file", "shared_links", "revoke_links",
        "folder", "move_chat", "open_folder", "rename_folder", "delete_folder",
        "sessions", "log_out_one", "log_out_everywhere", "stop_impersonation",
        "external_link", "compact", *OF_HAND, *INSPECTOR, *OF_REVIEW,
    }  # fmt: skip


def test_a_stranger_is_sent_to_the_login(played: Played) -> None:
    before = people_and_turns.everything(but=[FailedLogIns])
    for route, name in VIEWS:
        for method in ("get", "post"):
            response = ask(Client(), method, address(route, played.conversation.public_id, 5))
            if name in PUBLIC:
                allowed = (200, 302, 404, 405, *((403,) if name in REFUSING else ()))
                assert response.status_code in allowed, name
            else:
                assert response.status_code == 302
                assert response["Location"].startswith("/accounts/login/?next=/")
    assert people_and_turns.everything(but=[FailedLogIns]) == before


@pytest.mark.parametrize(("route", "name"), VIEWS)
def test_reading_changes_nothing_and_posting_is_for_what_changes(
    route: str, name: str, played: Played
) -> None:
    client = visitor(played.user)
    url = address(route, played.conversation.public_id, 5)
    but = [FailedLogIns] if name in COUNTING else []
    before = people_and_turns.everything(but=but)
    for method in ("get", "head"):
        response = ask(client, method, url)
        if name in POSTS:
            assert response.status_code == 405
        else:
            assert response.status_code in (200, 302, 404)
    for method in () if name in BOTH else ("put", "patch", "delete"):
        assert ask(client, method, url).status_code == 405
    if name not in POSTS | BOTH:
        assert ask(client, "post", url).status_code == 405
    assert people_and_turns.everything(but=but) == before


@pytest.mark.parametrize(("route", "name"), OF_A_CONVERSATION)
def test_the_owner_reaches_everything_of_theirs(route: str, name: str, played: Played) -> None:
    seq = played.conversation.transformations.get(kind="compaction").seq
    if name == "undo":
        ask(
            visitor(played.user),
            "post",
            address("c/<uuid:public_id>/pin/", played.conversation.public_id),
        )
        seq = played.conversation.transformations.get(kind="restore").seq
    if name in OF_HAND:
        talk(played)
    if name in ("edit_summary", "rewrite_summary"):
        seq = summarise(played).seq
    if name == "continue":
        played.conversation.turns.update(finish_reason="max_tokens")
    if name == "withdraw":
        people_and_turns.next_turn(played.conversation)
        turns.send_prompt(conversation=played.conversation, text="Later", client_id=UUID(UNKNOWN))
    if name in OF_THE_TRASH:
        delete_conversation(conversation=played.conversation)
    if name in OF_REVIEW:
        User.objects.filter(pk=played.user.pk).update(is_staff=True)
        played.user.refresh_from_db()
    url = address(route, played.conversation.public_id, seq)
    method = "post" if name in POSTS else "get"
    # Nothing was removed from the view of the first call.
    found = (404,) if name.endswith("inspect_gone") else (200, 302)
    if name in ("edit_summary", "exclude", "decide"):
        # Reached, but refused with a reason: no text given, nothing to shorten, no approval open.
        found = (302, 400, 409)
    assert ask(visitor(played.user), method, url).status_code in found


@pytest.mark.parametrize(
    ("route", "name"),
    [
        v
        for v in VIEWS
        if v[1]
        in POSTS
        | {
            "compact",
            "edit",
            "login",
            "setup",
            "settings",
            "share",
            "lab",
            "tools",
            "move_chat",
        }
        | OF_A_PERSON
    ],
)
def test_a_post_without_the_token_of_our_page_is_refused(
    route: str, name: str, played: Played
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(played.user)
    client.get("/c/new/")
    before = people_and_turns.everything()
    url = address(route, played.conversation.public_id)
    assert client.post(url, {"text": "hello"}).status_code == 403
    wrong = {"text": "hello", "csrfmiddlewaretoken": "x" * 64}
    assert client.post(url, wrong).status_code == 403
    body = '{"text":"hello"}'
    assert client.post(url, body, content_type="text/plain").status_code == 403
    own = {"HTTP_ORIGIN": "http://evil.example"}
    token = client.cookies["csrftoken"].value
    data = {"text": "hello", "csrfmiddlewaretoken": token}
    assert client.post(url, data, **own).status_code == 403  # type: ignore[arg-type]
    assert people_and_turns.everything() == before


def test_what_is_not_there_is_not_found(played: Played) -> None:
    client, before = visitor(played.user), f"/c/{played.conversation.public_id}"
    for number in ("0", "2", "99999999999999999999", "007"):
        assert client.post(f"{before}/retry/{number}/").status_code == 404, number
        assert client.get(f"{before}/inspect/events/{number}/").status_code == 404, number
    odd = ("toolu_2", "%00", "a%00b", "²", "9" * 300, "%22", "%25", "..", "%F0%9F%98%80", "%FF")
    for name in odd:
        assert client.get(f"{before}/tools/{name}/").status_code == 404, name
