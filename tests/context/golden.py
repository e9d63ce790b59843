"""Stored sessions and the digests of what was sent, for any Python and any later code to replay.

`python -m tests.context.golden` replays them with nothing but the standard library and the engine,
and prints how many requests it rebuilt; `python -m tests.context.golden write` runs some stories
and stores them again, which is right only when the wire text of requests was changed on purpose.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from conversations.context.view import edits, wire
from conversations.context.view.envelope import join_body
from conversations.context.view.view import Message, View

FILE = Path(__file__).parent.parent / "data" / "sessions.json"
ENVELOPE = '{"model":"a model","max_tokens":1000,"stream":true}'
#: Stories that together meet every kind of transformation.
SEEDS = range(120)
#: Characters of a session that is stored, and of one that is stored for a kind no other has.
_SMALL, _LARGE = 4_000, 50_000


def replayed(session: dict[str, Any]) -> dict[int, View]:
    """Give the view at each tip, folded from the entries of its path."""
    views: dict[int, View] = {0: View()}
    for number, parent, what, *rest in session["entries"]:
        view = views[parent]
        if what in ("prompt", "answer", "results"):
            view = view.append(Message.parse(number, what, rest[0]))
        elif what == "clearing":
            view = view.with_cleared(tuple(rest[0]))
        elif what:
            view = edits.apply(view, what, edits.load_edits(rest[0]))
        views[number] = view
    return views


def facts(view: View) -> list[Any]:
    """Give what must be the same wherever a view is rebuilt."""
    return [wire.digest(join_body(ENVELOPE, view.body)), view.tokens, view.size, view.edits]


def different(session: dict[str, Any]) -> list[str]:
    """Name the requests that are not rebuilt as they were sent."""
    views = replayed(session)
    return [
        f"{session['id']} at {tip}: {facts(views[int(tip)])} instead of {sent}"
        for tip, sent in session["sent"].items()
        if facts(views[int(tip)]) != sent
    ]


def write() -> None:
    """Store the sessions of some stories."""
    from tests.context.endpoints import Expected
    from tests.context.story import Story

    sessions = []
    seen: set[str] = set()
    for seed in SEEDS:
        story = Story(seed)
        sent: dict[int, list[Any]] = {}
        story.sends = lambda view, story=story, sent=sent: sent.update({story.tip: facts(view)})
        story.live()
        entries: list[list[Any]] = []
        for number, (parent, entry) in story.log.items():
            match entry:
                case Message():
                    entries.append([number, parent, entry.kind, entry.content])
                case Expected():
                    entries.append([number, parent, "clearing", list(entry.ids)])
                case None:
                    entries.append([number, parent, ""])
                case kind, changes:
                    entries.append([number, parent, kind, edits.dump_edits(changes)])
        size = len(json.dumps(entries))
        kinds = {entry[2] for entry in entries}
        if size < _SMALL or (size < _LARGE and not kinds <= seen):
            seen |= kinds
            sessions.append({"id": f"story {seed}", "entries": entries, "sent": sent})
    FILE.parent.mkdir(exist_ok=True)
    text = ",\n".join(json.dumps(one) for one in sessions)
    FILE.write_text(f"[\n{text}\n]\n", encoding="ascii")


def main(*arguments: str) -> int:
    if arguments == ("write",):
        write()
    sessions = json.loads(FILE.read_text(encoding="ascii"))
    found = [line for session in sessions for line in different(session)]
    count = sum(len(session["sent"]) for session in sessions)
    version = ".".join(map(str, sys.version_info[:3]))
    said = f"{count} requests, {len(found)} differ, Python {version}\n"
    sys.stdout.write("\n".join([*found, said]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
