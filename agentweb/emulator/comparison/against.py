"""Play requests against the emulator and an address of the API, and keep every difference.

Each request goes to both, in the same order, so that the caches of both have seen the same. What
it costs is what the requests of the set cost: most are refused, the answers of the rest are short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agentweb.emulator import server
from agentweb.emulator.comparison.api_exchange import Address, Unreachable
from agentweb.emulator.comparison.differences import (
    Difference,
    find_differences,
    show_table,
    write_case,
)
from agentweb.emulator.comparison.known_requests import (
    KnownRequest,
    read_built_in,
    read_recorded,
)

KEY = "ANTHROPIC_API_KEY"


class AgainstError(Exception):
    """The comparison cannot be made; the text says why."""


def compare_with_api(
    *,
    url: str,
    requests: Path | None,
    cases: Path,
    environment: Mapping[str, str],
    tell: Callable[[str], object],
) -> bool:
    """Send the requests, write the cases and report the table; return whether all are equal.

    Raises AgainstError, RecordingError.
    """
    key = environment.get(KEY, "")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AgainstError(f"{url} is no address: https://api.anthropic.com, for example")
    if not key:
        raise AgainstError(f"{KEY} is not set: the API is asked with it")
    played = read_recorded(requests) if requests else read_built_in()
    with server.start(pace=0) as ours:
        here = Address(url=ours.url, key="sk-emulator")
        found = _play(here, Address(url=url, key=key, is_patient=True), played)
    try:
        cases.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(found, 1):
            write_case(cases, number, one)
    except OSError as error:
        raise AgainstError(f"{cases} cannot be written: {error.strerror}") from error
    tell(show_table(len(played), found))
    return not found


def _play(here: Address, there: Address, played: Sequence[KnownRequest]) -> list[Difference]:
    found: list[Difference] = []
    try:
        for request in played:
            found += find_differences(request, here.ask(request), there.ask(request))
    except Unreachable as error:
        raise AgainstError(str(error)) from error
    return found
