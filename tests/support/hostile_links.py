"""Links made to look as if they led to another host, in many scripts, dots and spellings."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
#: Published lists: URLs, international names, what Unicode calls confusable with each character.
LISTS: dict[str, Any] = json.loads((DATA / "published_hosts.json").read_text(encoding="utf-8"))

#: Characters that look like a dot, or that a browser maps to one.
DOTS = "\u3002\uff0e\uff61\u2024\ufe52\u00b7\u0701\u0660\u06d4\u0589\u2027\ua4f8\u0387"
#: Spellings of names in other scripts, full width, styled or with what is hidden.
WORDS = (
    "paypal", "\u0440\u0430\u0443\u0440\u0430\u04cf", "p\u0430ypal",
    "\uff50\uff41\uff59\uff50\uff41\uff4c",
    "\U0001d429\U0001d41a\U0001d432\U0001d429\U0001d41a\U0001d425", "pay\u200bpal",
    "pay\u00adpal", "\u202epal\u202cpay", "\u2067paypal\u2069", "p\u0251ypal",
    "\u03c1\u03b1y\u03c1al", "\u24df\u24d0\u24e8\u24df\u24d0\u24db", "PAYPA\u0049",
    "paypa\u217c", "pa\u0443pal", "g\u043e\u043egle", "\u0261oog\u04cfe", "goog\u0142e",
    "g\u0ed0\u0ed0gle", "fa\u00df", "\u0131ntel", "\u212aoogle", "\u017fite",
)  # fmt: skip
#: Addresses: {a} is the host that should be believed, {b} the one that is asked.
SHAPES = (
    "https://{b}.example/", "https://{a}.com@{b}.example/", "https://{a}.com%40{b}.example/",
    "https://{a}.com\\@{b}.example/", "https://{b}.example\\.{a}.com/",
    "https:\\\\{b}.example/", "https:///{b}.example/", "https:/{b}.example/",
    "https:{b}.example/", "//{b}.example/", "https://{a}.com:443@{b}.example/",
    "https://{a}.com#@{b}.example/", "https://{a}.com?@{b}.example/",
    "https://{a}.com;@{b}.example/", "https://{b}.example.", "https://{b}.example:443/",
    "https://{b}.example:99999/", "https://[::ffff:1.2.3.4]/{a}", "https://[2001:db8::1]/{a}",
    "https://0x7f.1/{a}", "https://2130706433/{a}", "https://127.1/{a}", "https://1.2.3.4/{a}",
    "https://{a}.com/../../@{b}.example", "https://%65vil.example/{a}",
    "https://{b}..example/", "https://-{b}.example/", "https://{b}_x.example/",
    "HTTPS://{b}.EXAMPLE/{a}", "https://xn--{b}.example/",
)  # fmt: skip


def list_links() -> list[str]:
    """Return Markdown links, each with a text that claims a host."""
    found = [
        f"[{a}.com](<{shape.format(a=a, b=b)}>)"
        for shape in SHAPES
        for a, b in product(WORDS[:6], WORDS)
    ]
    found += [f"[paypal.com](<https://paypal{dot}com{dot}evil.example/>)" for dot in DOTS]
    found += [f"[paypal{dot}com](<https://evil{dot}example/>)" for dot in DOTS]
    found += [f"[paypal{dot}com](<https://evil.example/>)" for dot in DOTS]
    for plain, others in LISTS["lookalikes"].items():
        for other in others:
            found += [
                f"[x{plain}y.example](<https://x{other}y.example/>)",
                f"[good.com](<https://good.com{other}evil.example/>)",
                f"https://good.com{other}evil.example/ and https://x{other}y.example/",
            ]
    found += [f"[good.com](<{url}>)" for url, _, _ in LISTS["urls"] if "\n" not in url]
    return found
