"""Options in the address of Redis: those of redis-py are read, others refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentweb import env
from conversations.operations.redis_address import OPTIONS

SETTINGS = Path(env.__file__).parent / "README.md"


def test_the_row_of_the_setting_names_each_scheme_and_option() -> None:
    (row,) = re.findall(r"^\| `REDIS_URL` \|.*$", SETTINGS.read_text(), re.MULTILINE)
    for scheme, options in OPTIONS.items():
        assert f"{scheme}://" in row
        assert [name for name in options if not re.search(rf"\b{name}\b", row)] == []


@pytest.mark.parametrize(
    "query", ["", "health_check_interval=30&socket_timeout=0.5", "client_name=chats&protocol=3"]
)
@pytest.mark.parametrize(
    "url", ["redis://a/0?", "rediss://a?ssl_cert_reqs=none&", "unix:///run/redis.sock?db=3&"]
)
def test_options_of_redis_are_read(url: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", url + query)
    assert env.redis("REDIS_URL") == url + query


@pytest.mark.parametrize(
    ("url", "wrong"),
    [("redis://a/0?db=3", "db"), ("redis://a?ssl_cert_reqs=none", "ssl_cert_reqs"),
     ("rediss://:hunter2@a?ssl_cert_reqs=CERT_NONE", "ssl_cert_reqs"),
     ("redis://a?health_check=3", "health_check"),
     ("unix:///a?socket_keepalive=true", "socket_keepalive"),
     ("redis://a?socket_keepalive=", "socket_keepal"),
     ("redis://a?health_check_interval=hunter2", "health_check_interval"),
     ("unix:///run/redis.sock?ssl_ca_certs=hunter2", "ssl_ca_certs"),
     ("redis+sentinel://a/chats?password=hunter2", "password"),
     ("redis://me:1?hunter2@a/0", "what follows the question mark")],
)  # fmt: skip
def test_an_option_that_redis_does_not_have_is_refused_by_name(
    url: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    with pytest.raises(ImproperlyConfigured, match=rf"^REDIS_URL: {wrong}\w* is no opt") as error:
        env.redis("REDIS_URL")
    assert "hunter2" not in str(error.value)
