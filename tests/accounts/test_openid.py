"""Logging in by a real OpenID provider: who gets in, as whom, and what is refused and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from agentweb import env
from conversations.models import User
from tests.support import people_and_turns
from tests.support.openid_server import OpenIdServer
from tests.web.pages import HTMX, client_of

pytestmark = pytest.mark.django_db
SECRET = "the client's own secret"
ANN = {
    "email": "ann@example.org", "email_verified": True, "preferred_username": "ann",
    "name": "Ann Example", "groups": ["staff-eu", "chat"],
}  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIdServer]:
    server = OpenIdServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def server(running: OpenIdServer, settings: Any) -> OpenIdServer:
    running.instead = b""
    running.put_person("s-1", ANN)
    settings.LOG_IN_PROVIDERS = [provider(running), provider(running, id="other", client_id="b")]
    return running


def provider(server: OpenIdServer, **changes: Any) -> dict[str, Any]:
    return {
        "id": "office", "name": "Example Works", "server": server.url, "client_id": "a",
        "client_secret": SECRET, "new_accounts": True, "required": ["chat"],
        "groups": {"staff-eu": "Europe", "chat": "Chatters", "buyers": "Buyers"},
    } | changes  # fmt: skip


def begin(client: Client, id: str = "office", **query: str) -> str:
    answer = client.get(f"/accounts/openid/{id}/", query)
    assert answer.status_code == 302, answer.content
    return str(answer["Location"])


def log_in(server: OpenIdServer, client: Client, sub: str = "s-1", id: str = "office") -> Any:
    """Go to the provider, agree there, and come back."""
    return client.get(come_back(server, client, sub, id))


def come_back(server: OpenIdServer, client: Client, sub: str = "s-1", id: str = "office") -> str:
    back = urlsplit(server.agree(begin(client, id), sub))
    assert back.path == f"/accounts/openid/{id}/back/"
    return f"{back.path}?{back.query}"


def is_in(client: Client) -> bool:
    return client.get("/usage/").status_code == 200


def groups_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def refused(answer: Any, client: Client, words: str = "not completed") -> bool:
    assert answer.status_code == 403
    assert words in answer.content.decode()
    return not is_in(client)


def test_the_first_log_in_makes_an_account_with_the_groups_of_the_claim(
    server: OpenIdServer,
) -> None:
    client = Client()
    assert log_in(server, client)["Location"] == "/"
    assert is_in(client)
    user = User.objects.get()
    assert (user.username, user.email, user.first_name) == ("ann", "ann@example.org", "Ann")
    assert not user.has_usable_password()
    assert not user.is_staff
    assert groups_of(user) == {"Europe", "Chatters"}
    # What the provider tells of a person is not kept beside the account.
    assert SocialAccount.objects.get().extra_data == {}


def test_another_log_in_is_the_same_account_and_follows_the_groups(server: OpenIdServer) -> None:
    log_in(server, Client())
    user = User.objects.get()
    user.groups.add(Group.objects.create(name="Of this site"))
    changed = ANN | {"groups": ["chat", "buyers"], "preferred_username": "anne", "email": "x@y.zz"}
    server.put_person("s-1", changed)
    client = Client()
    log_in(server, client)
    assert is_in(client)
    assert User.objects.get() == user
    assert groups_of(user) == {"Chatters", "Buyers", "Of this site"}


def test_a_role_of_the_admin_comes_and_goes_with_its_claim(
    server: OpenIdServer, settings: Any
) -> None:
    mapped = {"staff-eu": "Reviewer", "chat": "Chatters"}
    settings.LOG_IN_PROVIDERS = [provider(server, groups=mapped)]
    client = Client()
    log_in(server, client)
    assert client.get("/admin/conversations/turn/").status_code == 200
    assert client.get("/admin/conversations/budget/").status_code == 403
    server.put_person("s-1", ANN | {"groups": ["chat"]})
    log_in(server, client)
    assert client.get("/admin/conversations/turn/")["Location"].startswith("/admin/login/")
    assert not User.objects.get().is_staff


def test_who_loses_the_required_value_loses_sessions_and_account_until_it_is_back(
    server: OpenIdServer,
) -> None:
    client = Client()
    log_in(server, client)
    server.put_person("s-1", ANN | {"groups": ["staff-eu"]})
    other = Client()
    assert refused(log_in(server, other), other, "not among the people")
    assert not is_in(client)
    assert not User.objects.get().is_active
    server.put_person("s-1", ANN)
    log_in(server, other)
    assert is_in(other)


def test_an_account_that_an_administrator_closed_stays_closed(server: OpenIdServer) -> None:
    log_in(server, Client())
    User.objects.update(is_active=False)
    client = Client()
    assert refused(log_in(server, client), client, "closed by an administrator")


def test_a_stranger_without_the_required_value_gets_no_account(server: OpenIdServer) -> None:
    server.put_person("s-2", {"email": "eve@example.org", "groups": []})
    client = Client()
    assert refused(log_in(server, client, "s-2"), client, "not among the people")
    assert not User.objects.exists()


def test_without_new_accounts_only_known_people_get_in(server: OpenIdServer, settings: Any) -> None:
    settings.LOG_IN_PROVIDERS = [provider(server, new_accounts=False)]
    client = Client()
    assert refused(log_in(server, client), client, "no account here")
    assert not User.objects.exists()


def test_a_local_name_is_not_taken_over(server: OpenIdServer) -> None:
    local = people_and_turns.person("ann")
    client = Client()
    log_in(server, client)
    assert is_in(client)
    assert SocialAccount.objects.get().user_id != local.pk
    assert User.objects.exclude(pk=local.pk).get().username != "ann"


@pytest.mark.parametrize(
    ("links", "claims", "fields", "is_linked"),
    [
        (False, {}, {}, False),
        (True, {}, {}, True),
        (True, {"email_verified": False}, {}, False),
        (True, {"email_verified": "true"}, {}, False),
        (True, {}, {"is_staff": True}, False),
        (True, {}, {"is_active": False}, False),
    ],
    ids=["off", "on", "unverified", "not a truth", "staff", "closed"],
)
def test_an_account_is_linked_only_by_a_verified_address_where_the_setting_says_so(
    links: bool, claims: dict[str, Any], fields: dict[str, Any], is_linked: bool,
    server: OpenIdServer, settings: Any,
) -> None:  # fmt: skip
    settings.LOG_IN_PROVIDERS = [provider(server, links_verified_email=links)]
    server.put_person("s-1", ANN | claims)
    local = people_and_turns.person("local", email="Ann@example.org", **fields)
    client = Client()
    answer = log_in(server, client)
    assert User.objects.get() == local
    assert SocialAccount.objects.filter(user=local).exists() == is_linked == is_in(client)
    if not is_linked:
        assert refused(answer, client, "has your e-mail address already")


def test_a_state_is_taken_once_and_in_its_own_browser(server: OpenIdServer) -> None:
    client, thief = Client(), Client()
    back = come_back(server, client)
    assert refused(thief.get(back), thief)
    assert client.get(back).status_code == 302
    client.post("/accounts/logout/")
    assert refused(client.get(back), client)
    forged = "/accounts/openid/office/back/?code=x&state=y"
    assert refused(client.get(forged), client)


def answer_of(server: OpenIdServer, id: str = "office") -> bytes:
    """Return a token response that the provider really gave, for another log-in."""
    log_in(server, Client(), id=id)
    return server.tokens[-1]


def with_instead(server: OpenIdServer, token: bytes, caplog: pytest.LogCaptureFixture) -> str:
    """Log in with another token than the one of this log-in; return why it was refused."""
    caplog.clear()
    client = Client()
    back = come_back(server, client)
    server.instead = token
    with caplog.at_level(logging.WARNING, "agentweb.log_ins"):
        assert refused(client.get(back), client)
    assert server.instead == b"", "the token was never asked for"
    assert SECRET not in caplog.text
    return caplog.text


def test_a_token_for_another_client_is_refused(
    server: OpenIdServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert "InvalidAudienceError" in with_instead(server, answer_of(server, "other"), caplog)


def test_a_token_of_another_log_in_is_refused_by_its_nonce(
    server: OpenIdServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert "nonce of another log-in" in with_instead(server, answer_of(server), caplog)


def test_a_token_of_another_issuer_is_refused(
    server: OpenIdServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = {"server": server.url.replace("127.0.0.1", "localhost")}
    settings.LOG_IN_PROVIDERS = [provider(server), provider(server, id="other") | theirs]
    assert "InvalidIssuerError" in with_instead(server, answer_of(server, "other"), caplog)


def test_an_expired_token_and_one_with_a_key_of_before_are_refused(
    server: OpenIdServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    short = OpenIdServer(token_seconds=-60)
    short.start()
    try:
        short.put_person("s-1", ANN)
        settings.LOG_IN_PROVIDERS = [provider(short)]
        client = Client()
        with caplog.at_level(logging.WARNING, "agentweb.log_ins"):
            assert refused(log_in(short, client), client)
        assert "ExpiredSignatureError" in caplog.text
        old = short.tokens[-1]
        # The provider starts anew, with new keys: they are taken at once, the old ones no more.
        short.stop()
        short.token_seconds = 3_600
        short.start()
        short.put_person("s-1", ANN)
        client = Client()
        log_in(short, client)
        assert is_in(client)
        assert "InvalidSignatureError" in with_instead(short, old, caplog)
    finally:
        short.close()


@pytest.mark.parametrize("token", [b"{}", b"no json", b'{"access_token":"x"}'])
def test_an_answer_that_is_no_token_is_refused(
    token: bytes, server: OpenIdServer, caplog: pytest.LogCaptureFixture
) -> None:
    with_instead(server, token, caplog)


def unsigned(server: OpenIdServer, algorithm: str) -> bytes:
    """Return a real token response whose ID token says another algorithm."""
    import base64
    import json

    found = json.loads(answer_of(server))
    _, body, signature = found["id_token"].split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "kid": "x"}).encode()).decode()
    found["id_token"] = ".".join([head.rstrip("="), body, signature])
    return json.dumps(found).encode()


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_without_the_providers_signature_is_refused(
    algorithm: str, server: OpenIdServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert "no accepted algorithm" in with_instead(server, unsigned(server, algorithm), caplog)


def test_a_provider_whose_document_names_another_issuer_is_not_used(
    server: OpenIdServer, settings: Any
) -> None:
    theirs = {"server": f"{server.url}/.well-known/openid-configuration"}
    settings.LOG_IN_PROVIDERS = [provider(server) | theirs]
    assert Client().get("/accounts/openid/office/").status_code == 503


def test_a_provider_that_cannot_be_reached_is_said_to_be(settings: Any) -> None:
    gone = OpenIdServer()
    dead = f"http://127.0.0.1:{gone.port}"
    settings.LOG_IN_PROVIDERS = [{"id": "w", "name": "W", "server": dead, "client_id": "a"}]
    answer = Client().get("/accounts/openid/w/")
    assert answer.status_code == 503
    assert b"cannot be reached now" in answer.content


def test_a_person_who_declines_is_told_so(server: OpenIdServer) -> None:
    client = Client()
    back = urlsplit(server.agree(begin(client), "s-1", "deny"))
    found = parse_qs(back.query)
    assert found["error"] == ["access_denied"]
    state = parse_qs(urlsplit(begin(client)).query)["state"][0]
    answer = client.get(f"{back.path}?error=access_denied&state={state}")
    assert refused(answer, client, "was cancelled")


def test_the_log_in_page_offers_the_providers_and_goes_on_to_the_page_asked_for(
    server: OpenIdServer,
) -> None:
    client = Client()
    html = client.get("/accounts/login/?next=/usage/").content.decode()
    assert "Log in with Example Works" in html
    assert "/accounts/openid/office/?next=%2Fusage%2F" in html
    assert SECRET not in html
    back = urlsplit(server.agree(begin(client, next="/usage/"), "s-1"))
    assert client.get(f"{back.path}?{back.query}")["Location"] == "/usage/"
    back = urlsplit(server.agree(begin(Client(), next="https://evil.example/"), "s-1"))
    sent = parse_qs(urlsplit(begin(client)).query)
    assert {"S256"} == set(sent["code_challenge_method"])
    assert sent["nonce"] != sent["state"]


def test_so_does_the_log_in_on_a_page_whose_session_is_over(server: OpenIdServer) -> None:
    html = Client().get("/accounts/again/?next=/c/new/", headers=HTMX).content.decode()
    assert 'href="/accounts/openid/office/?next=%2Fc%2Fnew%2F"' in html
    assert 'href="/accounts/login/?next=%2Fc%2Fnew%2F"' in html


def test_who_has_neither_password_nor_factor_is_asked_for_none(
    server: OpenIdServer, settings: Any
) -> None:
    settings.SENDS_MAIL = True
    client, page = Client(), "/settings/account/address/"
    log_in(server, client)
    html = client.get("/settings/account/").content.decode()
    assert "Your account has no password" in html
    assert "old_password" not in html
    sent = {"email": "new@example.org"}
    assert 'name="secret"' not in client.get(page).content.decode()
    assert client.post(page, sent)["Location"] == "/settings/account/"
    ann = User.objects.get()
    app = Authenticator.objects.create(user=ann, type=Authenticator.Type.TOTP, data={})
    assert client.post(page, sent).status_code == 400
    app.delete()
    User.objects.update(password=make_password("correct horse battery"))
    client.force_login(User.objects.get())
    assert client.post(page, sent).status_code == 400
    assert "old_password" in client.get("/settings/account/").content.decode()


def test_a_provider_that_is_not_set_is_not_there() -> None:
    for path in ("/accounts/openid/x/", "/accounts/openid/x/back/"):
        assert client_of(people_and_turns.person("eve" + path[-5:-1])).get(path).status_code == 404


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "not JSON"),
        ('{"id": "x"}', "a list of objects"),
        ('[{"id": "x"}]', "name, server, client_id missing"),
        ('[{"id":"X","name":"x","server":"https://x","client_id":"x"}]', "small letters"),
        ('[{"id":"x","name":"x","server":"http://x.example","client_id":"x"}]', "https"),
        ('[{"id":"x","name":"x","server":"https://x","client_id":"x","extra":1}]', "extra unknown"),
    ],
)
def test_a_setting_that_is_wrong_says_where_and_quotes_nothing(
    value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTWEB_LOG_IN_PROVIDERS", value)
    with pytest.raises(ImproperlyConfigured, match=words) as found:
        env.log_in_providers("AGENTWEB_LOG_IN_PROVIDERS")
    assert value not in str(found.value)
