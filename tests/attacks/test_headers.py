"""Headers on every kind of answer, cookies where HTTPS is on, and pages that repeat nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from django.test import Client

from tests.agentweb.test_headers import check
from tests.support import people_and_turns, stored_turns
from tests.support.one_database import ON_SQLITE

pytestmark = pytest.mark.django_db
MARK = "<script>alert('reflected')</script>"
SEEN = (b"reflected", b"Traceback", b"agentweb.settings", b"/site-packages/")


@pytest.fixture
def client() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(stored_turns.played().user)
    return client


def answer_is_closed(response: Any, *, is_kept: bool = False) -> None:
    check(response)
    assert response["X-Frame-Options"] == "DENY"
    assert ("no-store" in response.get("Cache-Control", "")) is not is_kept


def test_every_kind_of_answer_has_them(client: Client) -> None:
    stranger = Client(raise_request_exception=False)
    for who, method, path, status in (
        (client, "get", "/c/new/", 200),
        (client, "get", "/", 302),
        (client, "get", "/favicon.ico", 302),
        (client, "get", "/c/new", 301),
        (client, "get", "/c/start/", 405),
        (client, "post", "/c/start/", 400),
        (client, "get", "/nothing/", 404),
        (client, "get", "/admin/", 302),
        (client, "put", "/c/new/", 405),
        (client, "get", "/healthz/live", 200),
        (client, "get", "/healthz/ready", 200),
        (client, "get", "/usage/calls.csv", 200),
        (client, "get", "/settings/data/export.zip", 200),
        (stranger, "get", "/", 302),
        (stranger, "get", "/accounts/login/", 200),
        (stranger, "get", "/accounts/again/", 200),
        (stranger, "get", "/admin/login/", 302),
    ):
        response = getattr(who, method)(path)
        assert (path, response.status_code) == (path, status)
        answer_is_closed(response)
    static = stranger.get("/static/agentweb.css")
    assert static.status_code == 200
    answer_is_closed(static, is_kept=True)
    fragment = stranger.get("/c/list/", headers={"HX-Request": "true"})
    assert fragment.status_code == 401
    answer_is_closed(fragment)


def test_too_many_attempts_have_them(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS = 1
    for path in ("/accounts/login/", "/accounts/again/"):
        for _ in range(2):
            response = Client().post(path, {"username": MARK, "password": "x"})
        assert response.status_code == 429
        answer_is_closed(response)
        assert MARK.encode() not in response.content


ERRORS = {
    SuspiciousOperation: 400, RequestDataTooBig: 413, PermissionDenied: 403, Http404: 404,
    RuntimeError: 500, MemoryError: 500, UnicodeEncodeError: 500,
}  # fmt: skip


def test_no_error_page_repeats_what_was_asked_or_says_how_it_failed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"User-Agent": MARK, "Referer": MARK, "X-Forwarded-For": MARK, "Cookie2": MARK}
    kinds = list(ERRORS)

    def broken(*_: Any, **__: Any) -> None:
        kind = kinds[0]
        if kind is UnicodeEncodeError:
            "\ud800".encode()
        raise kind(MARK)

    monkeypatch.setattr("conversations.web.chat.find_newest", broken)
    while kinds:
        for htmx in ({}, {"HX-Request": "true"}):
            response = client.get("/", {"q": MARK}, headers=headers | htmx)
            assert response.status_code == ERRORS[kinds[0]]
            answer_is_closed(response)
            for word in (*SEEN, settings.SECRET_KEY.encode()):
                assert word not in response.content
        kinds.pop(0)


MISSING = (
    f"/{MARK}/", f"/c/{MARK}/", f"/admin/{MARK}/", f"/static/{MARK}", f"/setup/{MARK}/",
    f"/files/{MARK}", f"/admin/conversations/user/{MARK}/change/", f"/accounts/{MARK}",
)  # fmt: skip


def test_no_page_repeats_a_path_that_is_not_there() -> None:
    root = Client()
    root.force_login(people_and_turns.person("root", is_staff=True, is_superuser=True))
    for path in MISSING:
        for who in (Client(), root):
            response = who.get(path, {MARK: MARK})
            assert response.status_code in (302, 404)
            check(response)
            assert MARK.encode() not in response.content
            assert "<" not in response.get("Location", "")


def test_a_forged_post_is_refused_without_repeating_it() -> None:
    for host in ("testserver", "evil.example"):
        strict = Client(enforce_csrf_checks=True, headers={"host": host})
        response = strict.post(f"/accounts/login/?{MARK}", {"username": MARK, MARK: MARK})
        assert response.status_code in (400, 403)
        check(response)
        assert b"reflected" not in response.content


# Paths that would lead out of where files are.

OUTSIDE = (
    "../settings.py", "%2e%2e/settings.py", "%2e%2e%2fsettings.py", "..%5csettings.py",
    "..%255c..%255csettings.py", "....//settings.py", "//etc/passwd", "%00", "a%00.css", "..",
    "/etc/passwd", "C:%5cwindows%5cwin.ini", "..;/settings.py", "%c0%ae%c0%ae/settings.py",
    "agentweb.css/../../settings.py", "agentweb.css%00.html", "~root/.profile", "?../../x",
    "%ff%fe", "a" * 5_000,
)  # fmt: skip


def test_no_path_leads_out_of_where_files_are(client: Client) -> None:
    chat = client.get("/")["Location"]
    folders = ("/static/", "/media/", "/", f"{chat}export.", "/files/", "/usage/", "/files/own/",
               f"{chat}tools/", "/admin/overview/")  # fmt: skip
    for address in (before + path for before in folders for path in OUTSIDE):
        response = client.get(address)
        assert response.status_code in (200, 301, 302, 404), address
        content = b"".join(response) if response.streaming else response.content
        for word in (b"SECRET_KEY", b"root:", b"DATABASES", b"[fonts]"):
            assert word not in content


OF_THE_PROJECT = (
    ".git/config", ".env", "manage.py", "requirements.lock", "agentweb.sqlite3", "secret_key",
    "agentweb/settings.py",
)  # fmt: skip


def test_nothing_of_the_project_or_its_data_is_served() -> None:
    for name in OF_THE_PROJECT:
        for before in ("/", "/static/", "/static/../", "/media/"):
            assert Client().get(before + name).status_code == 404
        assert Client().get(f"/admin/{name}")["Location"].startswith("/admin/login/")


def test_an_export_is_one_of_its_forms(client: Client) -> None:
    chat = client.get("/")["Location"]
    for form in ("../md", "MD", "xml", "md/", "md%00", "x" * 99):
        assert client.get(f"{chat}export.{form}").status_code == 404
    for form in ("md?format=../../x", "json?form=html"):
        response = client.get(f"{chat}export.{form}")
        assert response.status_code == 200
        assert ".." not in response["Content-Disposition"]


# The whole in its strictest form: HTTPS on, in a process of its own.

STRICT = """
import json, django
django.setup()
from django.conf import settings
from django.core.management import call_command
from django.test import Client
call_command("check", deploy=True, fail_level="WARNING")
secure = Client(headers={"host": "chat.example.org"})
plain = secure.get("/c/new/")
page = secure.get("/accounts/login/", secure=True)
cookies = {name: getattr(settings, "SESSION_COOKIE_" + name)
           for name in ("NAME", "SECURE", "HTTPONLY", "PATH", "DOMAIN", "SAMESITE")}
print(json.dumps({
    "redirect": [plain.status_code, plain["Location"], dict(plain.headers)],
    "token": {name: dict(morsel) for name, morsel in secure.cookies.items()},
    "session": cookies, "page": [page.status_code, dict(page.headers)],
    "health": secure.get("/healthz/live").status_code,
}))
"""


# A process with settings and a database of its own: that of the run is nothing to it.


@pytest.fixture
def strict(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "agentweb.settings", "AGENTWEB_HTTPS": "1",
        "AGENTWEB_HOSTS": "chat.example.org", "AGENTWEB_ORIGINS": "https://chat.example.org",
        "AGENTWEB_DATA_DIR": str(tmp_path),
    }  # fmt: skip


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, *command], cwd=root, env=environment, text=True, capture_output=True,
        timeout=120, check=False,
    )  # fmt: skip


@ON_SQLITE
def test_with_https_the_checks_pass_and_cookies_are_of_this_host_alone(
    strict: dict[str, str],
) -> None:
    done = run(strict, "-c", STRICT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    status, target, headers = found["redirect"]
    assert (status, target) == (301, "https://chat.example.org/c/new/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert (found["page"][0], found["health"]) == (200, 200)
    (name, token), session = *found["token"].items(), found["session"]
    assert (name, session["NAME"]) == ("__Host-csrftoken", "__Host-sessionid")
    assert (token["secure"], token["httponly"], token["path"]) == (True, True, "/")
    assert (token["domain"], token["samesite"]) == ("", "Lax")
    assert (session["SECURE"], session["HTTPONLY"], session["PATH"]) == (True, True, "/")
    assert (session["DOMAIN"], session["SAMESITE"]) == (None, "Lax")
    assert found["page"][1]["Strict-Transport-Security"] == "max-age=31536000"


@ON_SQLITE
def test_other_hosts_are_bound_to_https_only_where_that_was_asked(strict: dict[str, str]) -> None:
    done = run(strict | {"AGENTWEB_HSTS_PRELOAD": "1"}, "-c", STRICT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    wanted = "max-age=31536000; includeSubDomains; preload"
    assert found["page"][1]["Strict-Transport-Security"] == wanted


@ON_SQLITE
def test_a_site_on_plain_settings_is_warned(strict: dict[str, str]) -> None:
    bad = strict | {"AGENTWEB_HTTPS": "0", "AGENTWEB_DEBUG": "1", "SECRET_KEY": "short"}
    done = run(bad, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode != 0
    found = done.stdout + done.stderr
    for name in ("W004", "W008", "W009", "W012", "W016", "W018"):
        assert f"security.{name}" in found, name
