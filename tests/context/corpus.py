"""Texts as tools return them, and the characters that are cut wrongly most often."""

from __future__ import annotations

import json

#: What a reader sees as one character, in many code points.
CLUSTERS = [
    "e\u0301", "a\u0308\u0323", "👩‍👩‍👧‍👦", "👍🏽", "❤️",
    "🏴\U000e0067\U000e0062\U000e0065\U000e007f",
    "🇩🇪", "한", "\u1112\u1161\u11ab", "नि", "क्ष", "\r\n", "ש\u05c1\u05bc", "ل\u0651\u064e",
]  # fmt: skip
RIGHT_TO_LEFT = "\u202bשלום עולם\u202c \u2067مرحبا بالعالم\u2069 \u200fRTL\u200e mark. "

_ROW = {"id": 4711, "title": "Senior .NET", "tags": ["remote", "EU"], "pay": {"max": 95000.50}}
_HUGE = "9" * 400 + "." + "1" * 40


def _deep(levels: int) -> str:
    return '{"a":[' * levels + '"end"' + "]}" * levels


JSON = {
    "rows": json.dumps([{**_ROW, "id": n} for n in range(300)]),
    "object": json.dumps({f"key {n}": "value " * n for n in range(60)}),
    "one long text": json.dumps({"body": "words and more words. " * 400, "ok": True}),
    "nested": json.dumps({"data": {"items": [{"a": [_ROW] * 9}] * 30, "next": None}}, indent=4),
    "huge numbers": f"[{_HUGE},-{_HUGE}e99,1e400,0.1000,-0,1E+2," + "7," * 900 + "1]",
    "doubled keys": "{" + ",".join(f'"k":{n},"k":"{"v" * n}"' for n in range(90)) + "}",
    "marker keys": json.dumps({"…": "x" * 900, "……": ["y" * 900], "z": 1}),
    "deep": _deep(45),
    "too deep": _deep(400),
    "surrogates": json.dumps(["\ud83d\ude00" * 300, "\ud800 " * 300, "\udfff"]),
    "clusters": json.dumps(["".join(CLUSTERS) * 20] * 8, ensure_ascii=False),
    "right to left": json.dumps({"text": RIGHT_TO_LEFT * 60}, ensure_ascii=False),
    "controls": json.dumps({"a\u0000\u001b": "\u0000\u001f\u007f\u2028" * 300}),
    "empty parts": json.dumps([{}, [], "", None, {"": [[], {}]}] * 200),
    "scalars": json.dumps([None, True, False, 0, -1.5, ""] * 300),
    "a string": json.dumps('a page of text with "quotes"\n' * 90),
    "a number": "-" + "8" * 3_000,
    "white space": json.dumps({"a": list(range(300))}, indent=40),
}
HTML = (
    "<!doctype html><html><head><title>Openings</title><style>p{color:red}</style>"
    "<script>track('<p>no</p>')</script></head><body><nav><a href='/'>Home</a></nav>"
    "<h1>Openings</h1>"
    + "".join(
        f'<div class="card" data-id="{n}"><h2>Post {n} &amp; more</h2><p>Pay {n},000&nbsp;EUR, '
        f'<a href="/jobs/{n}">details</a></p></div>'
        for n in range(200)
    )
    + "<table>" + "<tr><td>a</td><td>b</td></tr>" * 99 + "</table></body></html>"
)  # fmt: skip
LOG = "\n".join(
    [f"2026-11-20T08:{n % 60:02}:00Z INFO GET /jobs/{n} 200 {n * 7 % 90} ms" for n in range(900)]
    + ["2026-11-20T09:00:00Z ERROR disk full on /dev/sda1", "Traceback (most recent call last):"]
    + [f"2026-11-20T10:{n % 60:02}:00Z INFO GET /jobs/{n} 200 9 ms" for n in range(900)]
)
TABLE = "\n".join(
    ["id;name;pay", *(f"{n};Person {n};{n * 1000}" for n in range(900)), "900;last;1"]
)
TEXT = {
    "html": HTML,
    "log": LOG,
    "table": TABLE,
    "clusters": "".join(CLUSTERS) * 400,
    "clusters and words": " ".join(CLUSTERS * 90),
    "right to left": RIGHT_TO_LEFT * 90,
    "one line": "x" * 9_000,
    "flags": "🇩🇪🇫🇷🇯🇵" * 900,
    "broken json": JSON["rows"][:-1],
    "marks alone": "\u0301" * 4_000,
    "jamo": "\u1112\u1161\u11ab" * 900,
    "windows lines": "one line of it\r\n" * 400,
    "surrogates": "\ud83d\ude00 \ud800 " * 400,
    "blank": " \n" * 3_000,
}
