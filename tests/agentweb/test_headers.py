"""Headers on every answer, whatever it is; nothing of the machine in any of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.support import stored_turns

pytestmark = pytest.mark.django_db
CSP = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
    "font-src 'self'", "connect-src 'self'", "form-action 'self'", "base-uri 'none'",
    "frame-ancestors 'none'", "object-src 'none'",
}  # fmt: skip
ASKED = {
    "login": ("get", "/accounts/login/", 302),
    "home": ("get", "/", 302),
    "chat": ("get", "/c/{id}/", 200),
    "new chat": ("get", "/c/new/", 200),
    "output": ("get", "/c/{id}/tools/toolu_1/", 200),
    "not found": ("get", "/nothing/", 404),
    "not allowed": ("get", "/c/{id}/send/", 405),
    "bad form": ("post", "/c/start/", 400),
    "static": ("get", "/static/agentweb.css", 200),
    "static not found": ("get", "/static/../settings.py", 404),
    "static escaped": ("get", "/static/%2e%2e/settings.py", 404),
    "admin login": ("get", "/admin/login/", 403),
    "admin": ("get", "/admin/", 302),
    "health": ("get", "/healthz/live", 200),
    "ready": ("get", "/healthz/ready", 200),
    "source": ("get", "/.git/config", 404),
    "media": ("get", "/media/x", 404),
}


def check(response: Any) -> None:
    policy = {part.strip() for part in response["Content-Security-Policy"].split(";")}
    assert policy >= CSP
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    names = {name.lower() for name in response.headers}
    assert not names & {"x-powered-by", "server", "access-control-allow-origin"}


def test_every_answer_has_the_headers() -> None:
    played = stored_turns.played()
    client = Client()
    client.force_login(played.user)
    for name, (method, path, status) in ASKED.items():
        response = getattr(client, method)(path.format(id=played.conversation.public_id))
        assert (name, response.status_code) == (name, status)
        check(response)


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/reset/"])
def test_the_login_of_a_stranger_has_the_headers(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 200
    check(response)


def test_refusals_have_the_headers_too() -> None:
    forged = Client(enforce_csrf_checks=True).post("/accounts/login/", {"username": "x"})
    assert forged.status_code == 403
    check(forged)
    elsewhere = Client(headers={"host": "evil.example"}).get("/")
    assert elsewhere.status_code == 400
    check(elsewhere)
    big = Client().post("/accounts/login/", {"username": "x" * 5_000_000})
    assert big.status_code == 413
    check(big)


def test_an_error_of_ours_has_the_headers_and_says_nothing_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = stored_turns.played()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("conversations.web.chat.find_newest", broken)
    client = Client(raise_request_exception=False)
    client.force_login(played.user)
    response = client.get("/?<script>alert(1)</script>")
    assert response.status_code == 500
    check(response)
    for word in (b"secret detail", b"Traceback", b"<script>alert", settings.SECRET_KEY.encode()):
        assert word not in response.content


@pytest.mark.parametrize("path", ["/<script>alert(1)</script>/", "/c/%3Cimg%20src=x%3E/"])
def test_an_error_page_repeats_nothing_of_the_request(path: str) -> None:
    response = Client().get(path, {"q": "<script>alert(2)</script>"})
    assert response.status_code == 404
    assert b"alert" not in response.content
    assert b"<img src=x" not in response.content


def test_cookies_are_kept_from_scripts_and_other_sites() -> None:
    played = stored_turns.played()
    played.user.set_password("a long password")
    played.user.save()
    client = Client()
    client.get("/accounts/login/")
    client.post("/accounts/login/", {"username": "ada", "password": "a long password"})
    assert set(client.cookies) >= {"sessionid", "csrftoken"}
    for cookie in client.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)",
     "///evil.example", "\\\\evil.example", " //evil.example", "//127.0.0.1:8000@evil.example"],
)  # fmt: skip
def test_a_login_never_leads_away(target: str) -> None:
    played = stored_turns.played()
    played.user.set_password("a long password")
    played.user.save()
    data = {"username": "ada", "password": "a long password", "next": target}
    response = Client().post("/accounts/login/", data)
    assert response.status_code == 302
    assert response["Location"] == "/"


def test_a_page_after_the_logout_is_not_kept_by_the_browser() -> None:
    played = stored_turns.played()
    client = Client()
    client.force_login(played.user)
    url = f"/c/{played.conversation.public_id}/"
    assert client.get(url).status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get(url).status_code == 302
