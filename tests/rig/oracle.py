"""The invariants of an installation after every case: O1 to O8 of RELIABILITY.md.

`Installation.check` checks all of them. The part that reads rows, `check`, runs in a process with
the installation's environment; `python -m tests.rig.oracle` runs it there by hand and prints what
is wrong. O1: no turn is left running. O2: every body that the model got is valid and is one of the
audit's. O3: the numbers of each log are dense, and every open page equals a newly loaded one. O4:
nothing is held, and the windows' spending is the sum of what was settled. O5: a tool that cannot be
repeated ran at most once for a call, one that can under one key. O6: every acknowledged message is
stored once. O7: the record verifies. O8: processes hold the same resources as before.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentweb.emulator.state import Recorded


def check(
    acknowledged: Sequence[Sequence[str]] = (),
    digests: Sequence[str] = (),
    ran: str = "",
    ends: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what is `wrong` in the rows, by kind, and the `ends` of all chains; nothing may run.

    A conversation whose chain has the same end as at an earlier check is not verified again;
    without `ends` everything is.
    """
    now = _ends()
    changed = None if ends is None else [key for key, end in now.items() if ends.get(key) != end]
    wrong = {
        "lost": _unstored(acknowledged),
        "doubled": _repeated(Path(ran)),
        "illegal": _unrecorded(digests),
        "drift": _drift(),
        "rows": _rows(changed),
    }
    return {"wrong": wrong, "ends": now}


def _ends() -> dict[str, str]:
    from conversations.models import Conversation

    rows = Conversation.objects.values_list("public_id", "head", "links", "chain")
    return {str(key): " ".join(map(str, end)) for key, *end in rows}


def _rows(changed: Sequence[str] | None) -> list[str]:
    from conversations.audit.verify import Tally, verify_conversation
    from conversations.models import Conversation
    from tests.faults.oracle import check_log, check_rows, check_totals

    try:
        if changed is None:
            check_rows()
        else:
            check_totals()
            for conversation in Conversation.objects.filter(public_id__in=changed):
                check_log(conversation)
                assert list(verify_conversation(conversation.public_id, Tally())) == []
    except AssertionError:
        return [traceback.format_exc(limit=-2)]
    return []


def _drift() -> list[str]:
    """Check O4: return windows that hold something at rest, or whose spending was not settled."""
    from django.db.models import Sum

    from conversations.models import BudgetWindow, LedgerEntry

    found = []
    for window in BudgetWindow.objects.all():
        entries = LedgerEntry.objects.filter(window=window, kind="settle")
        settled = entries.aggregate(sum=Sum("amount"))["sum"] or 0
        if window.held or window.spent + window.overrun != settled:
            spent = window.spent + window.overrun
            found.append(f"window {window.pk} holds {window.held}, {spent} is not {settled}")
    return found


def live() -> list[str]:
    """Return the turns that are not at rest, except those that wait for a person."""
    from conversations.models import LIVE, Turn

    rows = Turn.objects.filter(state__in=LIVE).exclude(state="approval_wait")
    return [
        f"turn {row.pk} is {row.state}, {row.lease_owner} until {row.lease_until}" for row in rows
    ]


def _unstored(acknowledged: Sequence[Sequence[str]]) -> list[str]:
    """Check O6: return acknowledged messages that are not stored exactly once, with their text."""
    from conversations.context.view import wire
    from conversations.models import Message, QueuedPrompt, Turn

    names = {client_id for _, client_id, _ in acknowledged}
    place = ("conversation__public_id", "client_id")
    queued = QueuedPrompt.objects.filter(client_id__in=names).values_list(*place)
    turns = Turn.objects.filter(client_id__in=names).values_list(*place, "pk")
    prompts = Message.objects.filter(kind="prompt", turn__client_id__in=names)
    words: dict[int, list[str]] = defaultdict(list)
    for turn, content in prompts.values_list("turn", "content"):
        words[turn].append(wire.decode(content)[-1]["text"])
    waiting = Counter((str(key), str(name)) for key, name in queued)
    stored: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for key, name, turn in turns:
        stored[str(key), str(name)].append(words[turn])
    found = []
    for key, name, text in acknowledged:
        waits, said = waiting[key, name], stored[key, name]
        if len(said) + waits != 1 or (said and said != [[text]]):
            found.append(f"{name} {text!r}: turns say {said}, {waits} wait")
    return found


def _unrecorded(digests: Iterable[str]) -> list[str]:
    """Check O2: return bodies that no call of the audit has."""
    from conversations.models import ApiCall

    known = set(ApiCall.objects.values_list("body_digest", flat=True))
    return [
        f"the model saw {digest}, which is no call's" for digest in digests if digest not in known
    ]


def _repeated(ran: Path) -> list[str]:
    """Check O5: return tools that ran too often, by the file that the toy tools write."""
    from conversations.models import ToolCall
    from tests.support.toy_tools import ran as runs_in

    if not ran.is_file():
        return []
    runs = Counter(runs_in(ran))
    found = [
        f"{name} ran {count} times under {key}"
        for (name, key), count in runs.items()
        if count > 1 and name in ("fire", "post")
    ]
    for name, count in Counter(name for name, _ in runs).items():
        calls = ToolCall.objects.filter(name=name).count()
        if count > calls:
            found.append(f"{name} ran under {count} keys for {calls} calls")
    return found


def invalid(log: Iterable[Recorded]) -> list[str]:
    """Check O2: return requests that the API would refuse, whatever their response was."""
    from agentweb.emulator import api_accounts
    from agentweb.emulator.api_accounts import Account
    from agentweb.emulator.errors import ApiError
    from agentweb.emulator.validation.call import validate_call

    found = []
    for row in log:
        if row.path != "/v1/messages":
            continue
        account, betas = Account("default", "default"), api_accounts.betas(row.headers)
        try:
            version = api_accounts.find_version(row.headers)
            validate_call(row.body, account=account, betas=betas, version=version, counting=False)
        except ApiError as error:
            found.append(f"{row.request_id}: {error}")
    return found


def main() -> None:
    import django

    django.setup()
    found = {"stuck": live()} | check()["wrong"]
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
