"""Links that pretend: each has the host beside it to which Chromium would go, or is no link.

The browser is the reference: its own parser of URLs says which host a link leads to. Among the
links are the tests of the URL standard and every character that Unicode calls confusable with an
ASCII one.
"""

from __future__ import annotations

import html
import re

import pytest
from playwright.async_api import Page

from conversations.rendering import render_markdown
from tests.support.hostile_links import list_links

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
_LINK = re.compile(r'<a href="([^"]*)"[^>]*>(.*?)</a>(?: <span class="host">([^<]*)</span>)?')
_SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?", re.IGNORECASE)
_READ = """links => links.map(href => {
  try { return new URL(href).hostname; } catch { return ""; }
})"""


async def test_the_host_beside_a_link_is_where_the_browser_goes(page: Page) -> None:
    rendered = [render_markdown(each) for each in list_links()]
    found = [match for text in rendered for match in _LINK.findall(text)]
    assert len(found) > 2_000
    hosts = await page.evaluate(_READ, [html.unescape(href) for href, _, _ in found])
    wrong = []
    for (href, words, noted), host in zip(found, hosts, strict=True):
        true = host.removesuffix(".").removeprefix("www.")
        claims = re.split(r"[/:?#]", _SCHEME.sub("", html.unescape(words)))[0]
        # An address that the browser refuses leads nowhere.
        if host and html.unescape(noted or claims) != true:
            wrong.append((href, words, noted, host))
    assert wrong == []
