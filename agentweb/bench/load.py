"""Load on one web process besides answers: idle sockets, stored messages, many readers of one
answer, a restart with a thousand clients, and other users at all limits.

Every subject is bounded in time and gives one flat row; percentiles are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentweb.bench.measured_job import run_job
from agentweb.bench.site_under_test import EMBEDDED, SCALED, Site, run_emulator, run_site
from agentweb.bench.streaming import RATE, make_job, make_question

#: Sockets opened for one person; the site allows twenty.
_SOCKETS = 10
#: Seconds of the answers that run at a restart: every other one ends before its process does.
_LENGTHS = (8.0, 30.0)
_Row = dict[str, Any]


def measure_idle(tested: Site, mode: str, count: int, seconds: float) -> _Row:
    """Hold `count` sockets without traffic."""
    chats = tested.people(-(-count // _SOCKETS)) * _SOCKETS
    done = run_job(tested, {"kind": "idle", "chats": chats[:count], "seconds": seconds})
    return {
        "mode": mode,
        "sockets": count,
        "kilobytes": done.per_socket(),
        "processor_percent": round(100 * done.spent["web"] / seconds, 1),
        "connects_a_second": round(count / done.found["opened"]),
        "closed": done.found["closed"],
    }


def measure_acks(tested: Site, mode: str, people: int, rate: float, seconds: float) -> _Row:
    """Send messages at a fixed rate from `people` people while they are answered."""
    job = {"kind": "acks", "chats": tested.people(people), "text": "Answer in 60 words"}
    done = run_job(tested, job | {"rate": rate, "seconds": seconds})
    refused = done.found["sent"] - done.found["statuses"].get("200", 0)
    row: _Row = {"mode": mode, "people": people, "rate": rate, "sent": done.found["sent"]}
    row |= done.found["ack"]
    return row | {"refused": refused}


def measure_frames(tested: Site, mode: str, answers: int, readers: int, seconds: float) -> _Row:
    """Have `readers` tabs on each of a few answers, and count the frames that reach them."""
    chats = tested.people(answers)
    looking = [chat | {"asks": not again} for again in range(readers) for chat in chats]
    looking.sort(key=lambda chat: not chat["asks"])
    done = run_job(tested, make_job(looking, seconds) | {"ramp": 0.0}, is_compared=True)
    latency: _Row = done.found["latency"]
    return (
        {
            "mode": mode,
            "sockets": len(looking),
            "frames_a_second": round(done.found["frames"] / done.found["seconds"]),
            "processor_percent": round(100 * done.spent["web"] / done.found["seconds"], 1),
        }
        | {name: done.found[name] for name in ("late", "missing", "unstored")}
        | latency
    )


def measure_restart(tested: Site, mode: str, count: int, answers: int) -> _Row:
    """Restart the web process under `count` clients, in the middle of answers."""
    chats = (tested.people(-(-count // _SOCKETS)) * _SOCKETS)[:count]
    for at in range(answers):
        chats[at] = chats[at] | {"text": make_question(_LENGTHS[at % len(_LENGTHS)])}
    job = {"kind": "again", "chats": chats, "seconds": 150.0}

    def restart() -> None:
        tested.parts["web"].stop()
        tested.serve(port=int(tested.url.rpartition(":")[2]))

    found = run_job(tested, job, restart, is_compared=True).found
    return {
        "mode": mode,
        "clients": count,
        "seconds_p50": found["back"]["p50"],
        "seconds_max": found["back"]["max"],
        "most_handshakes": found["opened"],
        "away": found["away"],
        "answers_compared": found["answers"],
        "unequal": found["unequal"],
    }


def measure_neighbour(tested: Site, mode: str, people: int, rate: float, seconds: float) -> _Row:
    """Measure people alone, then beside one who always sends more than the limits allow."""
    found: dict[str, dict[str, float]] = {}
    for name in ("alone", "beside"):
        rude = tested.people(1, 8) if name == "beside" else []
        noise = {"noise": [chat | {"text": make_question(seconds)} for chat in rude]}
        read = run_job(tested, make_job(tested.people(people), seconds) | noise)
        job = {"kind": "acks", "chats": tested.people(4 * people), "text": "Answer in 60 words"}
        stored = run_job(tested, job | noise | {"rate": rate, "seconds": seconds})
        found[name] = {"latency": read.found["latency"]["p95"], "ack": stored.found["ack"]["p95"]}
    row: _Row = {"mode": mode, "people": people, "rate": rate}
    for kind in ("latency", "ack"):
        alone, beside = found["alone"][kind], found["beside"][kind]
        row |= {f"{kind}_alone": alone, f"{kind}_beside": beside}
        row[f"{kind}_ratio"] = round(beside / max(alone, 1.0), 2)
    return row


Subject = Callable[[Site, str, bool], list[_Row]]
#: Subjects by name; each has a full and a quick form.
SUBJECTS: dict[str, Subject] = {
    "idle": lambda tested, mode, is_quick: [
        measure_idle(tested, mode, count, 5 if is_quick else 15)
        for count in ((100,) if is_quick else (1_000, 4_000))
    ],
    "ack": lambda tested, mode, is_quick: [
        measure_acks(tested, mode, 4, 2, 4) if is_quick else measure_acks(tested, mode, 20, 4, 30)
    ],
    "frames": lambda tested, mode, is_quick: [
        measure_frames(tested, mode, 2, 4, 3)
        if is_quick
        else measure_frames(tested, mode, 10, 16, 12)
    ],
    "again": lambda tested, mode, is_quick: [
        measure_restart(tested, mode, 40, 4)
        if is_quick
        else measure_restart(tested, mode, 1_000, 20)
    ],
    "neighbour": lambda tested, mode, is_quick: [
        measure_neighbour(tested, mode, 2, 2, 3)
        if is_quick
        else measure_neighbour(tested, mode, 5, 4, 15)
    ],
}
#: Modes in which each subject is measured; idle sockets only concern the web process.
MODES = {
    "idle": (EMBEDDED,),
    "ack": (EMBEDDED, SCALED),
    "frames": (EMBEDDED,),
    "again": (EMBEDDED, SCALED),
    "neighbour": (EMBEDDED,),
}


def measure(
    names: list[str], modes: tuple[str, ...], report: Callable[[str, _Row], None], *, is_quick: bool
) -> dict[str, list[_Row]]:
    """Measure subjects, one fresh site for each mode of each; report row by row."""
    found: dict[str, list[_Row]] = {}
    with run_emulator(RATE) as api:
        for name in names:
            found[name] = []
            for mode in (mode for mode in MODES[name] if mode in modes):
                with run_site(mode, api) as tested:
                    for row in SUBJECTS[name](tested, mode, is_quick):
                        found[name].append(row)
                        report(name, row)
    return found


def format_line(name: str, row: _Row) -> str:
    """Format a row as one line."""
    facts = (f"{key.replace('_', ' ')} {value}" for key, value in row.items() if key != "mode")
    return f"{name:9} {row['mode']:10} " + ", ".join(facts)
