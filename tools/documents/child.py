"""What runs in the child process: limits first, then one document from stdin, its parts to stdout.

There are two limits of time. The readers stop by themselves at `SOFT` seconds and report where, so
a long document gives what was read; the limit of processor time ends a parser that hangs.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator

from tools.documents.parts import Part, RefusedError, UnknownPartError

#: characters of text that are read of one document
MOST_CHARACTERS = 4_000_000
#: seconds after which no further page or sheet is started
SOFT = 12.0
LIMITS = {
    resource.RLIMIT_AS: 1_000_000_000,
    resource.RLIMIT_CPU: 20,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_CORE: 0,
}


Reader = Callable[[bytes, str], Iterator[Part]]


def main() -> None:
    for which, most in LIMITS.items():
        resource.setrlimit(which, (most, most))
    request = json.loads(sys.stdin.buffer.readline())
    sys.stdout.write(
        json.dumps(_read_document(sys.stdin.buffer.read(), request["kind"], request["part"]))
    )


def _read_document(data: bytes, kind: str, part: str) -> dict[str, object]:
    try:
        return {"parts": collect_parts(_choose_reader(kind)(data, part))}
    except RefusedError as error:
        return {"refused": str(error)}
    except UnknownPartError as error:
        return {"unknown": str(error)}
    except MemoryError:
        return {"refused": "it needs too much memory"}
    except Exception as error:  # parsers raise anything on damaged files
        return {"refused": f"it is damaged ({type(error).__name__})"}


def _choose_reader(kind: str) -> Reader:
    if kind == "pdf":
        from tools.documents.pdf import read_pdf

        return read_pdf
    from tools.documents.office import read_office

    return read_office


def collect_parts(parts: Iterator[Part]) -> list[Part]:
    """Collect parts while there is room and time; a last one reports where reading stopped."""
    collected: list[Part] = []
    room, until = MOST_CHARACTERS, time.monotonic() + SOFT
    for part in parts:
        collected.append(Part(part.title, part.text[:room]))
        room -= len(part.text)
        if room <= 0:
            return [*collected, Part(f"the text was cut after {MOST_CHARACTERS:,} characters", "")]
        if time.monotonic() > until:
            return [*collected, Part("reading was stopped here; ask for a later part by name", "")]
    return collected
