"""Requests to play: those that are built in, or recorded ones.

The built-in set holds the known refusals and facts of models that the tests hold the emulator to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentweb.emulator import json_codec
from agentweb.emulator.recording import RecordingError

BUILT_IN = Path(__file__).with_name("known_requests.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRequest:
    name: str
    path: str
    version: str
    beta: str
    #: None: a GET without a body.
    body: json_codec.Value

    def as_json(self) -> json_codec.Object:
        return {name: getattr(self, name) for name in KnownRequest.__slots__}


def read_built_in() -> list[KnownRequest]:
    return [KnownRequest(**row) for row in json_codec.decode(BUILT_IN.read_bytes())]


def read_recorded(place: Path) -> list[KnownRequest]:
    """Read the requests of a recorded file, or of all recorded files in a folder.

    Raises RecordingError.
    """
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    found = [one for file in files for one in _read_lines(file)]
    if not found:
        raise RecordingError(f"{place} holds no recorded requests: lines of JSON in *.jsonl")
    return found


def _read_lines(file: Path) -> Iterator[KnownRequest]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json_codec.decode(line)
            path = str(row["url"]).partition("://")[2].partition("/")[2] or row["url"]
            yield KnownRequest(
                name=f"{file.stem} {number}",
                path=f"/{str(path).lstrip('/')}",
                version=str(row.get("version") or "2023-06-01"),
                beta=str(row.get("beta") or ""),
                body=row.get("request"),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RecordingError(f"{file}, line {number}: no recorded request: {error}") from error
